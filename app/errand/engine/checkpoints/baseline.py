"""The baseline of one workspace: what each file held when it was last looked at. By it, what a command changes without
naming it can be undone.

Before and after a command the files that changed since are looked at (`watch.py`; all are scanned where there is no
inotify). What changed before it, such as by an editor, becomes the baseline; what changed while it ran becomes changes
of its step. The contents are in the store before a command begins, except those that git has.
"""

import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from errand.engine.checkpoints.baseline_rows import GIT, BaselineRows, has_baseline, identity_of
from errand.engine.checkpoints.baseline_writer import BaselineWriter, Difference
from errand.engine.checkpoints.candidates import Candidates, CandidateSearch, is_same
from errand.engine.checkpoints.contents import MAX_FILE_BYTES, ContentStore
from errand.engine.checkpoints.disk import OTHER, folder_version, read_version
from errand.engine.checkpoints.folder_walk import FolderWalk, NotCovered
from errand.engine.checkpoints.git_blobs import TrackedFiles, blob_id, tracked_files
from errand.engine.checkpoints.history import Version
from errand.engine.checkpoints.notes import note_of
from errand.engine.checkpoints.running_command import NewChange, RunningCommand
from errand.engine.checkpoints.watch import FolderWatch, SeenChanges
from errand.engine.tools.plain_text import clean_name, is_text
from errand.protocol.changes import NOTHING, Change

_logger = logging.getLogger(__name__)

# Where each command has to look at all of them.
_MAX_SCANNED_FILES = 10_000
# Recorded for one look.
_MAX_CHANGES = 5_000
# The times of files are a little coarser than the clock: what changed so shortly before it was read is read again.
_CLOCK_GRAIN_NS = 1_000_000_000
# Before a folder that was too large is looked at again.
_REFUSED_S = 600.0


@dataclass(frozen=True, slots=True)
class Coverage:
    """The answer whether all that commands change in a workspace can be undone; `reason` tells people why not."""

    covered: bool
    reason: str = ""


class FolderBaseline:
    """The baseline of a folder. Its methods are called in threads.

    `private` is the real path of the app's own data. `tell_others` tells the baselines of other workspaces what was
    recorded.
    """

    def __init__(
        self,
        root: Path,
        contents: ContentStore,
        scratch: Path,
        private: str,
        tell_others: Callable[["FolderBaseline", str, str], None],
    ) -> None:
        self.root = root
        self.coverage = Coverage(False, "its files have not been read yet")
        self.is_ready = False
        self._contents = contents
        self._scratch = scratch
        self._tell_others = tell_others
        self._lock = threading.RLock()
        self._is_closed = False
        self._walk = FolderWalk(str(root), lambda: self._is_closed, private)
        self._writer: BaselineWriter | None = None
        self._search: CandidateSearch | None = None
        self._running: list[RunningCommand] = []
        # What a tool or an undo is writing, and what those have written since the last look.
        self._being_written: set[str] = set()
        self._written: dict[str, str] = {}
        # Looked at again the next time.
        self._pending: set[str] = set()
        self._refused_until = 0.0
        self._used_at = time.monotonic()

    @property
    def is_known(self) -> bool:
        """True while `coverage` holds: there is a baseline, or the folder cannot have one."""
        return self.is_ready or time.monotonic() < self._refused_until

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    def open(self) -> None:
        """Read what is new since the folder was read last, at first all of it."""
        with self._lock:
            if self.is_known or self._is_closed:
                return
            try:
                self._open()
            except NotCovered as error:
                self._refuse(str(error))
            except OSError as error:
                self._refuse(f"its files could not be kept: {error.strerror or error}")

    def close(self) -> None:
        """Stop watching. What is stored stays for the next time."""
        self._is_closed = True  # before the lock: a look at a large folder ends
        with self._lock:
            self.is_ready = False
            self._stop_watching()

    def forget(self, unused_s: float) -> bool:
        """Delete what is stored, unless a command runs or began lately. Return True if it is gone."""
        with self._lock:
            if self._running or time.monotonic() < self._used_at + unused_s:
                return False
            self.is_ready = False
            if self._writer is not None:
                self._contents.use(self._writer.rows.clear)
            return True

    def begin(self, command: RunningCommand) -> bool:
        """Look before a command runs. Return False if it cannot be covered."""
        with self._lock:
            if not self._look(self._running[-1] if self._running else None):
                return False
            self._contents.begin_command(command.note.id, note_of(command.note))
            self._running.append(command)
            self._used_at = time.monotonic()
            return True

    def end(self, command: RunningCommand) -> None:
        """Record what has changed since the command began."""
        with self._lock:
            self._look(command)
            self._running.remove(command)
            self._contents.end_command(command.note.id)

    def recover(self, command: Change, new_change: NewChange | None) -> None:
        """Note what a command has changed whose engine was killed, or nothing without `new_change`."""
        owner = RunningCommand(self.root, new_change, lambda _: None, self.end) if new_change is not None else None
        with self._lock:
            if self._contents.use(lambda connection: has_baseline(connection, str(self.root))):
                try:
                    self._start(tracked_files(self.root))
                    self._compare(self._all(), owner)
                except NotCovered as error:
                    _logger.warning("what a command changed in %s is not known: %s", self.root, error)
            self._contents.end_command(command.id)

    def left_out_in(self, line: str) -> tuple[str, ...]:
        """Return the folders that are left out and whose name occurs in a command line."""
        return tuple(str(self.root / path) for path in tuple(self._walk.left_out) if path.rpartition("/")[2] in line)

    def before_write(self, path: str) -> None:
        """Record what a command has changed in a file until now: a tool or an undo is about to write it."""
        if self._is_watched(path):
            with self._lock:
                name = os.path.relpath(path, self.root)
                if self.is_ready and self._running:
                    assert self._search is not None
                    self._compare(self._search.some({name}), self._running[-1])
                    self._being_written.add(name)

    def after_write(self, path: str, content: str | None) -> None:
        """Take over what was written; `content` is None if nothing was."""
        if self._is_watched(path):
            name = os.path.relpath(path, self.root)
            if content is not None:
                self._written[name] = content
            self._pending.add(name)
            self._being_written.discard(name)

    def _is_watched(self, path: str) -> bool:
        """Return True for a path whose changes belong to a command that runs, unless they are taken over."""
        is_inside = bool(self._running) and path.startswith(f"{self.root}{os.sep}")
        return is_inside and not self._walk.is_below_left_out(os.path.relpath(path, self.root))

    def _open(self) -> None:
        tracked = tracked_files(self.root)
        writer = self._start(tracked)
        try:
            self._walk.watch = FolderWatch(str(self.root))
            candidates = self._all(tracked)
        except NotCovered:
            raise
        except OSError as error:
            _logger.info("%s is scanned at each command: %s", self.root, error)
            self._stop_watching()
            candidates = self._all(tracked)
        if self._walk.watch is None and len(candidates.files) > _MAX_SCANNED_FILES:
            raise NotCovered("the system cannot watch so many folders")
        writer.count(candidates.rows.values())
        writer.blobs = tracked.blobs
        self._compare(candidates, None)
        writer.blobs = {}
        self._judge()
        self.is_ready = True

    def _start(self, tracked: TrackedFiles) -> BaselineWriter:
        """Make what looks at the files and writes their rows."""
        self._stop_watching()
        self._walk = FolderWalk(str(self.root), lambda: self._is_closed, self._walk.private, tracked.folders)
        rows = self._contents.use(lambda connection: BaselineRows(connection, str(self.root)))
        self._search = CandidateSearch(self._walk, self._contents, rows)
        tell_others = partial(self._tell_others, self)
        self._writer = BaselineWriter(self.root, self._contents, rows, tracked.objects, self._scratch, tell_others)
        return self._writer

    def _refuse(self, reason: str) -> None:
        _logger.info("what commands change in %s cannot all be undone: %s", self.root, reason)
        self.coverage = Coverage(False, reason)
        self.is_ready = False
        self._refused_until = time.monotonic() + _REFUSED_S
        self._stop_watching()
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                self._contents.use(writer.rows.clear)
            except OSError as error:
                _logger.warning("a baseline was not cleared: %s", error)

    def _stop_watching(self) -> None:
        if self._walk.watch is not None:
            self._walk.watch.close()
            self._walk.watch = None

    def _look(self, owner: RunningCommand | None) -> bool:
        """Take over what changed: as changes of `owner`, or as the new baseline. Return False if that fails."""
        if not self.is_ready:
            return False
        try:
            candidates = self._changed()
            if candidates is None:
                self.is_ready = False
            elif candidates.paths:
                self._compare(candidates, owner)
                self._judge()
        except NotCovered as error:
            self._refuse(str(error))
        except OSError as error:
            self._refuse(f"its files could not be kept: {error.strerror or error}")
        return self.is_ready

    def _judge(self) -> None:
        """Say whether all is covered. Raises `NotCovered` if the folder has become too large."""
        assert self._writer is not None
        self._writer.check_size()
        problem = next(iter(self._walk.problems.values()), "")
        self.coverage = Coverage(not problem, problem)

    def _changed(self) -> Candidates | None:
        """Return what may have changed since the last look; None if its file system or the rows are not there."""
        watch, search = self._walk.watch, self._search
        seen = watch.take() if watch is not None else SeenChanges(is_all=True)
        if seen.is_unmounted or search is None or not self._contents.use(search.rows.exists):
            return None
        if seen.is_root_gone or not self.root.is_dir():
            self.is_ready = False  # the folder is watched no more, or another one
            return self._all()
        if seen.is_all or not all(is_text(name) for name in (*seen.files, *seen.folders)):
            return self._all()
        names, self._pending = seen.files | self._pending, set()
        return search.some(names, seen.folders) if names or seen.folders else Candidates({}, {}, set())

    def _all(self, tracked: TrackedFiles | None = None) -> Candidates:
        assert self._search is not None
        self._pending = set()
        return self._search.all(tracked)

    def _compare(self, candidates: Candidates, owner: RunningCommand | None) -> None:
        """Store what the paths hold now, and record the differences as changes of the owner."""
        writer, count = self._writer, 0
        assert writer is not None
        for path in sorted(candidates.paths):
            if path in self._being_written:
                self._pending.add(path)
                continue
            row, status = candidates.rows.get(path), candidates.files.get(path)
            written = self._written.pop(path, None)
            if written is None and is_same(row, status):
                continue
            now, identity = self._read(path, status)
            writer.take(path, row, now, identity)
            before = written if written is not None else row.content if row is not None else NOTHING
            if owner is not None and not _has_content(before, now):
                count += 1
                if count <= _MAX_CHANGES:
                    mode, size = (row.mode, row.size) if row is not None else (None, 0)
                    writer.record(Difference(path, before, mode, now, self._owner_of(path, owner)), size)
            writer.flush(only_full=True)
        writer.flush()
        if count > _MAX_CHANGES:
            self._walk.problems[""] = f"a command changed more than {_MAX_CHANGES:,} files"

    def _read(self, path: str, status: os.stat_result | None) -> tuple[Version, bytes]:
        """Return what is there, and its identity unless it may have changed while it was read."""
        self._walk.problems.pop(path, None)
        if status is None:
            return Version(NOTHING), b""
        if stat.S_ISDIR(status.st_mode):
            return folder_version(status), identity_of(status)
        if not stat.S_ISREG(status.st_mode):
            return Version(OTHER), b""
        status = self._walk.status(path) or status
        try:
            version = read_version(self.root / path)
        except OSError as error:
            self._walk.problems[path] = f"{clean_name(path)} cannot be read: {error.strerror}"
            return Version(OTHER), identity_of(status)
        after = self._walk.status(path)
        is_settled = after is not None and identity_of(after) == identity_of(status)
        is_settled = is_settled and max(status.st_mtime_ns, status.st_ctime_ns) < time.time_ns() - _CLOCK_GRAIN_NS
        is_large = version.content == OTHER and status.st_size > MAX_FILE_BYTES  # else a folder above is a link now
        if is_large:
            self._walk.problems[path] = f"{clean_name(path)} is too large ({status.st_size // 1_000_000} MB)"
        is_known = is_large or (is_settled and version.content != OTHER)
        return version, identity_of(status) if is_known else b""

    def _owner_of(self, path: str, owner: RunningCommand) -> RunningCommand:
        """Return the command that changed a file: of several that run, the one that names it."""
        if len(self._running) < 2:
            return owner
        absolute = str(self.root / path)
        return next((command for command in (owner, *self._running) if absolute in command.names), owner)


def _has_content(before: str, now: Version) -> bool:
    """Return True if a content is that of the version."""
    if before.startswith(GIT):
        return now.data is not None and blob_id(now.data) == before.removeprefix(GIT)
    return before == now.content
