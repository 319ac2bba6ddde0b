"""The tool `code`; the modules beside it implement its actions."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import FolderNotAnswering
from app.engine.core.workspace_threads import in_workspace
from app.engine.sandbox.protected_files import note_own_write
from app.engine.tools.base import (
    Access,
    ExecutionMode,
    OnUpdate,
    ParallelWhere,
    ToolContext,
    ToolError,
    ToolResult,
    decode,
    hidden,
    schema_of,
    text_argument,
    text_result,
)
from app.engine.tools.code.edits import replace_exactly
from app.engine.tools.code.preview import Preview, preview_diff, preview_patch, preview_write
from app.engine.tools.code.search import list_files, search
from app.engine.tools.code.workspace_files import WorkspaceFiles
from app.engine.tools.file_walk import keep_all
from app.engine.tools.gitignore import GitIgnore
from app.engine.tools.real_path import opened_folder, resolve, with_real_path
from app.protocol.base import JsonObject
from app.protocol.blocks import CallDisplay, ToolIcon

_PATIENCE_S = 60.0
_STOPPED_S = 0.05
# Field names of similar tools that models use by mistake.
_OTHER_NAMES = {
    "file_path": "path",
    "filename": "path",
    "old_string": "old",
    "old_text": "old",
    "new_string": "new",
    "new_text": "new",
    "text": "content",
    "query": "pattern",
}

_DISPLAYS: dict[str, tuple[str, str, ToolIcon]] = {
    "read": ("reading", "read", "file"),
    "write": ("writing", "wrote", "new_file"),
    "patch": ("changing", "changed", "changed_file"),
    "list": ("listing", "listed", "folder"),
    "create_dir": ("making", "made", "folder"),
    "search": ("searching for", "searched for", "search"),
}


class CodeArguments(Struct, frozen=True):
    action: Annotated[
        Literal["read", "write", "patch", "list", "create_dir", "search"],
        Meta(
            description="read: lines of a file. write: create or replace a whole file. patch: replace an exact piece "
            "of a file. list: files of a folder. create_dir: create a folder and its parents. search: matching lines."
        ),
    ]
    path: Annotated[str, Meta(description="File or folder, relative to the workspace. Default: the workspace.")] = "."
    content: Annotated[str, Meta(description="write: the complete new text.")] | UnsetType = UNSET
    old: Annotated[str, Meta(description="patch: the exact text to replace, with all whitespace; must occur once.")] = (
        ""
    )
    new: Annotated[str, Meta(description="patch: the replacement text.")] | UnsetType = UNSET
    replace_all: Annotated[bool, Meta(description="patch: replace every occurrence.")] = False
    start_line: Annotated[int, Meta(ge=1, description="read: first line, from 1.")] = 1
    end_line: Annotated[int, Meta(ge=0, description="read: last line; 0 for the end of the file.")] = 0
    pattern: Annotated[str, Meta(description="search: regular expression.")] = ""
    literal: Annotated[bool, Meta(description="search: treat the pattern as plain text.")] = False
    glob: Annotated[str, Meta(description="list, search: only these files, such as *.py or src/**/*.ts.")] = ""
    ignored: Annotated[bool, Meta(description="list, search: include files ignored by .gitignore.")] = False


class Code:
    name = "code"
    label = "Files"
    description = (
        "Work with files: read, write, patch, list, create_dir, search. Prefer patch to write for changes to a file. "
        "Lists and searches omit files ignored by .gitignore, and, below a folder, version control, node_modules and "
        "virtual environments."
    )
    parameters = schema_of(CodeArguments)
    # In order with others: a read that follows a write in the same reply must see it.
    execution_mode: ExecutionMode | ParallelWhere = ParallelWhere("action", frozenset({"read", "list", "search"}))

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._files = WorkspaceFiles(context)
        self._allowed: dict[str, Access] = {}

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        prepared: JsonObject = {key: value for key, value in arguments.items() if value is not None}
        for other, ours in _OTHER_NAMES.items():
            if other in prepared and ours not in prepared:
                prepared[ours] = prepared.pop(other)
        if prepared.get("action") == "list" and "glob" not in prepared and "pattern" in prepared:
            prepared["glob"] = prepared.pop("pattern")
        return prepared

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        action = text_argument(arguments, "action")
        running, done, icon = _DISPLAYS.get(action, (f"code {action}", f"code {action}", "tool"))
        is_path = action != "search"
        target = text_argument(arguments, "path" if is_path else "pattern") or "."
        return CallDisplay(running=running, done=done, target=target, target_is_path=is_path, icon=icon)

    def access(self, arguments: JsonObject) -> Access:
        wanted = decode(arguments, CodeArguments)
        path, action = resolve(wanted.path, self._context), wanted.action
        name = self._files.name(path)
        match action:
            case "read" | "list" | "search":
                text = f"{action.capitalize()} {name}"
                if self._is_task_output(path):
                    return Access("free", text)
                return Access("read", text, reads=(path,), operation=action, given=wanted.path)
            case "create_dir":
                return Access("write", f"Make the folder {name}", writes=(path,), operation=action, given=wanted.path)
            case "write" | "patch":
                verb = "Write" if action == "write" else "Change"
                basis = self._files.state(path)  # before the preview, so that a change between the two is detected
                preview = self._preview(wanted, path)
                return Access(
                    "write",
                    f"{verb} {name}",
                    writes=(path,),
                    preview=self._context.redactor.hide(preview.text),
                    operation=action,
                    basis=basis,
                    is_partial=preview.is_partial,
                    given=wanted.path,
                )

    def allow(self, call_id: str, access: Access) -> None:
        self._allowed[call_id] = access

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        wanted = decode(arguments, CodeArguments)
        allowed = self._allowed.pop(call_id, None)
        if cancel.is_set:
            raise ToolError("Operation aborted")
        is_over = False

        def run() -> ToolResult:
            return self._run(wanted, allowed, lambda: is_over or cancel.is_set)

        changes = wanted.action in ("write", "patch", "create_dir")
        work = asyncio.ensure_future(in_workspace(self._context.workspace, run, _PATIENCE_S))
        unsubscribe = cancel.subscribe(lambda: _abandon(work))
        try:
            return hidden(await work, self._context.redactor)
        except FolderNotAnswering as error:
            later = " It may still be done when that answers again." if changes else ""
            raise ToolError(f"{error}{later}") from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            later = ". It may still be done: the folder had not answered" if changes else ""
            raise ToolError(f"Operation aborted{later}") from None
        finally:
            is_over = True  # an abandoned call writes nothing later, unless it is writing already
            unsubscribe()
            work.cancel()

    def _run(self, wanted: CodeArguments, allowed: Access | None, is_cancelled: Callable[[], bool]) -> ToolResult:
        path = resolve(wanted.path, self._context)
        if allowed is not None and not self._is_allowed_path(path, allowed):
            raise with_real_path(path)
        basis = allowed.basis if allowed is not None and allowed.writes else None
        try:
            return self._run_action(wanted, path, basis, is_cancelled)
        except OSError as error:
            raise ToolError(f"{self._files.name(path)[:200]}: {error.strerror or error}") from error

    def _is_allowed_path(self, path: Path, allowed: Access) -> bool:
        return self._is_task_output(path) if allowed.tier == "free" else path in (*allowed.reads, *allowed.writes)

    def _is_task_output(self, path: Path) -> bool:
        """True for long output of the task's own commands, which the task may always read."""
        return path.is_relative_to(os.path.realpath(self._context.output_dir))

    def _run_action(
        self, wanted: CodeArguments, path: Path, basis: str | None, is_cancelled: Callable[[], bool]
    ) -> ToolResult:
        match wanted.action:
            case "read":
                return self._read(wanted, path)
            case "write" | "patch":
                return self._change(wanted, path, basis, is_cancelled)
            case "list":
                return self._list(wanted, path, is_cancelled)
            case "create_dir":
                return self._create_dir(path)
            case "search":
                return self._search(wanted, path, is_cancelled)

    def _read(self, wanted: CodeArguments, path: Path) -> ToolResult:
        # Without line numbers, since models copy the text into `old`.
        if wanted.end_line and wanted.end_line < wanted.start_line:
            raise ToolError(f"end_line {wanted.end_line} is before start_line {wanted.start_line}.")
        part = self._files.window(path, wanted.start_line, wanted.end_line)
        text = "\n".join(piece for piece in (part.text or "(empty)", part.note) if piece)
        count = part.last - part.first + 1
        details: JsonObject = {"path": str(path), "start_line": part.first, "end_line": part.last, "lines": part.total}
        return text_result(text, _counted(count, "line"), details)

    def _change(
        self, wanted: CodeArguments, path: Path, basis: str | None, is_cancelled: Callable[[], bool]
    ) -> ToolResult:
        is_new = not path.exists()
        load = self._files.current_file if wanted.action == "write" else self._files.load
        before = load(path, basis)
        text = self._new_text(wanted, before.text, path)
        if is_cancelled():
            raise ToolError("Operation aborted")
        change = self._files.replace(path, before, text)
        details: JsonObject = {
            "path": str(path),
            "diff": change.diff,
            "added": change.added,
            "removed": change.removed,
            "created": is_new,
        }
        verb = "Created" if is_new else "Changed"
        return text_result(f"{verb} {self._files.name(path)} ({change.summary})", change.summary, details)

    def _new_text(self, wanted: CodeArguments, before: str, path: Path) -> str:
        if wanted.action == "write":
            if wanted.content is UNSET:
                raise ToolError("write needs `content`, the whole new text; it may be empty.")
            return wanted.content
        if wanted.new is UNSET:
            raise ToolError("patch needs `new`, the text to put there; it may be empty.")
        old, new = _replacement(wanted, before)
        return replace_exactly(before, old, new, wanted.replace_all, self._files.name(path))

    def _preview(self, wanted: CodeArguments, path: Path) -> Preview:
        """What the call would change; empty if it would fail."""
        try:
            size = path.stat().st_size if path.exists() else 0
            file = self._files.current_file(path)
            before, after = file.text, self._new_text(wanted, file.text, path)
        except (ToolError, OSError):
            return Preview()
        preview = preview_diff(before, after, self._files.name(path))
        if preview is None and wanted.action == "patch":
            preview = preview_patch(before, *_replacement(wanted, before))
        elif preview is None:
            preview = preview_write(before, after)
        if size and not (before or file.bom):
            note = f"It replaces a binary file of {size:,} bytes."
            shown = preview.text.split("\n", 2)[2:] if preview.text.startswith("--- ") else [preview.text]
            return Preview("\n".join((note, *filter(None, shown))), is_partial=True)
        return preview

    def _list(self, wanted: CodeArguments, path: Path, is_cancelled: Callable[[], bool]) -> ToolResult:
        self._must_exist(path)
        ignore = None if wanted.ignored else GitIgnore(path)
        listing = list_files(path, wanted.glob, is_cancelled, ignore.leaves_out if ignore else keep_all)
        details: JsonObject = {"path": str(path), "count": len(listing.lines), "more": bool(listing.more)}
        text = _with_notes(listing.lines, "(nothing)", listing.more, ignore)
        return text_result(text, _counted(len(listing.lines), "entry", "entries"), details)

    def _create_dir(self, path: Path) -> ToolResult:
        is_new = not path.is_dir()
        note_own_write(path)
        with opened_folder(path, make=True):
            pass
        verb = "Created" if is_new else "There already is"
        return text_result(f"{verb} {self._files.name(path)}/", details={"path": str(path), "created": is_new})

    def _search(self, wanted: CodeArguments, path: Path, is_cancelled: Callable[[], bool]) -> ToolResult:
        if not wanted.pattern:
            raise ToolError("search needs `pattern`.")
        self._must_exist(path)
        ignore = None if wanted.ignored else GitIgnore(path)
        leaves_out = ignore.leaves_out if ignore else keep_all
        found = search(path, wanted.pattern, wanted.literal, wanted.glob, is_cancelled, leaves_out)
        text = _with_notes(found.lines, "(no hits)", found.more, ignore)
        details: JsonObject = {"hits": len(found.lines), "files": found.files, "more": found.more}
        return text_result(text, f"{_counted(len(found.lines), 'hit')} in {_counted(found.files, 'file')}", details)

    def _must_exist(self, path: Path) -> None:
        if not path.exists():
            raise ToolError(f"There is no {self._files.name(path)}. List the folder above it to see what there is.")


def _replacement(wanted: CodeArguments, before: str) -> tuple[str, str]:
    """The old and new text of a patch, with the newlines of the file."""
    old, new = wanted.old, wanted.new or ""
    if "\r\n" in old and "\r\n" not in before:
        return old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    return old, new


def _with_notes(lines: list[str], nothing: str, more: str, ignore: GitIgnore | None) -> str:
    whole = [*lines, *([f"[{more}]"] if more else [])] or [nothing]
    if ignore and ignore.has_left_out:
        whole.append("[what .gitignore names is left out; set ignored to have it]")
    return "\n".join(whole)


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one}" if number == 1 else f"{number:,} {many or one + 's'}"


def _abandon(work: "asyncio.Future[ToolResult]") -> None:
    """Wait no longer for a stopped call than a file on a working disk takes; its thread ends by itself."""
    asyncio.get_running_loop().call_later(_STOPPED_S, work.cancel)
