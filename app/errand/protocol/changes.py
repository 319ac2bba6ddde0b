"""Changes of files by tasks. Each is recorded before it is made, so that it can be undone, also after a crash."""

from typing import Final, Literal

from errand.protocol.base import Method, Timestamp, Wire

# Contents that have no bytes: there is no file, or there is a folder.
NOTHING: Final = ""
FOLDER: Final = "folder"
# What a command changed and was not kept: it was too large, could not be read, or git lost it.
UNKEPT: Final = "unkept"

# `edit` and `command`: by a task. `hunk`: a piece that a person undid. `undo` and `redo` name what they concern.
ChangeKind = Literal["edit", "command", "hunk", "undo", "redo"]
# `undone`: nothing of the task's change is left. `changed_since`: somebody else changed the file afterwards.
# `not_kept`: what it had before is not kept any more, so it cannot be undone.
FileState = Literal["changed", "undone", "changed_since", "not_kept"]


class Change(Wire, frozen=True, kw_only=True):
    """A change of one file. `before` and `after` identify contents: empty for no file, `folder` for a folder, and
    `unkept` before, if a command changed something that was not kept.

    `step` is the turn of the task. `mode` and `mode_after` are permissions, null for the default of a new file.
    `made_folders` counts the folders above that it made. `changes` are those that an `undo` or `redo` concerns. `by` is
    who undid it. `failed`: it was not made after all.
    """

    id: str
    task_id: str
    conversation_id: str
    step: int
    kind: ChangeKind
    path: str
    at: Timestamp
    before: str
    after: str
    call_id: str = ""
    mode: int | None = None
    mode_after: int | None = None
    made_folders: int = 0
    added: int = 0
    removed: int = 0
    changes: tuple[str, ...] = ()
    by: str = ""
    failed: bool = False


class UndoneHunk(Wire, frozen=True, kw_only=True):
    """A piece of a file that was undone alone; `change_id` names it for `change/redo`."""

    change_id: str
    added: int
    removed: int


class ChangedFile(Wire, frozen=True, kw_only=True):
    """A file that a task changed, or a folder that it made or deleted.

    `name` is relative to the workspace; the counts are lines that are changed now.
    `steps` have changed it, `undone_steps` are those undone; in `command_steps` a command did. `note` says in words
    what is special about it. `renamed_from` and `renamed_to` name the deleted or the new file with the same or a
    similar content; the lines of a renamed file are those that differ.
    """

    path: str
    name: str
    state: FileState
    added: int
    removed: int
    steps: tuple[int, ...]
    undone_steps: tuple[int, ...] = ()
    command_steps: tuple[int, ...] = ()
    undone_hunks: tuple[UndoneHunk, ...] = ()
    is_new: bool = False
    is_deleted: bool = False
    is_folder: bool = False
    is_binary: bool = False
    renamed_from: str = ""
    renamed_to: str = ""
    can_undo: bool = False
    can_redo: bool = False
    note: str = ""


class ChangedStep(Wire, frozen=True, kw_only=True):
    """A step of a task that changed files."""

    step: int
    at: Timestamp
    files: int
    added: int
    removed: int
    can_undo: bool
    can_redo: bool


class TaskChanges(Wire, frozen=True, kw_only=True):
    """The files that a task changed, in the order of their first change, and its steps."""

    task_id: str
    conversation_id: str
    files: tuple[ChangedFile, ...]
    steps: tuple[ChangedStep, ...]


class ChangeListParams(Wire, frozen=True, kw_only=True):
    """The changes of a task, or of all tasks of a conversation."""

    task_id: str | None = None
    conversation_id: str | None = None


class ChangeListResult(Wire, frozen=True, kw_only=True):
    """Tasks that changed nothing are left out; the newest comes first."""

    tasks: tuple[TaskChanges, ...]


class ChangeDiffParams(Wire, frozen=True, kw_only=True):
    """Compare all files of a task, one file, or what one step changed.

    `renames`: a renamed file that is named is compared with what it was, instead of with nothing. Its hunks cannot be
    undone one by one.
    """

    task_id: str
    path: str | None = None
    step: int | None = None
    renames: bool = False


class DiffHunk(Wire, frozen=True, kw_only=True):
    """A piece of a unified diff: `header` is its `@@` line, `text` the lines below. `id` names it for `change/undo`."""

    id: str
    header: str
    text: str
    added: int
    removed: int


class FileDiff(Wire, frozen=True, kw_only=True):
    """`note` says in words why there are no hunks, or not all.

    `is_undone`: all changes of the file are undone, and this is what a redo brings. Only if the file is named.
    `renamed_from` is the name of the file that it was compared with.
    """

    path: str
    name: str
    hunks: tuple[DiffHunk, ...]
    added: int
    removed: int
    note: str = ""
    is_undone: bool = False
    renamed_from: str = ""


class ChangeDiffResult(Wire, frozen=True, kw_only=True):
    """`left_out` counts further files that would make the answer too large: ask for them alone."""

    files: tuple[FileDiff, ...]
    left_out: int = 0


class ChangeUndoParams(Wire, frozen=True, kw_only=True):
    """Undo or redo all changes of a task, or only those of a file, of a step, or one hunk of a file.

    `hunk` is the id of a hunk to undo, or the `change_id` of one to redo. `overwrite` replaces versions that somebody
    else has made since; they are kept, so that the opposite command restores them.
    """

    task_id: str
    path: str | None = None
    step: int | None = None
    hunk: str | None = None
    overwrite: bool = False


class ChangeConflict(Wire, frozen=True, kw_only=True):
    """Why a file was left as it is, in words. `can_overwrite`: the command works with `overwrite`, and makes the file
    again if it `is_gone`.
    """

    path: str
    name: str
    text: str
    can_overwrite: bool = False
    is_gone: bool = False


class ChangeUndoResult(Wire, frozen=True, kw_only=True):
    """The changes that were made. `conflicts` are the files that were left as they are."""

    changes: tuple[Change, ...]
    conflicts: tuple[ChangeConflict, ...] = ()


CHANGE_LIST = Method(
    "change/list", ChangeListParams, ChangeListResult, False, "List the files that tasks changed, and their state."
)
CHANGE_DIFF = Method("change/diff", ChangeDiffParams, ChangeDiffResult, False, "Compare changed files.")
CHANGE_UNDO = Method("change/undo", ChangeUndoParams, ChangeUndoResult, True, "Undo changes of files.")
CHANGE_REDO = Method("change/redo", ChangeUndoParams, ChangeUndoResult, True, "Redo changes that were undone.")

METHODS = (CHANGE_LIST, CHANGE_DIFF, CHANGE_UNDO, CHANGE_REDO)
