"""Helps small models to change files: shows what an edit made of one, and stops a write over what was never read."""

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
from errand.engine.tools.code.tool import Code
from errand.engine.tools.results import ToolResult
from errand.system.regular_file import read_beginning

_MAX_DIFF_CHARACTERS = 2_000
_MAX_CHECKED_BYTES = 100_000
_CHECK_S = 2.0


class EditGuidance(Feature):
    """Guidance on the files of one task.

    A write over a file that no call has read or written is refused once. A file that was read as a whole has the number
    of its lines below it.
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
        diff, path, last_line = details.get("diff"), details.get("path"), details.get("end_line")
        if finished.pending.call.name != Code.name or not isinstance(path, str):
            return result
        if finished.pending.arguments.get("action") == "read" and last_line and last_line == details.get("lines"):
            return replace(result, content=(*result.content, Text(f"\n[{last_line} lines]")))
        if not isinstance(diff, str):
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


def _syntax_mistake(file: Path) -> str:
    """Return why a Python or JSON file does not parse; empty if it does, or is of another kind."""
    if file.suffix not in (".py", ".json"):
        return ""
    text = read_beginning(file, _MAX_CHECKED_BYTES + 1, follow_links=False)
    if len(text) > _MAX_CHECKED_BYTES:
        return ""
    try:
        if file.suffix == ".py":
            ast.parse(text)
        else:
            msgspec.json.decode(text)
    except SyntaxError as error:
        return f"{file.name} does not parse: line {error.lineno}: {error.msg}."
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{file.name} does not parse: {error}."
    return ""
