"""Helps small models to change files: shows what an edit made of one, and stops changes that they seldom mean."""

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.loop.hooks import FinishedCall, PendingCall, ToolRefusal
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.messages import Text
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.tools.arguments import text_argument
from errand.engine.tools.code.edits import replace_text
from errand.engine.tools.code.tool import Code
from errand.engine.tools.results import ToolError, ToolResult
from errand.protocol.base import JsonObject
from errand.system.regular_file import read_beginning

_MAX_DIFF_CHARACTERS = 2_000
_MAX_CHECKED_BYTES = 100_000
_MAX_QUOTED_CHARACTERS = 100
_CHECK_S = 2.0
_PARSED_SUFFIXES = (".py", ".json")


class EditGuidance(Feature):
    """Guidance on the files of one task.

    A write over a file that no call has read or written is refused once. A change after which a Python or JSON file no
    longer parses is refused.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._known_paths: set[Path] = set()

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall | ToolRefusal:
        path = pending.arguments.get("path")
        if pending.call.name != Code.name or not isinstance(path, str):
            return pending
        file = self._workspace / path
        is_first = file not in self._known_paths
        self._known_paths.add(file)
        if mistake := await self._look(lambda: _new_mistake(file, pending.arguments)):
            return ToolRefusal(
                f"Nothing was changed. With this change {mistake}\nLines that are to go belong to the text to replace.",
                summary="not changed: the file would not parse",
            )
        if pending.arguments.get("action") != "write" or not is_first or not await self._look(lambda: _has_text(file)):
            return pending
        return ToolRefusal(
            f"{path} exists and has text that you have not read. Nothing was written. To add a line, run "
            f"`echo … >> {path}`; to change a part, read it and use edit; to replace all of it, write it again.",
            summary="not written: its text was not read",
        )

    async def after_tool_call(self, finished: FinishedCall, cancel: CancelSignal) -> ToolResult:
        result = finished.result
        details = result.details or {}
        diff, path = details.get("diff"), details.get("path")
        if finished.pending.call.name != Code.name or not isinstance(diff, str) or not isinstance(path, str):
            return result
        mistake = await self._look(lambda: _syntax_mistake(Path(path)))
        changed_lines = "\n".join(line for line in diff.splitlines() if not line.startswith(("---", "+++", "\\")))
        added = "\n".join(filter(None, (changed_lines[:_MAX_DIFF_CHARACTERS], mistake)))
        return replace(result, content=(*result.content, Text(f"\n{added}"))) if added else result

    async def _look(self, look: Callable[[], str]) -> str:
        try:
            return await in_workspace(self._workspace, look, _CHECK_S)
        except (FolderNotAnswering, OSError):
            return ""


def _has_text(file: Path) -> str:
    """Return the beginning of a file's text; empty if it has none, or is no file."""
    return read_beginning(file, 1, follow_links=False).decode("utf-8", "replace").strip() if file.is_file() else ""


def _new_mistake(file: Path, arguments: JsonObject) -> str:
    """Return why a file that parses would not parse after this change; empty for another kind of call or of file."""
    if file.suffix not in _PARSED_SUFFIXES or not file.is_file() or not (text := _whole_text(file)):
        return ""
    match arguments.get("action"):
        case "write":
            changed_text = text_argument(arguments, "content")
        case "patch":
            old, new = text_argument(arguments, "old"), text_argument(arguments, "new")
            try:
                changed_text = replace_text(text, old, new, bool(arguments.get("replace_all")), file.name).text
            except ToolError:  # the tool says it
                return ""
        case _:
            return ""
    return "" if _mistake(file.name, text) else _mistake(file.name, changed_text)


def _syntax_mistake(file: Path) -> str:
    """Return why a Python or JSON file does not parse; empty if it does, or is of another kind."""
    return _mistake(file.name, _whole_text(file)) if file.suffix in _PARSED_SUFFIXES else ""


def _whole_text(file: Path) -> str:
    """Return the text of a file; empty if it is too long to be parsed here, or not UTF-8."""
    data = read_beginning(file, _MAX_CHECKED_BYTES + 1, follow_links=False)
    try:
        return data.decode() if len(data) <= _MAX_CHECKED_BYTES else ""
    except UnicodeDecodeError:
        return ""


def _mistake(name: str, text: str) -> str:
    """Return why a text does not parse as Python or JSON, by the name of its file; empty if it does, or has nothing."""
    if not text.strip():
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
