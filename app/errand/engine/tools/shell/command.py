"""Runs one shell command: start, captured output, timeout, termination of all its processes."""

import asyncio
import os
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError, FolderNotAnswering
from errand.engine.sandbox.launch import InsideLaunch, Launch, prepare_launch
from errand.engine.sandbox.standing import StandingSandbox
from errand.engine.tools.base import Access
from errand.engine.tools.context import ToolContext
from errand.engine.tools.output_capture import OutputCapture
from errand.engine.tools.processes import marks, spawn, termination
from errand.engine.tools.processes.termination import adopt_orphans
from errand.engine.tools.results import ToolError
from errand.engine.tools.shell.remarks import waits_for_keys
from errand.engine.tools.shell.terminal import has_terminal
from errand.engine.tools.shell.working_folder import FolderReport
from errand.protocol.notices import EndedProcess
from errand.system.environment import SYSTEM_PATH
from errand.text.printable import reason

# Nothing of the client's may decide which programs these commands run, or where `cd` leads.
_OPTIONS_OF_BASH = frozenset(("BASHOPTS", "SHELLOPTS", "GLOBIGNORE", "POSIXLY_CORRECT"))
_OF_LOOKING = {"CDPATH": "", "BASH_ENV": "", "ENV": "", "GIT_OPTIONAL_LOCKS": "0"}

End = Literal["exited", "timeout", "cancelled", "waited"]
# Time for writers other than the command itself, such as a `>(tee log)`, to finish after it.
_DRAIN_S = 0.2
# After these pauses a command is looked at for a program that waits for keys; most have ended by then.
_LOOKS_S = (1.0, 2.0)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The outcome of a command. `ended` are terminated processes, `running` those left in the background.

    `not_kept` are protected files of the workspace that it made, and that were moved away. `folder` is where the shell
    ended, as the command sees it; None if it did not change it, or it is not known. `waited` names the program that
    waited for keys.
    """

    end: End
    exit_code: int | None
    seconds: float
    ended: tuple[EndedProcess, ...] = ()
    running: tuple[EndedProcess, ...] = ()
    not_kept: tuple[str, ...] = ()
    folder: Path | None = None
    waited: str = ""


@cache
def shell() -> tuple[str, ...]:
    bash = shutil.which("bash")
    return (bash, "--noprofile", "--norc", "-c") if bash else ("/bin/sh", "-c")


class ShellCommand:
    """Runs once. `stdout` and `stderr` can be read while it runs; `on_output` is called when they grow.

    A command that was allowed because it only looks runs with the folders where its programs were found as PATH, and
    without a shell if it needs none.
    """

    def __init__(
        self, context: ToolContext, call_id: str, on_output: Callable[[], None], allowed: Access | None = None
    ) -> None:
        self._task_id, self._processes = context.task_id, context.processes
        self._argv = allowed.argv if allowed is not None else ()
        self._network = allowed is not None and allowed.network == "open"
        looks = allowed is not None and allowed.only_looks
        folders = allowed.program_folders if allowed is not None else ()
        self._environment = _of_looking(context.environment, folders) if looks else context.environment
        self._sandbox = context.sandbox
        if looks and self._sandbox is not None and not self._sandbox.is_needed_to_look:
            self._sandbox = None
        self._on_output = on_output
        # The id comes from a model: only a safe part of it may enter a file name.
        name = "".join(letter for letter in call_id if letter.isalnum() or letter in "-_")[-60:] or "call"
        self.stdout = OutputCapture(context.output_dir / f"{name}-stdout.txt", context.redactor)
        self.stderr = OutputCapture(context.output_dir / f"{name}-stderr.txt", context.redactor)

    async def run(self, line: str, working_dir: Path, timeout_s: float, cancel: CancelSignal) -> CommandResult:
        adopt_orphans()
        report = FolderReport() if not self._argv and FolderReport.is_needed(shell()[0], line) else None
        try:
            outcome = await self._run(line, working_dir, timeout_s, cancel, report)
        except BaseException:
            if report is not None:
                report.close()
            raise
        ended_in = report.close() if report is not None else None
        is_new = outcome.end == "exited" and ended_in != working_dir
        return replace(outcome, folder=ended_in if is_new else None)

    async def _run(
        self, line: str, working_dir: Path, timeout_s: float, cancel: CancelSignal, report: FolderReport | None
    ) -> CommandResult:
        text = line if report is None else report.reported(line)
        own = [] if report is None else [report.descriptor]
        mark = marks.new_mark(self._task_id)
        try:
            child = await self._started([*self._argv] or [*shell(), text], working_dir, own, mark)
        except BaseException:
            marks.forget((mark,))
            raise
        finally:
            for descriptor in own:
                os.close(descriptor)
        started = time.monotonic()
        keys = _KeyWatch(mark)
        self._processes.limit.start()
        try:
            end = await _wait(child.exit, timeout_s, cancel, keys)
            ended = () if end == "exited" else await self._processes.end(mark)
            await self._drain(child)
        except asyncio.CancelledError:
            await self._processes.end(mark)
            raise
        finally:
            child.stdout.discard()
            child.stderr.discard()
            self.stdout.close()
            self.stderr.close()
        # The mark stays until the end of the task: a scan may miss a process that forks at that moment.
        running = termination.running((mark,)) if spawn.may_have_leftovers(child) else ()
        running = termination.without_sandbox(running)
        if len(running) > self._processes.limit.max_processes:
            await self._processes.limit.look_now()
            running = termination.without_sandbox(termination.running((mark,)))
        if running and self._sandbox is not None:
            self._sandbox.loopback.adopt(self._sandbox, running[0].pid)
        code, seconds = child.exit.result() if end == "exited" else None, time.monotonic() - started
        not_kept = await self._not_kept(bool(running))
        return CommandResult(end, code, seconds, ended, running, not_kept, waited=keys.found)

    async def _started(
        self, arguments: list[str], working_dir: Path, own: Sequence[int], mark: marks.ProcessMark
    ) -> spawn.Child:
        """Start it in a standing sandbox if one can take it, else in one of its own. `own` are inherited too."""
        launch = await self._prepared(arguments, working_dir)
        if launch.inside is not None:
            child = await self._started_inside(launch, launch.inside, own, mark)
            if child is not None:
                return child
            launch = await self._prepared(arguments, working_dir, alone=True)
        return self._start(launch, mark, own)

    async def _started_inside(
        self, launch: Launch, inside: InsideLaunch, own: Sequence[int], mark: marks.ProcessMark
    ) -> spawn.Child | None:
        """Start it in the standing sandbox that is held for it, or in a new one."""
        if inside.connection is not None:
            sandbox = await self._opened(launch, inside, inside.connection)
            launch = replace(launch, inside=replace(inside, connection=None, sandbox=sandbox))
        else:
            sandbox = inside.sandbox
        if sandbox is None:
            return None
        try:
            return self._start(launch, mark, own)
        except spawn.CannotRunInside:
            inside.sandboxes.give_back(sandbox)
            return None
        except BaseException:
            inside.sandboxes.give_back(sandbox)
            raise

    async def _opened(self, launch: Launch, inside: InsideLaunch, connection: socket.socket) -> StandingSandbox | None:
        try:
            return await spawn.open_standing(launch, inside, connection)
        except (OSError, ValueError):
            return None  # what is wrong shows when the command starts alone

    async def _prepared(self, arguments: list[str], working_dir: Path, *, alone: bool = False) -> Launch:
        """Return what to start, in the sandbox if there is one."""
        try:
            return await prepare_launch(
                arguments, working_dir, self._environment, self._sandbox, network=self._network, alone=alone
            )
        except (ConfigurationError, FolderNotAnswering, OSError) as error:
            raise ToolError(f"The command could not be started: {reason(error)}") from error

    async def _not_kept(self, has_background: bool) -> tuple[str, ...]:
        sandbox = self._sandbox
        if sandbox is None:
            return ()
        # Those of an earlier command.
        has_others = sandbox.has_background and termination.alive(self._task_id) > 0
        try:
            return tuple(await sandbox.after(has_background=has_background or has_others, of_latest=has_background))
        except FolderNotAnswering:
            return ()

    def _start(self, launch: Launch, mark: marks.ProcessMark, own: Sequence[int]) -> spawn.Child:
        """Start it, and close the launch."""
        inherited = replace(launch, descriptors=[*launch.descriptors, *own])
        try:
            return spawn.start(inherited, mark, self._writer_to(self.stdout), self._writer_to(self.stderr))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ToolError(
                f"The command could not be started: {reason}. Working directory: {launch.folder}"
            ) from error
        finally:
            launch.close()

    def _writer_to(self, capture: OutputCapture) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            capture.add(data)
            self._on_output()

        return take

    async def _drain(self, child: spawn.Child) -> None:
        pipes = (child.stdout, child.stderr)
        for pipe in pipes:
            pipe.read_available()
        open_ends = [pipe.ended for pipe in pipes if not pipe.ended.done()]
        if open_ends:
            await asyncio.wait(open_ends, timeout=_DRAIN_S)


def _of_looking(environment: Mapping[str, str], program_folders: Sequence[str]) -> dict[str, str]:
    """Without the client's shell functions, folders of programs, and options that change what a pattern matches."""
    variables = {
        name: value
        for name, value in environment.items()
        if not name.startswith("BASH_FUNC_") and name not in _OPTIONS_OF_BASH
    }
    system = SYSTEM_PATH.split(":")
    path = ":".join((*system, *(folder for folder in program_folders if folder not in system)))
    return variables | _OF_LOOKING | {"PATH": path}


class _KeyWatch:
    """Looks from time to time whether the command has started a program that waits for keys: `found` is its name."""

    def __init__(self, mark: marks.ProcessMark) -> None:
        self.found = ""
        self._mark = mark

    def look(self) -> bool:
        alone = (process for process in termination.running((self._mark,)) if not has_terminal(process.pid))
        self.found = next(filter(None, (waits_for_keys(process.name) for process in alone)), "")
        return bool(self.found)


async def _wait(exit_code: asyncio.Future[int], timeout_s: float, cancel: CancelSignal, keys: _KeyWatch) -> End:
    """Whichever happens first. Uses one future, two timers and no asyncio tasks, since most commands take 2 ms."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[End] = loop.create_future()

    def settle(end: End) -> None:
        if not first.done():
            first.set_result(end)

    def exited(future: asyncio.Future[int]) -> None:
        settle("exited")

    def look(*later_s: float) -> None:
        nonlocal next_look
        if not first.done() and keys.look():
            settle("waited")
        elif later_s:
            next_look = loop.call_later(later_s[0], look, *later_s[1:])

    exit_code.add_done_callback(exited)
    limit = loop.call_later(timeout_s, settle, "timeout")
    next_look = loop.call_later(_LOOKS_S[0], look, *_LOOKS_S[1:])
    unsubscribe = cancel.subscribe(lambda: settle("cancelled"))
    try:
        return await first
    finally:
        limit.cancel()
        next_look.cancel()
        unsubscribe()
        exit_code.remove_done_callback(exited)
