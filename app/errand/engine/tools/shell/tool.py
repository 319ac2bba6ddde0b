"""The tool `shell`: runs one command line, or keeps one running. `command.py` runs and ends the command."""

import asyncio
import os
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.arguments import decode, renamed, schema_of, text_argument
from errand.engine.tools.base import Access, ExecutionMode, PermissionTier
from errand.engine.tools.checkpoints import CommandFiles, keep_before, record_after
from errand.engine.tools.context import ToolContext
from errand.engine.tools.files.real_path import resolve, with_real_path
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
from errand.engine.tools.shell.command_results import command_result, joined_output, sandbox_remarks
from errand.engine.tools.shell.remarks import input_remark
from errand.engine.tools.shell.terminal import typed
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import CallDisplay
from errand.text.translation import marked

# For the comparison of files after a command in the background.
_ENDED_S = 2.0
_UPDATE_PAUSE_S = 0.05
_UPDATE_SIZE = 4_000
_SHOWN = {
    "output": (marked("reading"), marked("read")),
    "input": (marked("typing into"), marked("typed into")),
    "stop": (marked("stopping"), marked("stopped")),
    "list": (marked("listing"), marked("listed")),
}
_SANDBOXED = (
    "It runs in a sandbox: only the workspace, $TMPDIR and caches of package managers can be changed, files that "
    "configure git, editors or agents can neither be changed nor made, and keys are not there. Only commands that need "
    "the network and that the person allows have it (curl, pip, npm, git clone …), for HTTP and HTTPS, unless the "
    "conversation opens it to all or none. Commands share a localhost of their own with those in the background."
)

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
    """Return the command line of a list of words, which other agents take; unchanged if it holds anything but texts."""
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
            text = f"{request.action.capitalize()} of background command{what}"
            return Access("free", text, changes=request.action == "stop")
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
        only_looks = allowed is not None and allowed.only_looks
        checkpoints = None if only_looks else self._context.checkpoints
        files_before = await keep_before(checkpoints, call_id, request.command, folder, cancel)
        if files_before is None and cancel.is_set:
            raise ToolError("Operation aborted")
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
            await record_after(files_before, self._context.workspace, is_stopped=cancel.is_set)
        remarks = [
            *self._of_the_folder(request, folder, outcome),
            *sandbox_remarks(command, outcome, allowed, self._context.sandbox),
        ]
        if outcome.end == "exited":
            output = command.stdout.text() + command.stderr.text()
            remarks.append(input_remark(request.command, outcome.exit_code, output))
        remarks += [self._context.processes.limit.take_remark(), self._background.take_limit_remark()]
        return command_result(command, outcome, request.timeout_secs, [*remarks, *self._background.take_ended()])

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
                on_end=partial(record_after, files_before, self._context.workspace, within_s=_ENDED_S),
            )
        except ToolError:
            await record_after(files_before, self._context.workspace, within_s=_ENDED_S)
            raise
        if request.background:
            return await started(self._background, command, cancel)
        return await finished(self._background, command, request.timeout_secs, cancel)

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

    def _no_folder(self, folder: Path) -> str:
        if not self._context.workspace.is_dir():
            return f"The workspace {self._context.workspace} is gone. Tell the person, and do not make it again."
        return f"There is no folder {folder}. Leave working_dir out to run in the workspace."

    def _folder(self, request: ShellArguments) -> Path:
        """Return the workspace, if the folder where the last command ended is gone, or the workspace is another now."""
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
        text = joined_output(stdout.tail(_UPDATE_SIZE), stderr.tail(_UPDATE_SIZE))
        details: JsonObject = {"stdout_bytes": stdout.total, "stderr_bytes": stderr.total}
        self._on_update(text_result(text, f"{stdout.total + stderr.total:,} bytes so far", details))


def _background_target(arguments: JsonObject, action: str) -> str:
    """`background 2`, with what is typed into it."""
    if action == "list":
        return "background commands"
    keys = arguments.get("keys") if action == "input" else None
    named = [f"<{key}>" for key in keys if key != "enter"] if isinstance(keys, list) else []
    typed = "".join((text_argument(arguments, "text"), *named)) if action == "input" else ""
    which = f"background {text_argument(arguments, 'id')}".strip()
    return f"{which}: {typed}" if typed else which
