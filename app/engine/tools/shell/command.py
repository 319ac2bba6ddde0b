"""Runs one shell command: start, captured output, timeout, termination of all its processes."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import ConfigurationError, FolderNotAnswering
from app.engine.sandbox.launch import Launch, prepare_launch
from app.engine.tools.base import Access, ToolContext, ToolError
from app.engine.tools.plain_text import clean_output, is_clean
from app.engine.tools.processes import marks, spawn, termination
from app.engine.tools.processes.termination import adopt_orphans
from app.environment import SYSTEM_PATH
from app.protocol.notices import EndedProcess
from app.redaction import RedactedBytes, Redactor

# The model's share of one stream. The tail is longer than the head because errors come last.
_HEAD = 10_000
_TAIL = 20_000
LIMIT = _HEAD + _TAIL
FILE_LIMIT = 200_000_000
_CONTINUATION = bytes(range(0x80, 0xC0))  # of a truncated UTF-8 character

# Nothing of the client's may decide which programs these commands run, or where `cd` leads.
_OPTIONS_OF_BASH = frozenset(("BASHOPTS", "SHELLOPTS", "GLOBIGNORE", "POSIXLY_CORRECT"))
_OF_LOOKING = {"CDPATH": "", "BASH_ENV": "", "ENV": "", "GIT_OPTIONAL_LOCKS": "0"}

End = Literal["exited", "timeout", "cancelled"]
# Time for writers other than the command itself, such as a `>(tee log)`, to finish after it.
_DRAIN_S = 0.2


class OutputCapture:
    """Collects bytes with `add` until `close`, without the app's own keys; `text` works at any time."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._stream = RedactedBytes(redactor)
        self._head = b""
        self._tail = bytearray()
        self._descriptor: int | None = None
        self._written = 0
        self._problem = ""
        self.total = 0

    @property
    def file(self) -> Path | None:
        """The file with the full output, if the output was too long."""
        return self._path if self._written else None

    def add(self, data: bytes) -> None:
        self._take(self._stream.feed(data))

    def _take(self, data: bytes) -> None:
        self.total += len(data)
        if self.total <= LIMIT:
            self._tail += data
        elif self._head:
            self._write(data)
            self._tail = bytearray(data[-_TAIL:]) if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]
        else:
            data = bytes(self._tail) + data
            self._write(data)
            self._head, self._tail = data[:_HEAD], bytearray(data[_HEAD:][-_TAIL:])

    def close(self) -> None:
        """Finish the file; short output is stored there too if it is not text."""
        self._take(self._stream.finish())
        if not self._head and not is_clean(bytes(self._tail)):
            self._write(bytes(self._tail))
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def text(self) -> str:
        """The captured output as clean text; says how much is omitted and where the rest is."""
        if not self._head:
            text = self._clean(bytes(self._tail))
            return f"{text}\n[not plain text{self._place('its bytes are in')}]" if self._written else text
        head = self._head[: self._head.rfind(b"\n") + 1] or self._head
        tail = bytes(self._tail[self._tail.find(b"\n") + 1 :]) or bytes(self._tail)
        left_out = self.total - len(head) - len(tail)
        remark = f"[{left_out:,} bytes left out{self._place('the full output is in')}]"
        return f"{self._clean(head)}\n{remark}\n{self._clean(tail)}"

    def tail(self, size: int) -> str:
        """The end of the output so far, starting at a line if possible; more may follow."""
        data = bytes(self._tail[-size:])
        if len(data) < self.total:
            data = data[data.find(b"\n") + 1 :] or data
            data = data.lstrip(_CONTINUATION)
        return self._redactor.hide(clean_output(data, has_more=True))

    def _clean(self, data: bytes) -> str:
        """Also without keys that are written in another way, such as in JSON."""
        return self._redactor.hide(clean_output(data))

    def _write(self, data: bytes) -> None:
        room = FILE_LIMIT - self._written
        if self._problem or not data:
            return
        if len(data) > room:
            self._problem = f"only its first {FILE_LIMIT // 1_000_000} MB were kept"
        try:
            if self._descriptor is None:
                self._descriptor = self._new_file()
            self._written += os.write(self._descriptor, data[:room])
        except OSError as error:
            self._problem = f"it could not be kept whole: {error.strerror}"

    def _new_file(self) -> int:
        """Always a new file: models reuse call ids in later turns, and an earlier result names its file."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        wanted, number = self._path, 1
        while True:
            try:
                return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                number += 1
                self._path = wanted.with_stem(f"{wanted.stem}-{number}")

    def _place(self, what: str) -> str:
        place = f"; {what} {self._path}" if self._written else ""
        return place + (f" ({self._problem})" if self._problem else "")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The outcome of a command. `ended` are terminated processes, `running` those left in the background.

    `not_kept` are protected files of the workspace that it made, and that were moved away.
    """

    end: End
    exit_code: int | None
    seconds: float
    ended: tuple[EndedProcess, ...] = ()
    running: tuple[EndedProcess, ...] = ()
    not_kept: tuple[str, ...] = ()


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
        self._context = context
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
        launch = await self._prepared([*self._argv] or [*shell(), line], working_dir)
        mark = marks.new_mark(self._context.task_id)
        started = time.monotonic()
        try:
            child = self._start(launch, mark)
        except BaseException:
            marks.forget((mark,))
            raise
        finally:
            launch.close()
        try:
            end = await _wait(child.exit, timeout_s, cancel)
            ended = () if end == "exited" else await self._context.processes.end(mark)
            await self._drain(child)
        except asyncio.CancelledError:
            await self._context.processes.end(mark)
            raise
        finally:
            child.stdout.discard()
            child.stderr.discard()
            self.stdout.close()
            self.stderr.close()
        # The mark stays until the end of the task: a scan may miss a process that forks at that moment.
        running = termination.running((mark,)) if spawn.may_have_leftovers(child.pid) else ()
        running = termination.without_sandbox(running)
        if running and self._sandbox is not None:
            self._sandbox.loopback.adopt(self._sandbox, running[0].pid)
        code, seconds = child.exit.result() if end == "exited" else None, time.monotonic() - started
        return CommandResult(end, code, seconds, ended, running, await self._not_kept(bool(running)))

    async def _prepared(self, arguments: list[str], working_dir: Path) -> Launch:
        """What to start, in the sandbox if there is one."""
        try:
            return await prepare_launch(arguments, working_dir, self._environment, self._sandbox, network=self._network)
        except (ConfigurationError, FolderNotAnswering, OSError) as error:
            raise ToolError(f"The command was not started: {error}") from error

    async def _not_kept(self, has_background: bool) -> tuple[str, ...]:
        sandbox = self._sandbox
        if sandbox is None:
            return ()
        # Those of an earlier command.
        has_others = sandbox.has_background and termination.alive(self._context.task_id) > 0
        try:
            return tuple(await sandbox.after(has_background=has_background or has_others, of_latest=has_background))
        except FolderNotAnswering:
            return ()

    def _start(self, launch: Launch, mark: marks.ProcessMark) -> spawn.Child:
        try:
            return spawn.start(launch, mark, self._writer_to(self.stdout), self._writer_to(self.stderr))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ToolError(
                f"The command could not be started: {reason}. Working directory: {launch.folder}"
            ) from error

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
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("BASH_FUNC_") and name not in _OPTIONS_OF_BASH
    }
    system = SYSTEM_PATH.split(":")
    path = ":".join((*system, *(folder for folder in program_folders if folder not in system)))
    return kept | _OF_LOOKING | {"PATH": path}


async def _wait(exit_code: asyncio.Future[int], timeout_s: float, cancel: CancelSignal) -> End:
    """Whichever happens first. Uses one future and no asyncio tasks, since most commands take 2 ms."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[End] = loop.create_future()

    def settle(end: End) -> None:
        if not first.done():
            first.set_result(end)

    def exited(future: asyncio.Future[int]) -> None:
        settle("exited")

    exit_code.add_done_callback(exited)
    timer = loop.call_later(timeout_s, settle, "timeout")
    unsubscribe = cancel.subscribe(lambda: settle("cancelled"))
    try:
        return await first
    finally:
        timer.cancel()
        unsubscribe()
        exit_code.remove_done_callback(exited)
