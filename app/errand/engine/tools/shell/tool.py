"""The tool `shell`: runs one command line, or keeps one running. `command.py` runs and ends the command."""

import asyncio
import logging
import os
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import Text
from errand.engine.core.workspace_threads import PATIENCE_S, in_workspace
from errand.engine.tools.arguments import decode, renamed, schema_of, text_argument
from errand.engine.tools.base import Access, ExecutionMode, PermissionTier
from errand.engine.tools.checkpoints import CommandFiles
from errand.engine.tools.context import ToolContext
from errand.engine.tools.files.real_path import resolve, with_real_path
from errand.engine.tools.plain_text import clean_name
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, text_result
from errand.engine.tools.sessions import WorkingFolder
from errand.engine.tools.shell.background import BackgroundCommands
from errand.engine.tools.shell.background_results import (
    TYPED_S,
    finished,
    found,
    input_access,
    listed,
    read,
    started,
    stopped,
)
from errand.engine.tools.shell.command import CommandResult, ShellCommand
from errand.engine.tools.shell.remarks import exit_remark, input_remark, waited_for_keys
from errand.engine.tools.shell.terminal import typed
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import CallDisplay
from errand.text.notice_text import ended_text, process_text, short_exit_text
from errand.text.translation import marked

_log = logging.getLogger(__name__)

# For the comparison of files after a command that was stopped, and after one in the background.
_STOPPED_S, _ENDED_S = 0.2, 2.0
_UPDATE_PAUSE_S = 0.05
_UPDATE_SIZE = 4_000
_LAST_LINES = 3
_SHOWN = {
    "output": (marked("reading"), marked("read")),
    "input": (marked("typing into"), marked("typed into")),
    "stop": (marked("stopping"), marked("stopped")),
    "list": (marked("listing"), marked("listed")),
}
_MAX_LINE_LENGTH = 1_000
_SANDBOXED = (
    "It runs in a sandbox: only the workspace, $TMPDIR and caches of package managers can be changed, files that "
    "configure git, editors or agents can neither be changed nor made, and keys are not there. Only commands that need "
    "the network and that the person allows have it (curl, pip, npm, git clone …), for HTTP and HTTPS, unless the "
    "conversation opens it to all or none. Commands share a localhost of their own with those in the background."
)
_NO_NETWORK = (
    "[this command had no network: nobody allowed it in this conversation. Tell the person: the option network (on the "
    "command line: --network on) gives it to all commands; a command that they allow when asked has it by that]"
)
_HTTP_ALONE = "[from the sandbox only HTTP and HTTPS lead out, through the proxy in HTTPS_PROXY: no SSH, no DNS]"
_READ_ONLY = (
    "[the sandbox refuses this: only the workspace, $TMPDIR and the caches of package managers can be changed, and "
    "files that configure git, editors or agents cannot (so no git config or git remote add: use git -c NAME=VALUE, or "
    "name the URL). Write in the workspace. Else tell the person: the setting writable_folders opens a folder]"
)
# How programs name what the sandbox refuses.
_READ_ONLY_SIGNS = ("Read-only file system", "Device or resource busy", "EROFS")
_NO_NETWORK_SIGNS = ("name resolution", "resolve host", "EAI_AGAIN", "ENOTFOUND", "Network is unreachable")


_OTHER_NAMES = {
    "cmd": "command",
    "command_line": "command",
    "script": "command",
    "cwd": "working_dir",
    "workdir": "working_dir",
    "working_directory": "working_dir",
    "timeout_seconds": "timeout_secs",
    "timeout_sec": "timeout_secs",
    "is_background": "background",
    "run_in_background": "background",
}

Action = Literal["run", "output", "input", "stop", "list"]


class ShellArguments(Struct, frozen=True):
    command: Annotated[str, Meta(description="Run by bash. There is no input, and no terminal without pty.")] = ""
    working_dir: Annotated[str, Meta(description="Default: where the last command ended, at first the workspace.")] = ""
    timeout_secs: Annotated[
        float, Meta(gt=0, le=86_400, description="Then the command ends with all that it started.")
    ] = 60
    background: Annotated[
        bool,
        Meta(description="Return at once with an id; it runs on, also after the task."),
    ] = False
    pty: Annotated[bool, Meta(description="Run in a terminal of 120x40.")] = False
    action: Annotated[
        Action,
        Meta(description="For background commands: output (what is new), input (type into its pty), stop, list."),
    ] = "run"
    id: Annotated[str, Meta(description="Of the background command.")] = ""
    wait_secs: Annotated[
        float, Meta(ge=0, le=600, description="output, input: wait this long for new output or the end.")
    ] = 0
    text: Annotated[str, Meta(description="input: typed before the keys.")] = ""
    keys: Annotated[tuple[str, ...], Meta(description="input: enter, tab, escape, up, down, ctrl-c …")] = ()


def _command_line(parts: list[JsonValue]) -> JsonValue:
    """The command line of a list of words, which other agents take; unchanged if it holds anything but texts."""
    match parts:
        case ["bash" | "sh" | "/bin/bash" | "/bin/sh", "-c" | "-lc", str(line)]:
            return line
        case _:
            texts = [word for word in parts if isinstance(word, str)]
            return shlex.join(texts) if len(texts) == len(parts) else parts


class Shell:
    name = "shell"
    label = "Shell"
    description = (
        "Run a command line. Each call is a new shell: variables do not carry over, the folder in which it ends does. "
        "Long output is cut in the middle, and whole in a file. Start servers, watchers and long work with background; "
        "what is started with & ends with the task."
    )
    parameters = schema_of(ShellArguments)
    tier: PermissionTier = "run"
    activity = marked("running a command")
    execution_mode: ExecutionMode = "sequential"

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        if context.sandbox is not None:
            self.description = f"{Shell.description} {_SANDBOXED}"
        self._allowed: dict[str, Access] = {}
        self._last = context.sessions.get(WorkingFolder, lambda: WorkingFolder(context.shell.working_dir))

    @property
    def _background(self) -> BackgroundCommands:
        sessions = self._context.sessions
        return sessions.get(
            BackgroundCommands,
            lambda: BackgroundCommands(sessions.conversation_id, self._context.shell.background_changed),
        )

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        prepared = renamed({key: value for key, value in arguments.items() if value is not None}, _OTHER_NAMES)
        if isinstance(command := prepared.get("command"), list):
            prepared["command"] = _command_line(command)
        if prepared.get("action", "run") != "run":
            return prepared
        if not prepared.get("command"):
            raise ToolError("Wrong arguments: `command` is missing. Give the command line to run.")
        if self._last.path and not prepared.get("working_dir"):
            prepared["working_dir"] = self._last.path  # so that the record says where it ran
        return prepared

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        action = text_argument(arguments, "action") or "run"
        if action != "run":
            return CallDisplay(
                kind="execute",
                running=_SHOWN.get(action, (action, action))[0],
                done=_SHOWN.get(action, (action, action))[1],
                target=_background_target(arguments, action),
                icon="terminal",
            )
        return CallDisplay(
            kind="execute",
            running="running",
            done="started" if arguments.get("background") is True else "ran",
            target=text_argument(arguments, "command"),
            icon="terminal",
            content="command",
            language="bash" if arguments.keys() == {"command"} else "",
            shows_output_end=True,
        )

    def access(self, arguments: JsonObject) -> Access:
        request = decode(arguments, ShellArguments)
        if request.action == "input":
            return input_access(request.id, request.text, request.keys, has_sandbox=self._context.sandbox is not None)
        if request.action != "run":
            what = f" {request.id}" if request.id else ""
            return Access("free", f"{request.action.capitalize()} of background command{what}")
        folder = self._folder(request)
        how = " in the background" if request.background else ""
        text = f"Run `{request.command}` in {folder}{how}"
        return Access("run", text, reads=(folder,), command=request.command, operation="run", basis=_identity(folder))

    def allow(self, call_id: str, access: Access) -> None:
        self._allowed[call_id] = access

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        request = decode(arguments, ShellArguments)
        allowed = self._allowed.pop(call_id, None)
        if request.action != "run":
            return await self._of_background(request, cancel)
        if not request.command.strip():
            raise ToolError("Wrong arguments: `command` is empty.")
        folder = self._folder(request)
        if allowed is not None and (allowed.reads, allowed.basis) != ((folder,), _identity(folder)):
            raise with_real_path(folder)
        if not folder.is_dir():
            raise ToolError(self._no_folder(folder))
        if cancel.is_set:
            raise ToolError("Operation aborted")
        files_before = (
            None if allowed is not None and allowed.only_looks else await self._keep(call_id, request, folder)
        )
        if request.background or request.pty:
            has_network = allowed is not None and allowed.network == "open"
            return await self._with_session(request, folder, cancel, files_before, has_network=has_network)
        updates = _Updates(on_update)
        command = ShellCommand(self._context, call_id, updates.grew, allowed)
        updates.of = command
        try:
            outcome = await command.run(request.command, folder, request.timeout_secs, cancel)
        finally:
            updates.close()
            await self._record_changes(files_before, _STOPPED_S if cancel.is_set else PATIENCE_S)
        remarks = [*self._of_the_folder(request, folder, outcome), *self._of_the_sandbox(command, outcome, allowed)]
        if outcome.end == "exited":
            output = command.stdout.text() + command.stderr.text()
            remarks.append(input_remark(request.command, outcome.exit_code, output))
        remarks += [self._context.processes.limit.take_remark(), self._background.take_limit_remark()]
        return _result(command, outcome, request.timeout_secs, [*remarks, *self._background.take_ended()])

    async def _with_session(
        self,
        request: ShellArguments,
        folder: Path,
        cancel: CancelSignal,
        files_before: CommandFiles | None,
        *,
        has_network: bool,
    ) -> ToolResult:
        try:
            command = await self._background.start(
                self._context,
                request.command,
                folder,
                cancel,
                pty=request.pty,
                network=has_network,
                is_awaited=not request.background,
                on_end=partial(self._record_changes, files_before),
            )
        except ToolError:
            await self._record_changes(files_before)
            raise
        if request.background:
            return await started(self._background, command, cancel)
        return await finished(self._background, command, request.timeout_secs, cancel)

    async def _keep(self, call_id: str, request: ShellArguments, folder: Path) -> CommandFiles | None:
        """Keep the files that the command names, so that its changes of them can be undone."""
        checkpoints = self._context.checkpoints
        if checkpoints is None:
            return None
        try:
            return await in_workspace(folder, partial(checkpoints.keep_named, call_id, request.command, folder))
        except (EngineError, OSError) as error:
            _log.warning("what a command changes will not be recorded: %s", error)
            return None

    async def _record_changes(self, files_before: CommandFiles | None, within_s: float = _ENDED_S) -> None:
        """Wait for it no longer than `within_s`: a folder that does not answer is compared when it does again."""
        if files_before is None:
            return
        try:
            await in_workspace(self._context.workspace, files_before.record_changes, within_s)
        except (EngineError, OSError) as error:
            _log.warning("what a command changed is not recorded: %s", error)

    async def _of_background(self, request: ShellArguments, cancel: CancelSignal) -> ToolResult:
        background = self._background
        match request.action:
            case "run" | "list":
                return listed(background)
            case "output":
                return await read(background, found(background, request.id), request.wait_secs, cancel)
            case "input":
                command = found(background, request.id)
                background.type(command, typed(request.text, request.keys))
                return await read(background, command, request.wait_secs or TYPED_S, cancel)
            case "stop":
                return await stopped(background, found(background, request.id), cancel)

    def _of_the_folder(self, request: ShellArguments, began_in: Path, outcome: CommandResult) -> list[str]:
        """Keep the folder in which the shell ended, if it is below the workspace."""
        remarks: list[str] = []
        if request.working_dir and request.working_dir == self._last.path and str(began_in) != self._last.path:
            remarks.append(f"[the folder {self._last.path} is gone: this ran in {began_in}]")
            self._keep_folder("")
        if outcome.folder is None:
            return remarks
        workspace, folder = self._context.workspace, resolve(str(outcome.folder), self._context)
        real = Path(os.path.realpath(workspace))
        if not folder.is_relative_to(real) or not folder.is_dir():
            next_one = self._last.path or str(workspace)
            return [*remarks, f"[{folder} is outside of the workspace: the next command runs in {next_one}]"]
        self._keep_folder("" if folder == real else str(folder))
        return [*remarks, f"[the folder is now {folder}]"]

    def _keep_folder(self, folder: str) -> None:
        if folder != self._last.path:
            self._last.path = folder
            self._context.shell.keep_working_dir(folder)

    def _of_the_sandbox(self, command: ShellCommand, outcome: CommandResult, allowed: Access | None) -> list[str]:
        """Why it failed, if the sandbox may be the reason, and how to go on."""
        sandbox = self._context.sandbox
        if sandbox is None:
            return []
        output = command.stdout.text() + command.stderr.text()
        failed = bool(outcome.exit_code) or outcome.end != "exited"
        network = "open" if sandbox.profile.network else allowed.network if allowed is not None else "none"
        lacks_network = any(sign in output for sign in _NO_NETWORK_SIGNS)
        remarks: list[str] = []
        if lacks_network or (failed and network == "missing"):
            remarks.append(_HTTP_ALONE if network == "open" else _NO_NETWORK)
        if failed and any(sign in output for sign in _READ_ONLY_SIGNS):
            remarks.append(_READ_ONLY)
        return remarks

    def _no_folder(self, folder: Path) -> str:
        if not self._context.workspace.is_dir():
            return f"The workspace {self._context.workspace} is gone. Tell the person, and do not make it again."
        return f"There is no folder {folder}. Leave working_dir out to run in the workspace."

    def _folder(self, request: ShellArguments) -> Path:
        """The workspace, if the folder where the last command ended is gone, or the workspace is another now."""
        folder = resolve(request.working_dir or ".", self._context)
        if not request.working_dir or request.working_dir != self._last.path:
            return folder
        workspace = resolve(".", self._context)
        is_usable = str(folder) == self._last.path and folder.is_relative_to(workspace) and folder.is_dir()
        return folder if is_usable else workspace


def _identity(folder: Path) -> str:
    """Identifies the folder independent of its name: another one may be moved to its path."""
    try:
        status = folder.stat()
    except OSError:
        return "nothing"
    return f"{status.st_dev} {status.st_ino}"


class _Updates:
    """Shows the last output of a running command, with a rate limit."""

    def __init__(self, on_update: OnUpdate) -> None:
        self._on_update = on_update
        self._timer: asyncio.TimerHandle | None = None
        self.of: ShellCommand | None = None

    def grew(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_UPDATE_PAUSE_S, self._show)

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _show(self) -> None:
        self._timer = None
        assert self.of
        stdout, stderr = self.of.stdout, self.of.stderr
        text = _joined(stdout.tail(_UPDATE_SIZE), stderr.tail(_UPDATE_SIZE))
        details: JsonObject = {"stdout_bytes": stdout.total, "stderr_bytes": stderr.total}
        self._on_update(text_result(text, f"{stdout.total + stderr.total:,} bytes so far", details))


def _result(command: ShellCommand, outcome: CommandResult, timeout_s: float, of_the_sandbox: list[str]) -> ToolResult:
    stdout, stderr = command.stdout.text(), command.stderr.text()
    details: JsonObject = {
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": outcome.exit_code,
        "duration_ms": round(outcome.seconds * 1000),
        "stdout_file": str(command.stdout.file) if command.stdout.file else None,
        "stderr_file": str(command.stderr.file) if command.stderr.file else None,
        "ended": [process_text(process) for process in outcome.ended],
        "running": [process_text(process) for process in outcome.running],
    }
    output = _joined(stdout, stderr)
    written = "\n".join(part for part in (stdout.rstrip("\n"), stderr.rstrip("\n")) if part)
    if outcome.end == "exited":
        if outcome.exit_code != 0:
            details["last_lines"] = _last_lines(written or "(no output)")
        text = "\n".join(part for part in (output or "(no output)", *_remarks(outcome), *of_the_sandbox) if part)
        return ToolResult((Text(text),), details, _summary(outcome), is_error=outcome.exit_code != 0)
    summary = {"timeout": "Timed out", "waited": "waited for keys"}.get(outcome.end, "Operation aborted")
    what = f"{summary} after {timeout_s:g} s" if outcome.end == "timeout" else summary
    not_kept = _not_kept(outcome.not_kept) if outcome.not_kept else ""
    what = waited_for_keys(outcome.waited) if outcome.end == "waited" else f"{what}."
    head = [part for part in (what, ended_text(outcome.ended), not_kept, *of_the_sandbox) if part]
    details["last_lines"] = _last_lines("\n".join((*head, _output_so_far(written))))
    raise ToolError("\n".join((*head, _output_so_far(output))), summary, details)


def _background_target(arguments: JsonObject, action: str) -> str:
    """`background 2`, with what is typed into it."""
    if action == "list":
        return "background commands"
    keys = arguments.get("keys") if action == "input" else None
    named = [f"<{key}>" for key in keys if key != "enter"] if isinstance(keys, list) else []
    typed = "".join((text_argument(arguments, "text"), *named)) if action == "input" else ""
    which = f"background {text_argument(arguments, 'id')}".strip()
    return f"{which}: {typed}" if typed else which


def _output_so_far(output: str) -> str:
    return f"Output so far:\n{output}" if output else "No output so far."


def _last_lines(text: str) -> list[JsonValue]:
    """The end of what a failed command wrote, where most programs state the cause."""
    lines = [line for line in text.split("\n") if line.strip()]
    return [line[-_MAX_LINE_LENGTH:] for line in lines[-_LAST_LINES:]]


def _joined(stdout: str, stderr: str) -> str:
    out, err = stdout.rstrip("\n"), stderr.rstrip("\n")
    return "\n".join(part for part in (out, f"[stderr]\n{err}" if err else "") if part)


def _remarks(outcome: CommandResult) -> list[str]:
    remarks: list[str] = []
    if outcome.exit_code:
        remarks.append(exit_remark(outcome.exit_code))
    if outcome.not_kept:
        remarks.append(_not_kept(outcome.not_kept))
    if outcome.running:
        names = ", ".join(map(process_text, outcome.running[:5])) + (", …" if len(outcome.running) > 5 else "")
        remarks.append(f"[{len(outcome.running)} still running in the background, until the task ends: {names}]")
    return remarks


def _not_kept(names: tuple[str, ...]) -> str:
    listed = ", ".join(map(clean_name, names[:10])) + (", …" if len(names) > 10 else "")
    return (
        f"[not kept: {listed}. Commands in the sandbox cannot make files that configure git, editors or agents: use "
        "the file tools, which ask the person. They were moved to not-kept in the folder of this task's output]"
    )


def _summary(outcome: CommandResult) -> str:
    left = f", {len(outcome.running)} in the background" if outcome.running else ""
    return f"{short_exit_text(outcome.exit_code or 0)}{left}"
