"""The changes of one file by one task: which are in effect, and what the file becomes if some are undone or redone.

A record is written before its change is made. The file itself tells whether it was made: the next record, or the file
as it is now, has the content from before or that from after. So an engine may be killed at any instant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

from errand.engine.checkpoints.contents import ContentStore, id_of
from errand.engine.tools.code.edits import changed_ranges
from errand.protocol.changes import FOLDER, NOTHING, Change

Direction = Literal["undo", "redo"]

# Longer texts are only restored as a whole.
_MAX_MERGED_LENGTH = 5_000_000

# Lines of the base from and to, and the lines that replace them.
_Change: TypeAlias = tuple[int, int, tuple[str, ...]]


class CannotRestore(Exception):
    """A version of a file cannot be made; the text says why."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a file. `content` is its id; `data` has the bytes, None for no file and for a folder.

    `mode` has the permissions, None to leave them. `made_folders` counts folders above that go with the file.
    """

    content: str
    data: bytes | None = None
    mode: int | None = None
    made_folders: int = 0


class FileHistory:
    """`records` are all changes of the file by any task, oldest first; `current` is the content that it has now."""

    def __init__(self, task_id: str, records: Sequence[Change], current: str, contents: ContentStore) -> None:
        self.path = records[0].path
        self.current = current
        self._contents = contents
        self._merged: dict[str, bytes] = {}
        self._records = _applied_changes(records, current)
        self.own = [record for record in self._records if record.task_id == task_id]
        # A change that was recorded, but never made, can still be made.
        own_ids = {record.id for record in self.own} | {named for record in self.own for named in record.changes}
        self.units = [
            record
            for record in records
            if record.task_id == task_id
            and record.kind not in ("undo", "redo")
            and (record.id in own_ids or not self.own)
        ]
        active, taken_back = _in_effect(self.own)
        self.active = [unit for unit in self.units if unit.id in active]
        self.inactive = [unit for unit in self.units if unit.id not in active | taken_back]

    @property
    def head(self) -> str:
        """The content that the task, or the person who undid something of it, left there."""
        return self.own[-1].after if self.own else self.current

    @property
    def changed_by(self) -> str:
        """The id of another task that changed the file last; `""` if nobody else did, or it is not known who."""
        last = self._records[-1] if self._records else None
        is_other = last is not None and last.task_id != self.own[-1].task_id and last.after == self.current
        return last.task_id if last is not None and is_other else ""

    @property
    def is_changed_since(self) -> bool:
        return bool(self.own) and self.current != self.head

    @cached_property
    def base(self) -> str:
        """The content without what the task changed: what others changed between its steps is in it."""
        if not self.active:
            return self.head
        try:
            return self.without(self.active, Version(self.head)).content
        except CannotRestore:
            return self.active[0].before

    def has(self, content: str) -> bool:
        """Return True if the bytes of a content are kept."""
        return content in (NOTHING, FOLDER) or content in self._merged or self._contents.has(content)

    def data(self, content: str) -> bytes:
        """Return the bytes of a content, none for no file. Raises `CannotRestore` if they are not kept any more."""
        if content in (NOTHING, FOLDER):
            return b""
        data = self._merged[content] if content in self._merged else self._contents.get(content)
        if data is None:
            raise CannotRestore("what it had before is not kept any more")
        return data

    def without(self, units: Sequence[Change], start: Version) -> Version:
        """Return the file without these changes. Raises `CannotRestore` if that cannot be said for sure."""
        version = start
        for unit in reversed(units):
            target = Version(unit.before, mode=unit.mode, made_folders=unit.made_folders)
            version = self._step(version, unit.after, target, "undo")
        return self._whole(version)

    def with_again(self, units: Sequence[Change], start: Version) -> Version:
        """Return the file with these changes again. Raises `CannotRestore` like `without`."""
        exact = self._exact(units, start)
        if exact is not None:
            return self._whole(exact)
        version = start
        for unit in units:
            version = self._step(version, unit.before, Version(unit.after, mode=unit.mode_after), "redo")
        return self._whole(version)

    def with_changes_since(self, version: Version, now: Version) -> Version | None:
        """Return a version made of the head, with what somebody else made of it since; None if both touch the same
        lines.

        `now` is the file as it is.
        """
        if version.data is None or now.data is None:
            return None
        result = _merged_texts(self.data(self.head), now.data, version.data)
        return Version(id_of(result), result, now.mode) if result is not None else None

    def _exact(self, units: Sequence[Change], start: Version) -> Version | None:
        """Return the version that was undone last, if it were just these changes: it may be somebody else's."""
        last = self.own[-1] if self.own else None
        if last is None or last.kind != "undo" or last.after != start.content:
            return None
        if set(last.changes) != {unit.id for unit in units}:
            return None
        return Version(last.before, mode=last.mode)

    def _step(self, version: Version, known: str, target: Version, direction: Direction) -> Version:
        if version.content == known:
            return target
        if version.content == target.content:
            return version
        ids = (version.content, known, target.content)
        if any(content in (NOTHING, FOLDER) for content in ids):
            raise CannotRestore("other changes need it" if target.content == NOTHING else "it is not there any more")
        result = _merged_texts(self.data(known), self.data(version.content), self.data(target.content))
        if result is None:
            order = "later" if direction == "undo" else "other"
            raise CannotRestore(f"{order} changes touch the same lines: {direction} those first")
        content = id_of(result)
        self._merged[content] = result
        return Version(content, mode=version.mode)

    def _whole(self, version: Version) -> Version:
        if version.content in (NOTHING, FOLDER):
            return version
        return Version(version.content, self.data(version.content), version.mode)


def _in_effect(own: Sequence[Change]) -> tuple[set[str], set[str]]:
    """Return the ids of changes that are in effect, and of undone hunks that were redone."""
    active: set[str] = set()
    hunks: set[str] = set()
    taken_back: set[str] = set()
    for record in own:
        match record.kind:
            case "undo":
                active.difference_update(record.changes)
                if hunks.issuperset(record.changes):
                    taken_back.update(record.changes)
            case "redo":
                active.update(record.changes)
            case _:
                active.add(record.id)
                hunks.update((record.id,) if record.kind == "hunk" else ())
    return active, taken_back


def _applied_changes(records: Sequence[Change], current: str) -> list[Change]:
    """Return the changes without those that were recorded, but not made before the engine was killed."""
    applied: list[Change] = []
    following = current
    for record in reversed(records):
        if record.before != following or record.after == record.before:
            applied.append(record)
        following = record.before
    return applied[::-1]


def _merged_texts(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """`base` with both changes, that to `ours` and that to `theirs`; None if they touch the same lines.

    So they do if one takes the line end at the end of the file, and the other appends lines.
    Works on lines of bytes, so that encoding and line ends stay as they are. Equal changes count once. Binary and
    very long texts are not merged.
    """
    if max(len(base), len(ours), len(theirs)) > _MAX_MERGED_LENGTH or _is_binary(base, ours, theirs):
        return None
    old = _lines(base)
    changes = sorted({*_changes(old, _lines(ours)), *_changes(old, _lines(theirs))})
    for before, after in pairwise(changes):
        if after[0] < before[1] or after[:2] == before[:2]:
            return None
    lines: list[str] = []
    at = 0
    for start, end, new in changes:
        lines += old[at:start]
        lines += new
        at = end
    lines += old[at:]
    if any(not line.endswith("\n") for line in lines[:-1]):
        return None
    return "".join(lines).encode("latin-1")


def _changes(old: list[str], new: list[str]) -> list[_Change]:
    return [
        (old_at, old_end, tuple(new[new_at:new_end])) for old_at, old_end, new_at, new_end in changed_ranges(old, new)
    ]


def _lines(text: bytes) -> list[str]:
    pieces = text.decode("latin-1").split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _is_binary(*texts: bytes) -> bool:
    return any(b"\0" in text for text in texts)
