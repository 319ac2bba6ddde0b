"""The tool `code`; the modules beside it implement its actions."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import UNSET

from errand.engine.core.cancel import CancelSignal
from errand.engine.sandbox.protected_files import note_own_write
from errand.engine.tools.arguments import decode, schema_of, text_argument, whole_number
from errand.engine.tools.base import Access, ExecutionMode, ParallelWhere, PermissionTier
from errand.engine.tools.checkpoints import FileChange, missing_folders
from errand.engine.tools.code.arguments import CodeArguments, Edit, repaired
from errand.engine.tools.code.edits import Replacement, file_edit, replace_text
from errand.engine.tools.code.preview import Preview, preview_diff, preview_edits, preview_write
from errand.engine.tools.code.search import list_files, search
from errand.engine.tools.code.workspace_files import PreparedWrite, WorkspaceFiles
from errand.engine.tools.context import ToolContext
from errand.engine.tools.files.file_walk import keep_all
from errand.engine.tools.files.git_excludes import personal_excludes
from errand.engine.tools.files.gitignore import GitIgnore
from errand.engine.tools.files.path_calls import PathCall, PathCalls
from errand.engine.tools.files.quoted_name import quoted
from errand.engine.tools.files.real_path import opened_folder
from errand.engine.tools.plain_text import is_text
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, facts_of_files, hidden_edit, text_result
from errand.protocol.base import JsonObject
from errand.protocol.blocks import CallDisplay, FileEdit, Location, ToolKind
from errand.protocol.changes import FOLDER, NOTHING
from errand.text.translation import marked

_LOOKING = frozenset(("read", "list", "search"))
_MAX_PATTERN_LENGTH = 100

_DISPLAYS: dict[str, tuple[str, str, ToolKind, str]] = {
    "read": (marked("reading"), marked("read"), "read", "file-text"),
    "write": (marked("writing"), marked("wrote"), "edit", "file-plus"),
    "patch": (marked("changing"), marked("changed"), "edit", "file-pen"),
    "edit": (marked("changing"), marked("changed"), "edit", "file-pen"),
    "list": (marked("listing"), marked("listed"), "search", "folder"),
    "create_dir": (marked("making"), marked("made"), "edit", "folder"),
    "search": (marked("searching for"), marked("searched for"), "search", "text-search"),
}


class Code:
    name = "code"
    label = "Files"
    description = (
        "Work with files. To change one, prefer patch, or edit for several places, to write. Lists and searches leave "
        "out what .gitignore names and, below their folder, version control, node_modules and virtual environments."
    )
    parameters = schema_of(CodeArguments)
    tier: PermissionTier = "write"
    activity = marked("working with files")
    # In order with others: a read that follows a write in the same reply must see it.
    execution_mode: ExecutionMode | ParallelWhere = ParallelWhere("action", _LOOKING)

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._calls = PathCalls(context)
        self._files = WorkspaceFiles(context, self._calls)

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return repaired(arguments)

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        action = text_argument(arguments, "action")
        running, done, kind, icon = _DISPLAYS.get(action, (f"code {action}", f"code {action}", "other", "wrench"))
        is_path = action != "search"
        path, line = text_argument(arguments, "path") or ".", arguments.get("start_line")
        return CallDisplay(
            kind=kind,
            running=running,
            done=done,
            target=path if is_path else text_argument(arguments, "pattern") or ".",
            target_is_path=is_path,
            icon=icon,
            locations=(Location(path=path, line=whole_number(line) or None),),
        )

    def access(self, arguments: JsonObject) -> Access:
        request = decode(arguments, CodeArguments)
        action = request.action
        match action:
            case "read" | "list":
                return self._calls.read_access(request.path, f"{action.capitalize()} {{name}}", action)
            case "search":
                pattern = request.pattern[:_MAX_PATTERN_LENGTH].replace("{", "{{").replace("}", "}}")
                return self._calls.read_access(request.path, f"Search {{name}} for {pattern}", action)
            case "create_dir" | "write" | "patch" | "edit":
                return self._write_access(request, action)

    def _write_access(self, request: CodeArguments, action: str) -> Access:
        path, path_as_given = self._calls.resolve(request.path, changes=True), self._calls.given(request.path)
        name = self._calls.name(path)
        if action == "create_dir":
            return Access(
                "write", f"Make the folder {name}", writes=(path,), operation=action, named_path=path_as_given
            )
        basis = self._files.state(path)  # before the preview, so that a change between the two is detected
        preview = self._preview(request, path)
        return Access(
            "write",
            f"{'Write' if action == 'write' else 'Change'} {name}",
            writes=(path,),
            preview=self._context.redactor.hide(preview.text),
            edits=(hidden_edit(preview.edit, self._context.redactor),) if preview.edit else (),
            operation=action,
            basis=basis,
            is_partial=preview.is_partial,
            named_path=path_as_given,
        )

    def allow(self, call_id: str, access: Access) -> None:
        self._calls.allow(call_id, access)

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        request = decode(arguments, CodeArguments)

        def work(call: PathCall) -> ToolResult:
            result = self._run_action(request, call)
            return self._write(call, result) if isinstance(result, _Write) else result

        return await self._calls.run(call_id, request.path, cancel, work, changes=request.action not in _LOOKING)

    def _write(self, call: PathCall, prepared: "_Write") -> ToolResult:
        """Make the change once what it replaces is kept."""
        checkpoints, noted = self._context.checkpoints, None
        if checkpoints is not None and prepared.change is not None:
            noted = checkpoints.note(call.id, prepared.change)
        try:
            if call.is_cancelled():
                raise ToolError("Operation aborted")
            result = prepared.make()
        except (ToolError, OSError):
            if checkpoints is not None and noted is not None:
                checkpoints.failed(noted)
            raise
        if checkpoints is not None and noted is not None:
            checkpoints.made(noted)
        return result

    def _detail(self, path: Path) -> str:
        """Return the path for the record of the call."""
        return str(path) if is_text(str(path)) else quoted(str(path))

    def _run_action(self, request: CodeArguments, call: PathCall) -> "ToolResult | _Write":
        path, is_cancelled = call.path, call.is_cancelled
        match request.action:
            case "read":
                return self._read(request, path, is_cancelled)
            case "write" | "patch" | "edit":
                return self._change(request, path, call.basis, is_cancelled)
            case "list":
                return self._list(request, path, is_cancelled)
            case "create_dir":
                return self._create_dir(path)
            case "search":
                return self._search(request, path, is_cancelled)

    def _read(self, request: CodeArguments, path: Path, is_cancelled: Callable[[], bool]) -> ToolResult:
        # Without line numbers, since models copy the text into `old`.
        if request.end_line and request.end_line < request.start_line:
            raise ToolError(f"end_line {request.end_line} is before start_line {request.start_line}.")
        part = self._files.window(path, request.start_line, request.end_line, is_cancelled)
        is_past_end = part.total is not None and request.end_line > max(part.total, 1)
        end = f"[the file ends at line {part.total:,}]" if is_past_end else ""
        text = "\n".join(piece for piece in (part.text or "(empty)", part.note, end) if piece)
        count = part.last - part.first + 1
        details: JsonObject = {
            "path": self._detail(path),
            "start_line": part.first,
            "end_line": part.last,
            "lines": part.total,
            **facts_of_files(Location(path=self._detail(path), line=part.first)),
        }
        return text_result(text, _counted(count, "line"), details)

    def _change(
        self, request: CodeArguments, path: Path, basis: str | None, is_cancelled: Callable[[], bool]
    ) -> "_Write":
        self._files.check_writable(path)
        before = (self._files.current_file if request.action == "write" else self._files.load)(path, basis)
        text, edits = self._new_text(request, before.file.text, path)
        if is_cancelled():
            raise ToolError("Operation aborted")
        prepared = self._files.prepare(before, text)

        def make() -> ToolResult:
            self._files.write(prepared)
            return self._changed(path, prepared, _notes(edits))

        return _Write(make, _file_change(prepared))

    def _changed(self, path: Path, prepared: PreparedWrite, notes: str) -> ToolResult:
        is_new, change = prepared.before.data is None, prepared.diff
        edit = file_edit(str(path), change.hunks, is_new=is_new)
        line = edit.parts[0].line if edit.parts else None
        details: JsonObject = {
            "path": str(path),
            "diff": change.diff,
            "added": change.added,
            "removed": change.removed,
            "created": is_new,
            **facts_of_files(Location(path=str(path), line=line), edits=(edit,)),
        }
        text = f"{'Created' if is_new else 'Changed'} {self._calls.name(path)} ({change.summary})"
        return text_result("\n".join(filter(None, (text, notes))), change.summary, details)

    def _new_text(self, request: CodeArguments, before: str, path: Path) -> tuple[str, list[Replacement]]:
        """Return the new text of the file, and how the edits that make it are applied."""
        if request.action == "write":
            if request.content is UNSET:
                raise ToolError("write needs `content`, the whole new text; it may be empty.")
            return request.content, []
        wanted_edits = request.edits
        if request.action == "patch":
            if request.new is UNSET:
                raise ToolError("The new text is missing; it may be empty.")
            wanted_edits = (Edit(request.old, request.new, request.replace_all),)
        if not wanted_edits:
            raise ToolError("edit needs `edits`, a list of {old, new}.")
        edits: list[Replacement] = []
        for number, edit in enumerate(wanted_edits, start=1):
            text = edits[-1].text if edits else before
            old, new = _with_newlines_of(text, edit)
            try:
                edits.append(replace_text(text, old, new, edit.replace_all, self._calls.name(path)))
            except ToolError as error:
                if len(wanted_edits) == 1:
                    raise
                head = f"Edit {number} of {len(wanted_edits)}"
                raise ToolError(f"{head}: {error} Nothing was changed.", f"{head}: {error.summary}") from error
        return edits[-1].text, edits

    def _preview(self, request: CodeArguments, path: Path) -> Preview:
        """Return what the call would change; empty if it would fail."""
        try:
            loaded = self._files.current_file(path)
            file = loaded.file
            before, (after, edits) = file.text, self._new_text(request, file.text, path)
        except (ToolError, OSError):
            return Preview()
        is_new, cut_edit = loaded.data is None, FileEdit(path=str(path), is_new=loaded.data is None, is_cut=True)
        change = preview_diff(before, after, self._calls.name(path))
        if change is None:
            preview = preview_edits(before, edits) if edits else preview_write(before, after)
        else:
            preview = Preview(change.diff, change.is_cut)
        if loaded.data and not (before or file.bom):
            note = f"It replaces a binary file of {len(loaded.data):,} bytes."
            diff_lines = preview.text.split("\n", 2)[2:] if preview.text.startswith("--- ") else [preview.text]
            return Preview("\n".join((note, *filter(None, diff_lines))), is_partial=True, edit=cut_edit)
        edit = cut_edit if change is None else file_edit(str(path), change.hunks, is_new=is_new)
        return replace(preview, edit=edit)

    def _list(self, request: CodeArguments, path: Path, is_cancelled: Callable[[], bool]) -> ToolResult:
        self._must_exist(path)
        ignore = self._ignored(request, path)
        leaves_out = ignore.leaves_out if ignore else keep_all
        listing = list_files(path, self._prefix(path), request.glob, is_cancelled, leaves_out)
        details: JsonObject = {
            "path": self._detail(path),
            "count": len(listing.lines),
            "more": bool(listing.more),
            **facts_of_files(Location(path=self._detail(path))),
        }
        text = _with_notes(listing.lines, "(nothing)", [listing.more, *listing.notes], ignore)
        return text_result(text, _counted(len(listing.lines), "entry", "entries"), details)

    def _create_dir(self, path: Path) -> "_Write":
        is_new = not path.is_dir()

        def make() -> ToolResult:
            note_own_write(path)
            with opened_folder(path, make=True):
                pass
            verb = "Created" if is_new else "There already is"
            facts = facts_of_files(Location(path=str(path)))
            details: JsonObject = {"path": str(path), "created": is_new, **facts}
            return text_result(f"{verb} {self._calls.name(path)}/", details=details)

        is_free = is_new and not os.path.lexists(path)
        new_folders = missing_folders(path) if is_free else 0
        return _Write(make, FileChange(path, NOTHING, FOLDER, made_folders=new_folders) if is_free else None)

    def _search(self, request: CodeArguments, path: Path, is_cancelled: Callable[[], bool]) -> ToolResult:
        if not request.pattern:
            raise ToolError("search needs `pattern`.")
        self._must_exist(path)
        ignore = self._ignored(request, path)
        leaves_out = ignore.leaves_out if ignore else keep_all
        prefix = self._prefix(path if path.is_dir() else path.parent)
        hits = search(path, prefix, request.pattern, request.literal, request.glob, is_cancelled, leaves_out)
        text = _with_notes(hits.lines, "(no hits)", [hits.more, *hits.notes(prefix)], ignore)
        details: JsonObject = {
            "hits": len(hits.lines),
            "files": hits.files,
            "more": hits.more,
            **facts_of_files(Location(path=self._detail(path))),
        }
        return text_result(text, f"{_counted(len(hits.lines), 'hit')} in {_counted(hits.files, 'file')}", details)

    def _prefix(self, folder: Path) -> str:
        """Return what to put before names in a folder, so that they are paths for the next call."""
        name = self._calls.path_from_workspace(folder)
        return "" if name == "." else f"{name.rstrip('/')}/"

    def _ignored(self, request: CodeArguments, path: Path) -> GitIgnore | None:
        return None if request.ignored else GitIgnore(path, personal_excludes(self._context.environment))

    def _must_exist(self, path: Path) -> None:
        if not path.exists():
            hint = self._files.hint(path) or " List the folder above it to see what there is."
            raise ToolError(f"There is no {self._calls.name(path)}.{hint}")


@dataclass(frozen=True, slots=True)
class _Write:
    """A write that has been prepared: `make` does it, `change` is what it changes, if anything."""

    make: Callable[[], ToolResult]
    change: FileChange | None


def _file_change(prepared: PreparedWrite) -> FileChange | None:
    before = prepared.before
    if before.data == prepared.data:
        return None
    return FileChange(
        before.path,
        NOTHING if before.data is None else before.data,
        prepared.data,
        before.mode,
        missing_folders(before.path) if before.data is None else 0,
        prepared.diff.added,
        prepared.diff.removed,
    )


def _with_newlines_of(text: str, edit: Edit) -> tuple[str, str]:
    """Return the old and new text of an edit, with the newlines of the file."""
    if "\r\n" in edit.old and "\r\n" not in text:
        return edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
    return edit.old, edit.new


def _notes(edits: list[Replacement]) -> str:
    noted = [(number, edit.note) for number, edit in enumerate(edits, start=1) if edit.note]
    return "\n".join(f"[{f'edit {number}: ' if len(edits) > 1 else ''}{note}]" for number, note in noted)


def _with_notes(lines: list[str], nothing: str, notes: list[str], ignore: GitIgnore | None) -> str:
    all_lines = (lines or [nothing]) + [f"[{note}]" for note in notes if note]
    if ignore and ignore.has_left_out:
        all_lines.append("[what .gitignore names is left out; set ignored to have it]")
    return "\n".join(all_lines)


def _counted(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular}" if number == 1 else f"{number:,} {plural or singular + 's'}"
