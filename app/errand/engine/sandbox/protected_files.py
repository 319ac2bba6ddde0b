"""Files of a workspace that make tools, editors or agents run something later: no command changes them.

Those that exist are mounted read-only. A command can still make new ones: see workspace_guard.py.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from errand.engine.core.file_names import PROTECTED_PARTS, is_protected, plain_name

# Looked at for submodules.
_MOST_MODULES = 500
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_ANY = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_NOFOLLOW", 0)

# What a link points to, None for anything else.
ProtectedFiles: TypeAlias = dict[Path, str | None]

# Files with protected names that the app's own tools wrote, each after a person was asked.
own_writes: set[Path] = set()


def note_own_write(path: Path) -> None:
    """The person allowed this file: it stays, whatever commands run at that moment."""
    if is_protected(path.parts):
        own_writes.update((path, *path.parents))


def find_protected(root: Path) -> ProtectedFiles:
    """The protected files at the top of a folder and in its repository, or in a repository; `root` has no links."""
    found: ProtectedFiles = {}
    for part in PROTECTED_PARTS.get(root.name, ()):
        _note(root / part, root, found)
    with suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            parts = PROTECTED_PARTS.get(plain_name(entry.name))
            if parts is None or not entry.is_dir(follow_symlinks=False):
                if is_protected((entry.name,)) or parts is not None:
                    _note(Path(entry.path), root, found)
                continue
            for folder in (Path(entry.path), *_modules(Path(entry.path), root, found)):
                for part in parts:
                    _note(folder / part, root, found)
            _note_worktrees(Path(entry.path), root, found)
    return found


def _modules(folder: Path, root: Path, found: ProtectedFiles) -> list[Path]:
    """The repositories of submodules and of theirs. Slashes in the name of a submodule make folders."""
    if folder.name != ".git":
        return []
    repositories: list[Path] = []
    rest = [folder / "modules"]
    for count, one in enumerate(rest):
        if count > _MOST_MODULES:
            _note(folder / "modules", root, found)  # as a whole
            break
        with suppress(OSError), os.scandir(one) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    path = Path(entry.path)
                    is_repository = any(os.path.lexists(path / name) for name in ("HEAD", *PROTECTED_PARTS[".git"]))
                    repositories += [path] if is_repository else []
                    rest.append(path / "modules" if is_repository else path)
    return repositories


def _note_worktrees(folder: Path, root: Path, found: ProtectedFiles) -> None:
    """Where each linked worktree finds its configuration."""
    with suppress(OSError), os.scandir(folder / "worktrees") as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                for name in ("commondir", "config.worktree"):
                    _note(Path(entry.path, name), root, found)


def _note(path: Path, root: Path, found: ProtectedFiles) -> None:
    """Note the file if it exists, or the link on the way to it."""
    with suppress(OSError):
        for one in (*folders_to(path, root), path):
            if stat.S_ISLNK(os.lstat(one).st_mode):
                found[one] = os.readlink(one)
                return
        found[path] = None


def folders_to(path: Path, root: Path) -> list[Path]:
    """Those between the root and the path, the outer first."""
    return [above for above in reversed(path.parents) if above != root and above.is_relative_to(root)]


@dataclass(frozen=True, slots=True)
class PinnedPath:
    """A path below a workspace whose file is held open, so that nobody can put another in its place."""

    path: Path
    descriptor: int
    is_writable: bool


def pin(root: Path) -> list[PinnedPath]:
    """The protected files, and the folders above them, which must not be moved away with them. Close each.

    Not what links lead to: a command could make one, and the mount would show what is hidden.
    """
    wanted: dict[Path, bool] = {}
    for path, link in find_protected(root).items():
        if link is None:
            wanted |= {above: True for above in folders_to(path, root)}
            wanted[path] = False
    found: list[PinnedPath] = []
    for path, is_writable in sorted(wanted.items(), key=lambda one: len(one[0].parts)):
        if (descriptor := open_below(root, path)) is not None:
            found.append(PinnedPath(path, descriptor, is_writable))
    return found


def open_below(root: Path, path: Path) -> int | None:
    """A descriptor of the file, without following any link below the root; None if there is a link or nothing."""
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
