"""The state of changed files for people: lists, diffs, and single hunks."""

import os
from collections import defaultdict
from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec

from errand.engine.checkpoints.contents import id_of
from errand.engine.checkpoints.history import CannotRestore, FileHistory, Version
from errand.engine.checkpoints.renames import renamed_files
from errand.engine.tools.code.edits import Hunk, diff_texts, text_hunks, text_lines
from errand.engine.tools.code.text_file import TextFile, decode
from errand.engine.tools.plain_text import clean_name
from errand.protocol.changes import (
    FOLDER,
    NOTHING,
    UNKEPT,
    ChangedFile,
    ChangeDiffResult,
    ChangedStep,
    DiffHunk,
    FileDiff,
    FileState,
    TaskChanges,
    UndoneHunk,
)
from errand.protocol.tasks.task import Task

# Of one answer, which has to fit a message.
_MAX_CHARACTERS = 3_000_000


def name_of(path: str, workspace: str) -> str:
    """Return the path as people read it: relative inside the workspace."""
    folder = _real(workspace)
    return clean_name(os.path.relpath(path, folder) if Path(path).is_relative_to(folder) else path)


@cache
def _real(workspace: str) -> str:
    return os.path.realpath(workspace)


def changes_of(task: Task, histories: list[FileHistory]) -> TaskChanges:
    return TaskChanges(
        task_id=task.id,
        conversation_id=task.conversation_id,
        files=_with_renames(histories, [_file(history, task.request.workspace) for history in histories]),
        steps=_steps(histories),
    )


def _with_renames(histories: list[FileHistory], files: list[ChangedFile]) -> tuple[ChangedFile, ...]:
    """Count a renamed file's changed lines once: it has those that are changed in it, and the one that it was has
    none.
    """
    for now, old in renamed_files(histories, files).items():
        added, removed = _renamed_counts(histories[old], histories[now])
        files[now] = msgspec.structs.replace(files[now], renamed_from=files[old].name, added=added, removed=removed)
        files[old] = msgspec.structs.replace(files[old], renamed_to=files[now].name, added=0, removed=0)
    return tuple(files)


def _renamed_counts(old: FileHistory, now: FileHistory) -> tuple[int, int]:
    if old.base == now.head:
        return 0, 0
    hunks = text_hunks(_text(old, old.base).text, _text(now, now.head).text)
    return sum(hunk.added for hunk in hunks), sum(hunk.removed for hunk in hunks)


def renamed_diff(histories: list[FileHistory], path: str, workspace: str) -> FileDiff | None:
    """Return a renamed file compared with what it was, which itself has no lines; None if the file is neither."""
    renamed = renamed_files(histories, [_file(history, workspace) for history in histories])
    number = next(number for number, history in enumerate(histories) if history.path == path)
    history = histories[number]
    if number in renamed.values():
        return FileDiff(path=path, name=name_of(path, workspace), hunks=(), added=0, removed=0)
    if number not in renamed:
        return None
    old = histories[renamed[number]]
    name, was = name_of(path, workspace), name_of(old.path, workspace)
    if old.base == history.head:
        return FileDiff(path=path, name=name, hunks=(), added=0, removed=0, renamed_from=was)
    diff, _ = _file_diff(history, old.base, history.head, workspace, _MAX_CHARACTERS, old)
    return msgspec.structs.replace(diff, renamed_from=was)


def _file(history: FileHistory, workspace: str) -> ChangedFile:
    added, removed, note = _counts(history)
    state: FileState = "changed" if history.base != history.head else "undone"
    missing = [unit for unit in history.units if not history.has(unit.before)]
    if missing:
        state, note = "not_kept", "What it had before is not kept any more, so it cannot be undone."
        if any(unit.before == UNKEPT for unit in missing):
            note = "A command changed it, and what it had before could not be kept, so it cannot be undone."
    elif history.is_changed_since:
        who = "another task" if history.changed_by else "somebody else"
        state, note = "changed_since", f"Changed since by {who}: undoing it would replace their version."
    edits = [unit for unit in history.active if unit.kind != "hunk"]
    hunks = [unit for unit in history.active if unit.kind == "hunk"]
    undone = [unit for unit in history.inactive if unit.kind != "hunk"]
    return ChangedFile(
        path=history.path,
        name=name_of(history.path, workspace),
        state=state,
        added=added,
        removed=removed,
        steps=tuple(sorted({unit.step for unit in edits})),
        undone_steps=tuple(sorted({unit.step for unit in undone})),
        command_steps=tuple(sorted({unit.step for unit in history.units if unit.kind == "command"})),
        undone_hunks=tuple(UndoneHunk(change_id=unit.id, added=unit.added, removed=unit.removed) for unit in hunks),
        is_new=history.units[0].before == NOTHING,
        is_deleted=history.head == NOTHING and history.base != NOTHING,
        is_folder=FOLDER in (history.units[0].before, history.units[0].after)
        and {history.base, history.head} <= {NOTHING, FOLDER},
        is_binary=not (added or removed or missing) and state != "undone" and _is_binary(history),
        can_undo=bool(edits) and not missing and history.base != history.head,
        can_redo=bool(undone) or bool(hunks),
        note=note,
    )


def _is_binary(history: FileHistory) -> bool:
    """Asked only for files without changed lines: it reads both contents."""
    try:
        return None in (decode(history.data(history.base)), decode(history.data(history.head)))
    except CannotRestore:
        return False


def _steps(histories: list[FileHistory]) -> tuple[ChangedStep, ...]:
    of_step: defaultdict[int, list[tuple[FileHistory, int]]] = defaultdict(list)
    for history in histories:
        for number, unit in enumerate(history.units):
            if unit.kind != "hunk":
                of_step[unit.step].append((history, number))
    return tuple(
        ChangedStep(
            step=step,
            at=min(history.units[number].at for history, number in units),
            files=len({history.path for history, _ in units}),
            added=sum(history.units[number].added for history, number in units),
            removed=sum(history.units[number].removed for history, number in units),
            can_undo=any(history.units[number] in history.active for history, number in units),
            can_redo=any(history.units[number] in history.inactive for history, number in units),
        )
        for step, units in sorted(of_step.items())
    )


def _counts(history: FileHistory) -> tuple[int, int, str]:
    """Lines added and removed by what is in effect."""
    if history.base == history.head:
        return 0, 0, ""
    if len(history.active) == 1:
        return history.active[0].added, history.active[0].removed, ""
    try:
        hunks = text_hunks(_text(history, history.base).text, _text(history, history.head).text)
    except CannotRestore as error:
        return 0, 0, str(error)
    return sum(hunk.added for hunk in hunks), sum(hunk.removed for hunk in hunks), ""


def diff_of(
    histories: list[FileHistory], workspace: str, step: int | None, *, previews: bool = False
) -> ChangeDiffResult:
    """Return the diffs of these files, or of what one step changed in them.

    With `previews`, files whose changes are all undone have what a redo brings.
    """
    files: list[FileDiff] = []
    left = _MAX_CHARACTERS
    for number, history in enumerate(histories):
        before, after = _ends(history, step)
        is_undone = previews and step is None and before == after
        if is_undone:
            after = _redone(history)
        if before == after:
            continue
        diff, size = _file_diff(history, before, after, workspace, left)
        diff = msgspec.structs.replace(diff, is_undone=True) if is_undone else diff
        files.append(diff)
        left -= size
        if left <= 0:
            return ChangeDiffResult(files=tuple(files), left_out=len(histories) - number - 1)
    return ChangeDiffResult(files=tuple(files))


def _ends(history: FileHistory, step: int | None) -> tuple[str, str]:
    """Return the contents to compare."""
    if step is None:
        return history.base, history.head
    units = [unit for unit in history.units if unit.step == step and unit.kind != "hunk"]
    return (units[0].before, units[-1].after) if units else (NOTHING, NOTHING)


def _redone(history: FileHistory) -> str:
    """Return the content that the file gets if all its changes are redone; what it has if that cannot be said."""
    hunks = [unit for unit in history.active if unit.kind == "hunk"]
    start = Version(history.head)
    try:
        if history.inactive:
            return history.with_again(history.inactive, start).content
        return history.without(hunks, start).content
    except CannotRestore:
        return history.head


def _file_diff(
    history: FileHistory, before: str, after: str, workspace: str, most: int, old: FileHistory | None = None
) -> tuple[FileDiff, int]:
    """Return the diff and its size in characters; hunks beyond `most` are left out.

    `before` is a content of `old`, if any.
    """
    name, note = name_of(history.path, workspace), ""
    all_hunks: list[Hunk] = []
    try:
        all_hunks = text_hunks(_text(old or history, before).text, _text(history, after).text)
    except CannotRestore as error:
        note = f"It cannot be compared: {error}."
    if FOLDER in (before, after):
        note = "A folder."
    hunks: list[DiffHunk] = []
    size = 0
    for hunk in all_hunks:
        size += len(hunk.text)
        if size > most:
            note = f"{len(all_hunks) - len(hunks)} more hunks are left out: the diff is too large."
            break
        hunks.append(
            DiffHunk(id=_hunk_id(hunk), header=hunk.header, text=hunk.text, added=hunk.added, removed=hunk.removed)
        )
    added, removed = sum(hunk.added for hunk in all_hunks), sum(hunk.removed for hunk in all_hunks)
    return FileDiff(path=history.path, name=name, hunks=tuple(hunks), added=added, removed=removed, note=note), size


def hunk_undone(history: FileHistory, hunk_id: str, mode: int | None) -> Version:
    """Return the file without one hunk of its diff. Raises `CannotRestore` if the diff has no such hunk any more."""
    base, head = _text(history, history.base), _text(history, history.head)
    hunk = next((candidate for candidate in text_hunks(base.text, head.text) if _hunk_id(candidate) == hunk_id), None)
    if hunk is None:
        raise CannotRestore("this part has changed meanwhile; look at it again")
    old, new = text_lines(base.text), text_lines(head.text)
    text = "".join((*new[: hunk.new_at], *old[hunk.old_at : hunk.old_end], *new[hunk.new_end :]))
    if text == base.text:
        unit = history.units[0]
        base_data = None if history.base == NOTHING else history.data(history.base)
        return Version(history.base, base_data, unit.mode, unit.made_folders)
    if head.encode(head.text) != history.data(history.head):
        raise CannotRestore("its parts cannot be undone alone; undo the whole file")
    data = head.encode(text)
    return Version(id_of(data), data, mode)


def line_counts(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Return the lines added and removed between two contents; none if one of them is binary."""
    old, new = decode(before or b""), decode(after or b"")
    if old is None or new is None:
        return 0, 0
    change = diff_texts(old.text, new.text, "", 0)
    return change.added, change.removed


def _text(history: FileHistory, content: str) -> TextFile:
    file = decode(history.data(content))
    if file is None:
        raise CannotRestore("it is binary")
    return file


def _hunk_id(hunk: Hunk) -> str:
    return blake2b(f"{hunk.header}\n{hunk.text}".encode(errors="surrogatepass"), digest_size=8).hexdigest()
