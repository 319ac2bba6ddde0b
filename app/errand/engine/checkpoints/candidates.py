"""Finds the files of a workspace that may differ from its baseline."""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from os import stat_result

from errand.engine.checkpoints.baseline_rows import BaselineRows, FileRow, identity_of
from errand.engine.checkpoints.contents import ContentStore
from errand.engine.checkpoints.folder_walk import FolderWalk
from errand.engine.checkpoints.git_blobs import TrackedFiles
from errand.protocol.changes import FOLDER


@dataclass(frozen=True, slots=True)
class Candidates:
    """The rows and the files of the `paths` that may have changed."""

    rows: dict[str, FileRow]
    files: dict[str, stat_result]
    paths: set[str]


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """Compares what is in a workspace with the rows of its baseline. Its methods raise `NotCovered` and OSError.

    A file that has a row and is in a folder that is left out now is compared for itself.
    """

    walk: FolderWalk
    contents: ContentStore
    rows: BaselineRows

    def all(self, tracked: TrackedFiles | None = None) -> Candidates:
        """Return all that differs by its identity."""
        rows = {row.path: row for row in self.contents.use(self.rows.all)}
        files = dict(self.walk.below([""], lambda path: tracked is not None and path not in tracked.blobs))
        self._add_missing(files, rows)
        changed = {path for path in files.keys() | rows.keys() if not is_same(rows.get(path), files.get(path))}
        return Candidates(rows, files, changed)

    def some(self, names: set[str], folders: Iterable[str] = ()) -> Candidates:
        """Return these files with their other names, and all that is or was in these folders."""
        statuses = {name: status for name in names if (status := self.walk.status(name)) is not None}
        files = {name: status for name, status in statuses.items() if not stat.S_ISDIR(status.st_mode)}
        tops = {*folders, *(statuses.keys() - files.keys())}
        files |= self.walk.below(sorted(tops), lambda _: False)
        linked = [identity_of(status) for status in files.values() if _has_other_names(status)]
        rows = self.contents.use(lambda connection: self.rows.get(connection, names | tops))
        tops |= {name for name, row in rows.items() if row.content == FOLDER}
        listed = self.contents.use(
            lambda connection: [
                *(row for top in tops for row in self.rows.below(connection, top)),
                *self.rows.of_inodes(connection, linked),
            ]
        )
        rows |= {row.path: row for row in listed}
        self._add_missing(files, rows)
        changed = {path for path in files.keys() | rows.keys() if not is_same(rows.get(path), files.get(path))}
        return Candidates(rows, files, changed | names)

    def _add_missing(self, files: dict[str, stat_result], rows: Iterable[str]) -> None:
        """Add the files that have rows and were not listed."""
        for path in rows:
            if path not in files and (status := self.walk.status(path)) is not None:
                files[path] = status


def is_same(row: FileRow | None, status: stat_result | None) -> bool:
    if row is None or status is None:
        return row is None and status is None
    return row.identity == identity_of(status)


def _has_other_names(status: stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1
