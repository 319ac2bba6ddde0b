"""Files of a workspace that make tools, editors or agents run something later: no command changes them.

They are searched in all folders of a workspace, except those that tools fill and nobody opens. Existing ones are
mounted read-only. A command can still make new ones: see workspace_guard.py.
"""

import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from errand.engine.core.file_names import CACHE_TAG, FILLED_BY_TOOLS, PROTECTED_PARTS, is_protected, plain_name

# Folders that are searched for submodules.
_MAX_SUBMODULES = 500
# Folders that are searched, the upper first, and entries of each.
MAX_FOLDERS = 500
MAX_ENTRIES = 5_000
# Protected files below the top that are mounted: each mount takes 0.2 ms. Further ones are put back.
MAX_PINNED_BELOW = 32
_UNSEARCHED = FILLED_BY_TOOLS | {"venv"}
# Such a folder is not searched if a tool says in it that it can be made again.
_BUILD_FOLDERS = frozenset({"target", "build", "out"})
MAX_CACHED_FOLDERS = 20_000
# A change within one tick of the file system's clock after a look leaves no trace.
_TICK_NS = 100_000_000
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_ANY = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_NOFOLLOW", 0)

# Device and inode.
FolderIdentity: TypeAlias = tuple[int, int]


class ProtectedFile(NamedTuple):
    """`folder` is the searched folder to which it belongs; `link` is what a link points to, None for others."""

    folder: Path
    link: str | None


@dataclass(frozen=True, slots=True)
class ProtectedFiles:
    """The protected files of a folder, the upper first, and all folders that were searched."""

    files: dict[Path, ProtectedFile] = field(default_factory=dict[Path, ProtectedFile])
    folders: dict[str, FolderIdentity] = field(default_factory=dict[str, FolderIdentity])


class _Listing(NamedTuple):
    """The entries of a folder that matter: names that may be protected, with their kind, and subfolders."""

    stamp: tuple[int, ...]
    is_settled: bool
    candidates: tuple[tuple[str, bool], ...]
    folders: tuple[str, ...]


_listings: dict[str, _Listing] = {}

# Files with protected names that the app's own tools wrote, each after a person was asked.
own_writes: set[Path] = set()


def note_own_write(path: Path) -> None:
    """Remember that the person allowed this file: it stays, whichever commands run at that moment."""
    if is_protected(path.parts):
        own_writes.update((path, *path.parents))


def find_protected(
    root: Path, before: Mapping[str, FolderIdentity] | None = None, *, is_deep: bool = True
) -> ProtectedFiles:
    """Return the protected files of a folder, of those below it, and of their repositories; `root` has no links.

    `before` are folders that are searched whatever their number. `is_deep`: look below the top.
    """
    protected, searched_before, new_folders = ProtectedFiles(), before or {}, 0
    for part in PROTECTED_PARTS.get(root.name, ()):
        _note(root / part, root, protected)
    rest = [str(root)]
    for folder in rest:
        listing = _listing(folder)
        if listing is None:
            continue
        protected.folders[folder] = listing.stamp[0], listing.stamp[1]
        for name, is_folder in listing.candidates:
            _note_candidate(Path(folder), name, is_folder, protected)
        for name in listing.folders if is_deep else ():
            path = f"{folder}/{name}"
            new_folders += path not in searched_before
            if path in searched_before or new_folders <= MAX_FOLDERS:
                rest.append(path)
    return protected


def _listing(folder: str) -> _Listing | None:
    """Return the result of the last look, unless the folder has changed since."""
    try:
        status = os.lstat(folder)
        stamp = status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
        cached = _listings.get(folder)
        if cached is not None and cached.is_settled and cached.stamp == stamp:
            return cached
        is_settled = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _TICK_NS
        candidates, folders = _entries_of(folder)
    except OSError:
        return None
    if len(_listings) >= MAX_CACHED_FOLDERS:
        _listings.clear()
    listing = _listings[folder] = _Listing(stamp, is_settled, candidates, folders)
    return listing


def _entries_of(folder: str) -> tuple[tuple[tuple[str, bool], ...], tuple[str, ...]]:
    candidates, folders = list[tuple[str, bool]](), list[str]()
    is_build_folder = os.path.basename(folder) in _BUILD_FOLDERS
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            name = entry.name
            if count >= MAX_ENTRIES or (is_build_folder and name == CACHE_TAG):
                return tuple(candidates), () if is_build_folder else tuple(sorted(folders))
            if plain_name(name) in PROTECTED_PARTS or is_protected((name,)):
                candidates.append((name, entry.is_dir(follow_symlinks=False)))
            elif name not in _UNSEARCHED and entry.is_dir(follow_symlinks=False):
                folders.append(name)
    return tuple(candidates), tuple(sorted(folders))


def _note_candidate(folder: Path, name: str, is_folder: bool, protected: ProtectedFiles) -> None:
    path, parts = folder / name, PROTECTED_PARTS.get(plain_name(name))
    if parts is None or not is_folder:
        _note(path, folder, protected)
        return
    for repository in (path, *_modules(path, folder, protected)):
        for part in parts:
            _note(repository / part, folder, protected)
    _note_worktrees(path, folder, protected)


def _modules(folder: Path, root: Path, protected: ProtectedFiles) -> list[Path]:
    """Return the repositories of submodules and of theirs. Slashes in the name of a submodule make folders."""
    if folder.name != ".git":
        return []
    repositories: list[Path] = []
    rest = [folder / "modules"]
    for count, folder_to_list in enumerate(rest):
        if count > _MAX_SUBMODULES:
            _note(folder / "modules", root, protected)  # all of them
            break
        with suppress(OSError), os.scandir(folder_to_list) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    path = Path(entry.path)
                    is_repository = any(os.path.lexists(path / name) for name in ("HEAD", *PROTECTED_PARTS[".git"]))
                    repositories += [path] if is_repository else []
                    rest.append(path / "modules" if is_repository else path)
    return repositories


def _note_worktrees(folder: Path, root: Path, protected: ProtectedFiles) -> None:
    """Note the files that lead each linked worktree to its configuration."""
    with suppress(OSError), os.scandir(folder / "worktrees") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                for name in ("commondir", "config.worktree"):
                    _note(Path(entry.path, name), root, protected)


def _note(path: Path, root: Path, protected: ProtectedFiles) -> None:
    """Note the file if it exists, or the link on the way to it."""
    with suppress(OSError):
        for part in (*folders_to(path, root), path):
            if stat.S_ISLNK(os.lstat(part).st_mode):
                protected.files[part] = ProtectedFile(root, os.readlink(part))
                return
        protected.files[path] = ProtectedFile(root, None)


def folders_to(path: Path, root: Path) -> list[Path]:
    """Return the folders between the root and the path, the outer first."""
    between = len(path.parts) - len(root.parts) - 1
    return list(path.parents[:between])[::-1] if between > 0 and path.is_relative_to(root) else []


@dataclass(frozen=True, slots=True)
class PinnedPath:
    """A path below the writable folder `root` that a command must not move away, nor change if not `is_writable`."""

    path: Path
    root: Path
    is_writable: bool

    def opened(self) -> int | None:
        """Hold its file open, so that nobody can put another in its place; None if there is none, or a link.

        Links are not followed: a command could make one, and the mount would show what is hidden.
        """
        return open_below(self.root, self.path)


def pinned_of(root: Path, protected: ProtectedFiles) -> dict[Path, ProtectedFile]:
    """Return the paths that `pin` pins: all at the top, and the first below it, without links."""
    files = {path: file for path, file in protected.files.items() if file.link is None}
    below = [path for path, file in files.items() if file.folder != root]
    return {path: file for path, file in files.items() if path not in below[MAX_PINNED_BELOW:]}


def pin(root: Path, protected: ProtectedFiles) -> list[PinnedPath]:
    """Return the protected files below `root`, and the folders above them, which must not be moved away.

    The folders above a file below the top can be moved, with the file.
    """
    writable_by_path: dict[Path, bool] = {}
    for path, file in pinned_of(root, protected).items():
        writable_by_path |= {above: True for above in folders_to(path, file.folder)}
        writable_by_path[path] = False
    ordered = sorted(writable_by_path.items(), key=lambda item: len(item[0].parts))
    return [PinnedPath(path, root, is_writable) for path, is_writable in ordered]


def open_below(root: Path, path: Path) -> int | None:
    """Open a file without following any link below the root; None if there is a link or no file."""
    try:
        descriptor = os.open(root, _FOLDER)
        parts = path.relative_to(root).parts
        for number, name in enumerate(parts, start=1):
            try:
                inner = os.open(name, _ANY if number == len(parts) else _FOLDER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = inner
    except OSError:
        return None
    if stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor
