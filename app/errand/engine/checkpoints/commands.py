"""What commands change in the files that they name: those are kept before a command, and compared after it.

Nothing is scanned. A folder that a command may change as a whole (`rm -r`) is looked at as far as the bounds go.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import msgspec

from errand.engine.checkpoints.contents import ContentStore
from errand.engine.checkpoints.disk import OTHER, folder_version, read_version
from errand.engine.checkpoints.history import Version
from errand.engine.checkpoints.notes import note_of
from errand.engine.checkpoints.summary import line_counts
from errand.engine.permissions.shell.named_files import NamedPath
from errand.engine.tools.checkpoints import missing_folders
from errand.protocol.changes import FOLDER, NOTHING, UNKEPT, Change

# Of all that one command names.
_MAX_FILES = 200
_MAX_BYTES = 10_000_000
_NOT_OURS = frozenset((".git", ".hg", ".svn", ".jj"))

# Differs after any change of a file.
_Identity: TypeAlias = tuple[int, ...]


@dataclass(slots=True)
class _Kept:
    """A named path before the command.

    `note` is its change as noted, with the content from before twice, for after a crash. What does not exist has none:
    most of that is no file, but another word of the command.
    """

    path: Path
    identity: _Identity | None
    version: Version
    note: Change | None = None


@dataclass(slots=True)
class _Bounds:
    files: int = _MAX_FILES
    size: int = _MAX_BYTES

    def take(self, size: int) -> bool:
        """Count a file of this size. Return False if that is too much."""
        if self.files <= 0 or size > self.size:
            return False
        self.files, self.size = self.files - 1, self.size - size
        return True


@dataclass(slots=True)
class KeptFiles:
    """The `CommandFiles` of one command. `new_change` makes the record of a path and its content from before."""

    contents: ContentStore
    new_change: Callable[[Path, str], Change]
    publish: Callable[[Change], None]
    files: list[_Kept] = field(default_factory=list[_Kept])

    def keep(self, named: tuple[NamedPath, ...], workspace: Path) -> bool:
        """Keep what the command names inside the workspace; False if that is nothing."""
        bounds = _Bounds()
        files: dict[Path, _Kept] = {}
        for path, with_content in _inside(named, workspace):
            for file in self._files_at(path, bounds, with_content=with_content):
                files.setdefault(file.path, file)
        self.files = list(files.values())
        notes: dict[str, bytes] = {}
        for file in self.files:
            if file.version.content not in (NOTHING, UNKEPT):
                file.note = self._change(file)
                notes[file.note.id] = note_of(file.note)
        if notes:
            self.contents.put(*(file.version.data for file in self.files if file.version.data is not None), notes=notes)
        for file in self.files:
            file.version = replace(file.version, data=None)  # the bytes are in the store now
        return bool(self.files)

    def record_changes(self) -> None:
        bounds = _Bounds()
        changes_by_path = {
            change.path: (change, data) for file in self.files for change, data in self._changes(file, bounds)
        }
        changes = [_without_recorded_folders(change, changes_by_path.keys()) for change, _ in changes_by_path.values()]
        data = [data for _, data in changes_by_path.values() if data is not None]
        notes = {change.id: note_of(change) for change in changes}
        done = [file.note.id for file in self.files if file.note is not None and file.note.id not in notes]
        if notes or done:
            self.contents.put(*data, notes=notes, done=done)
        for change in changes:
            self.publish(change)

    def _files_at(self, path: Path, bounds: _Bounds, *, with_content: bool) -> Iterator[_Kept]:
        try:
            status = path.lstat()
        except FileNotFoundError:
            yield _Kept(path, None, Version(NOTHING, made_folders=missing_folders(path)))
            return
        except (OSError, ValueError):  # no usable path: something in a command only looked like one
            return
        if stat.S_ISREG(status.st_mode):
            is_kept = bounds.take(status.st_size)
            yield _Kept(path, _identity(status), _read(path) if is_kept else Version(UNKEPT))
        elif stat.S_ISDIR(status.st_mode) and with_content:
            below = _below(path, bounds)
            if below is None:
                yield _Kept(path, _identity(status), Version(UNKEPT))
                return
            yield _Kept(path, _identity(status), folder_version(status))
            for inner, inner_status in below:
                version = folder_version(inner_status) if stat.S_ISDIR(inner_status.st_mode) else _read(inner)
                yield _Kept(inner, _identity(inner_status), version)

    def _change(self, one: _Kept) -> Change:
        """Return the change of a path, without what it became."""
        if one.note is not None:
            return one.note
        version = one.version
        change = self.new_change(one.path, version.content)
        return msgspec.structs.replace(change, mode=version.mode, made_folders=version.made_folders)

    def _changes(self, one: _Kept, bounds: _Bounds) -> Iterator[tuple[Change, bytes | None]]:
        """Yield the change of a path, and the content that it has now."""
        try:
            status = one.path.lstat()
        except OSError:
            status = None
        if (_identity(status) if status is not None else None) == one.identity:
            return
        if status is not None and stat.S_ISDIR(status.st_mode):
            if one.identity is None:
                yield from self._new_folder(one, bounds)
            return
        now = read_version(one.path) if status is not None else Version(NOTHING)
        if now.content != one.version.content:
            is_kept = one.version.content != UNKEPT
            yield self._completed(self._change(one), now), now.data if is_kept else None

    def _new_folder(self, one: _Kept, bounds: _Bounds) -> Iterator[tuple[Change, bytes | None]]:
        """Yield the change of a folder that the command made, and those of its files unless they are too many."""
        below = _below(one.path, bounds)
        if below is None:
            yield msgspec.structs.replace(self._change(one), before=UNKEPT, after=FOLDER), None
            return
        yield msgspec.structs.replace(self._change(one), after=FOLDER), None
        for path, status in below:
            now = folder_version(status) if stat.S_ISDIR(status.st_mode) else _read(path)
            yield self._completed(self.new_change(path, NOTHING), now), now.data

    def _completed(self, change: Change, now: Version) -> Change:
        before = self.contents.get(change.before) if change.before not in (NOTHING, FOLDER, UNKEPT) else None
        added, removed = line_counts(before, now.data) if change.before != UNKEPT else (0, 0)
        return msgspec.structs.replace(change, after=now.content, mode_after=now.mode, added=added, removed=removed)


def _inside(named: Iterable[NamedPath], workspace: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the paths inside the workspace, with links resolved, without folders of version control."""
    real = cache(os.path.realpath)
    root = real(workspace)
    for named_path in named:
        folder, name = os.path.split(named_path.path)
        path = os.path.join(real(folder), name)
        if os.path.islink(path):
            path = os.path.realpath(path)
        if path.startswith(f"{root}{os.sep}") and _NOT_OURS.isdisjoint(path.split(os.sep)):
            yield Path(path), named_path.with_content


def _without_recorded_folders(change: Change, recorded: Set[str]) -> Change:
    """Return the change without folders above that have a record of their own: they do not go with the file."""
    above = list(Path(change.path).parents)[: change.made_folders]
    count = next((number for number, folder in enumerate(above) if str(folder) in recorded), change.made_folders)
    return msgspec.structs.replace(change, made_folders=count)


def _read(path: Path) -> Version:
    """Read a file. One that cannot be read is treated as one that is too large."""
    try:
        version = read_version(path)
    except OSError:
        return Version(UNKEPT)
    return Version(UNKEPT) if version.content == OTHER else version


def _below(folder: Path, bounds: _Bounds) -> list[tuple[Path, os.stat_result]] | None:
    """Return the files and folders below a folder, without links; None if they are too many, too large, or not ours."""
    members: list[tuple[Path, os.stat_result]] = []
    left, rest = [folder], replace(bounds)
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    is_folder = stat.S_ISDIR(status.st_mode)
                    if entry.name in _NOT_OURS or not rest.take(0 if is_folder else status.st_size):
                        return None
                    if is_folder:
                        left.append(Path(entry.path))
                    if is_folder or stat.S_ISREG(status.st_mode):
                        members.append((Path(entry.path), status))
        except OSError:
            return None
    bounds.files, bounds.size = rest.files, rest.size
    return members


def _identity(status: os.stat_result) -> _Identity:
    """Return what changes when a file does. For a folder only its device and inode: its files are looked at apart."""
    if stat.S_ISDIR(status.st_mode):
        return (status.st_dev, status.st_ino)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
