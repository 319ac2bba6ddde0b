"""Helps small models to change files: shows what an edit made of one, and stops changes that they seldom mean."""

import ast
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec

from errand.engine.agent.loop.events import AgentEvent, MessageEnd
from errand.engine.agent.loop.features import Feature
from errand.engine.agent.loop.hooks import FinishedCall, PendingCall, ToolRefusal
from errand.engine.agent.prompt.workspace import read_inside
from errand.engine.agent.run.task_context import TaskTools
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.messages import AssistantMessage, Message, Text, ToolResultMessage
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.permissions.shell.named_files import mentioned_files
from errand.engine.tools.arguments import text_argument
from errand.engine.tools.code.edits import replace_text
from errand.engine.tools.code.tool import Code
from errand.engine.tools.results import ToolError, ToolResult
from errand.engine.tools.shell.tool import Shell
from errand.protocol.base import JsonObject, JsonValue
from errand.system.regular_file import read_beginning, real_path

_MAX_DIFF_CHARACTERS = 2_000
_MAX_CHECKED_BYTES = 100_000
_MAX_QUOTED_CHARACTERS = 100
_CHECK_S = 2.0
_CHECKED_ACTIONS = ("write", "patch")
_PARSED_SUFFIXES = (".py", ".json")

T = TypeVar("T")


class EditGuidance(Feature):
    """Guidance on the files of one task, while it has a model that calls tools as JSON.

    A write over a file is refused until a call has read or written it, also one of `history`, or a command that names
    it has run. A change after which a Python or JSON file no longer parses is refused.
    """

    def __init__(self, workspace: Path, tools: TaskTools, history: Sequence[Message]) -> None:
        self._workspace = workspace
        self._tools = tools
        # As calls and commands name them. Commands are read once they matter: each with the folder in which it ran.
        self._named_paths: set[Path] = set()
        self._commands: list[tuple[str, str]] = []
        # Paths of calls that have no result yet. Models use ids again, so that messages are read in order.
        self._called_paths: dict[str, JsonValue] = {}
        for message in history:
            self._read(message)

    async def on_event(self, event: AgentEvent) -> None:
        """Read the messages of a turn that is replayed, in which no tool runs."""
        match event:
            case MessageEnd(message=message):
                self._read(message)
            case _:
                pass

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall | ToolRefusal:
        action = pending.arguments.get("action")
        if pending.call.name != Code.name or action not in _CHECKED_ACTIONS or not self._guides:
            return pending
        try:
            files = (await self._tools.access_of(pending)).writes
        except ToolError:  # it is said where the call is judged
            return pending
        for file in files:
            data = await self._look(lambda file=file: self._content_inside(file), b"")
            if action == "write" and data.strip() and not await self._is_known(file):
                path = pending.arguments.get("path")
                return ToolRefusal(
                    f"{path} exists and has text that you have not read. Nothing was written. To add a line, run "
                    f"`echo … >> {path}`; to change a part, read it and use edit; to rename or delete it, run `mv` or "
                    "`rm`; to replace all of it, read it first.",
                    summary="not written: its text was not read",
                )
            if mistake := await self._look(
                lambda file=file, data=data: _new_mistake(file.name, _decoded(data), pending.arguments), ""
            ):
                return ToolRefusal(
                    f"Nothing was changed. With this change {mistake}\nLines that are to go belong to the text to "
                    "replace.",
                    summary="not changed: the file would not parse",
                )
        return pending

    async def after_tool_call(self, finished: FinishedCall, cancel: CancelSignal) -> ToolResult:
        result = finished.result
        details = result.details or {}
        if not result.is_error:
            self._note_names(finished.pending, details.get("path"))
        diff, path = details.get("diff"), details.get("path")
        if not self._guides or finished.pending.call.name != Code.name:
            return result
        if not isinstance(diff, str) or not isinstance(path, str):
            return result
        file = Path(path)
        mistake = await self._look(
            lambda: _mistake(file.name, _decoded(read_beginning(file, _MAX_CHECKED_BYTES + 1, follow_links=False))),
            "",
        )
        changed_lines = "\n".join(line for line in diff.splitlines() if not line.startswith(("---", "+++", "\\")))
        added = "\n".join(filter(None, (changed_lines[:_MAX_DIFF_CHARACTERS], mistake)))
        return replace(result, content=(*result.content, Text(f"\n{added}"))) if added else result

    @property
    def _guides(self) -> bool:
        """The model is a small one: another may have been served before."""
        return self._tools.offer.call_form == "json"

    def _read(self, message: Message) -> None:
        """Keep the paths of calls that read or changed a file."""
        match message:
            case AssistantMessage(tool_calls=calls):
                self._called_paths = {call.id: call.arguments.get("path") for call in calls if call.name == Code.name}
            case ToolResultMessage(tool_call_id=call_id, is_error=False):
                path = self._called_paths.get(call_id)
                if isinstance(path, str):
                    self._named_paths.add(self._workspace / path)
            case _:
                pass

    def _note_names(self, pending: PendingCall, found_path: JsonValue) -> None:
        """Keep the path of a call, as it names it and as the tool found it, or the command."""
        command = pending.arguments.get("command")
        if pending.call.name == Code.name:
            paths = (pending.arguments.get("path"), found_path)
            self._named_paths.update(self._workspace / path for path in paths if isinstance(path, str))
        elif pending.call.name == Shell.name and isinstance(command, str):
            folder = os.path.join(self._workspace, text_argument(pending.arguments, "working_dir"))
            self._commands.append((command, folder))

    async def _is_known(self, file: Path) -> bool:
        """Return True if a call or a command has named this file, perhaps by a link to it."""
        commands = tuple(self._commands)
        self._commands.clear()
        self._named_paths.update(await self._look(lambda: _mentioned_in(commands), set[Path]()))
        paths = tuple(self._named_paths)
        return file in self._named_paths or await self._look(
            lambda: any(real_path(path) == str(file) for path in paths), False
        )

    def _content_inside(self, file: Path) -> bytes:
        """Return the beginning of a file of the workspace: the call is not allowed yet, and may name any file."""
        return read_inside(file, self._workspace, _MAX_CHECKED_BYTES) or b""

    async def _look(self, look: Callable[[], T], default: T) -> T:
        """Return what `look` sees of the disk, or the default if that does not answer."""
        try:
            return await in_workspace(self._workspace, look, _CHECK_S)
        except (FolderNotAnswering, OSError, ValueError):  # ValueError: a word that is no path
            return default


def _mentioned_in(commands: Sequence[tuple[str, str]]) -> set[Path]:
    home = os.path.expanduser("~")
    return {Path(path) for line, folder in commands for path in mentioned_files(line, folder, home)}


def _new_mistake(name: str, text: str, arguments: JsonObject) -> str:
    """Return why a file that parses would not parse after this change; empty for another kind of call or of file."""
    match arguments.get("action"):
        case "write":
            changed_text = text_argument(arguments, "content")
        case "patch":
            old, new = text_argument(arguments, "old"), text_argument(arguments, "new")
            try:
                changed_text = replace_text(text, old, new, bool(arguments.get("replace_all")), name).text
            except ToolError:  # the tool says it
                return ""
        case _:
            return ""
    return "" if not text.strip() or _mistake(name, text) else _mistake(name, changed_text)


def _decoded(data: bytes) -> str:
    """Return the text of a file; empty if it is too long to be looked at here, or not UTF-8."""
    try:
        return data.decode() if len(data) <= _MAX_CHECKED_BYTES else ""
    except UnicodeDecodeError:
        return ""


def _mistake(name: str, text: str) -> str:
    """Return why the text of a Python or JSON file does not parse; empty if it does, is blank, or of another file."""
    if not name.endswith(_PARSED_SUFFIXES) or not text.strip():
        return ""
    try:
        if name.endswith(".py"):
            ast.parse(text)
        else:
            msgspec.json.decode(text)
    except SyntaxError as error:
        line = (error.text or "").strip()[:_MAX_QUOTED_CHARACTERS]
        return f"{name} does not parse: line {error.lineno}: {error.msg}{f': {line}' if line else '.'}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{name} does not parse: {error}."
    return ""
