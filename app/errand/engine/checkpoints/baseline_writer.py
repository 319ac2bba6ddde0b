"""Writes the baseline of a workspace and the changes found by it: rows, contents and notes in one transaction."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from errand.engine.checkpoints.baseline_rows import GIT, BaselineRows, FileRow
from errand.engine.checkpoints.contents import ContentStore, id_of
from errand.engine.checkpoints.disk import OTHER
from errand.engine.checkpoints.folder_walk import check_size
from errand.engine.checkpoints.git_blobs import blob_id, read_blobs
from errand.engine.checkpoints.history import Version
from errand.engine.checkpoints.notes import note_of
from errand.engine.checkpoints.running_command import RunningCommand
from errand.engine.checkpoints.summary import line_counts
from errand.protocol.changes import FOLDER, NOTHING, UNKEPT, Change

_logger = logging.getLogger(__name__)

# Stored in one transaction, for which others wait.
_PIECE_FILES = 200
_PIECE_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that a command has changed: `before` is the content of its row, `mode` its permissions then."""

    path: str
    before: str
    mode: int | None
    now: Version
    owner: RunningCommand


@dataclass(slots=True)
class _Piece:
    """The content of one transaction."""

    rows: list[FileRow] = field(default_factory=list[FileRow])
    gone: list[str] = field(default_factory=list[str])
    contents: list[bytes] = field(default_factory=list[bytes])
    differences: list[Difference] = field(default_factory=list[Difference])
    size: int = 0


@dataclass(slots=True)
class BaselineWriter:
    """`blobs` are what git has clean at this moment, by path: that is not copied. `objects` is git's folder of them.

    `tell_others` is called with the path and content of each recorded change.
    """

    root: Path
    contents: ContentStore
    rows: BaselineRows
    objects: str
    scratch: Path
    tell_others: Callable[[str, str], None]
    blobs: Mapping[str, str] = field(default_factory=dict[str, str])
    files: int = 0
    copied_files: int = 0
    copied_bytes: int = 0
    _piece: _Piece = field(default_factory=_Piece)

    def count(self, rows: Iterable[FileRow]) -> None:
        """Count the rows that are stored."""
        self.files = self.copied_files = self.copied_bytes = 0
        for row in rows:
            self._count(row, 1)

    def check_size(self) -> None:
        """Raise `NotCovered` if the workspace has become too large."""
        check_size(self.files, self.copied_files, self.copied_bytes)

    def take(self, path: str, row: FileRow | None, now: Version, identity: bytes) -> None:
        """Make a version the baseline in place of a row. It has no identity if it may have changed meanwhile."""
        piece = self._piece
        if row is not None:
            self._count(row, -1)
        if now.content == NOTHING or (now.content == OTHER and not identity):
            piece.gone += [path] if row is not None else []
            return
        content, size = UNKEPT if now.content == OTHER else now.content, 0
        if now.data is not None:
            size = len(now.data)
            if (blob := self._blob(path, row)) and blob_id(now.data) == blob:
                content = f"{GIT}{blob}"
            elif row is None or row.content != now.content:
                piece.contents.append(now.data)
                piece.size += size
        piece.rows.append(FileRow(path, identity, size, content, now.mode))
        self._count(piece.rows[-1], 1)

    def record(self, difference: Difference, size: int) -> None:
        """Record a change; `size` is that of the content from before, which git may have."""
        self._piece.differences.append(difference)
        self._piece.size += size

    def flush(self, *, only_full: bool = False) -> None:
        """Store what was taken and recorded, and publish the changes. Raises OSError."""
        piece = self._piece
        is_full = piece.size > _PIECE_BYTES or len(piece.rows) + len(piece.gone) > _PIECE_FILES
        if (only_full and not is_full) or not (piece.rows or piece.gone or piece.differences):
            return
        self._piece = _Piece()
        blobs = [
            difference.before.removeprefix(GIT) for difference in piece.differences if difference.before.startswith(GIT)
        ]
        from_git = read_blobs(self.objects, blobs, self.scratch)
        changes = [(difference.owner, self._change(difference, from_git)) for difference in piece.differences]
        self.contents.put(
            *from_git.values(),
            *piece.contents,
            notes={change.id: note_of(change) for _, change in changes},
            also=lambda connection: self.rows.put(connection, piece.rows, piece.gone),
        )
        for owner, change in changes:
            owner.publish(change)
            self.tell_others(change.path, change.after)

    def _change(self, difference: Difference, from_git: Mapping[str, bytes]) -> Change:
        before, data = difference.before, None
        if before.startswith(GIT):
            data = from_git.get(before.removeprefix(GIT))
            before = UNKEPT if data is None else id_of(data)
        elif before not in (NOTHING, FOLDER, UNKEPT):
            data = self.contents.get(before)
        added, removed = line_counts(data, difference.now.data) if before != UNKEPT else (0, 0)
        return msgspec.structs.replace(
            difference.owner.new_change(self.root / difference.path, before),
            after=difference.now.content,
            mode=difference.mode,
            mode_after=difference.now.mode,
            added=added,
            removed=removed,
        )

    def _blob(self, path: str, row: FileRow | None) -> str:
        if row is not None and row.content.startswith(GIT):
            return row.content.removeprefix(GIT)
        return self.blobs.get(path, "")

    def _count(self, row: FileRow, change: int) -> None:
        if row.content != FOLDER:
            self.files += change
            if not row.content.startswith(GIT):
                self.copied_files += change
                self.copied_bytes += change * row.size
