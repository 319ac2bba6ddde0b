"""Moves away protected files that commands made, and puts back those that they changed.

A command can make new ones, since a mount needs something to cover and an empty file in its place would show in every
listing. They are moved away when the command has ended.
"""

import os
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from errand.engine.core.file_names import PROTECTED_PARTS
from errand.engine.sandbox.git_configuration import plain_configuration
from errand.engine.sandbox.protected_files import (
    FolderIdentity,
    ProtectedFile,
    ProtectedFiles,
    find_protected,
    folders_to,
    open_below,
    own_writes,
    pinned_of,
)

# Git's examples, which git does not run.
_EXAMPLE = ".sample"
# What is put back where the sandbox cannot protect it: files up to this size, this many of a folder.
_MAX_FILE_BYTES, _MAX_FILES = 65_536, 200
# What `git worktree add` writes.
_COMMON = b"../.."


@contextmanager
def _folder_of(path: Path, root: Path) -> Generator[int]:
    """A descriptor of its folder: a command may put a link in the place of any folder meanwhile. Raises OSError."""
    descriptor = open_below(root, path.parent)
    if descriptor is None:
        raise FileNotFoundError(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class WorkspaceGuard:
    """Moves away what commands made that no command may make. One for each task; call it in a thread.

    `kept` is the folder for what was moved; on another file system it stays in the workspace under another name. What a
    person makes while a command runs looks like the command's: it is moved too, and named.
    """

    workspace: Path
    kept: Path
    known: ProtectedFiles = field(default_factory=ProtectedFiles)
    _is_watching: bool = False
    # False until the first command: what is protected then is the person's.
    _has_begun: bool = False
    # Those that the sandbox does not keep from being changed, and the files of which they consist.
    _unmounted: list[Path] = field(default_factory=list[Path])
    _contents: dict[Path, bytes] = field(default_factory=dict[Path, bytes])
    # Repositories of commands whose processes in the background can still change them.
    _made: set[Path] = field(default_factory=set[Path])

    def before(self, *, can_change: bool) -> list[str]:
        """Call it before a command starts. Names what processes in the background have made since the last one.

        `can_change`: the sandbox does not keep the command from changing protected files, so they are put back.
        """
        moved = self.after(has_background=True) if self._is_watching else []
        root = self.root
        self.known, self._is_watching, self._has_begun = find_protected(root), True, True
        pinned = {} if can_change else pinned_of(root, self.known)
        plain = (path for path, file in self.known.files.items() if file.link is None)
        self._unmounted = [path for path in plain if path not in pinned]
        self._contents = _contents(self._unmounted, root)
        return moved

    def after(self, *, has_background: bool) -> list[str]:
        """Call it when a command has ended; returns the names of what was moved away or put back.

        `has_background`: processes are left that can go on.
        """
        if not self._has_begun:
            return []
        self._is_watching = has_background
        root, moved = self.root, list[str]()
        if self._unmounted:
            moved += self._put_back(root)
        now = find_protected(root, self.known.folders)
        for path, file in self.known.files.items():
            if file.link is not None and self._is_there(file) and now.files.get(path) != file:
                moved += self._restore(path, file.link, root)
        changed = dict.fromkeys((*self._made, *self._exchanged(now), *self._new(now, root)))
        for path in changed:
            if path not in now.files:
                moved += self._clean_repository(path, root)
                self._made.add(path)
            elif path not in own_writes:
                moved += self._move_away(path, root)
        self._made = self._made if has_background else set()
        self.known = find_protected(root, now.folders) if moved or changed else now
        return moved

    @property
    def root(self) -> Path:
        return Path(os.path.realpath(self.workspace))

    def _exchanged(self, now: ProtectedFiles) -> list[Path]:
        """Files in another folder than before of the same name: a mount goes along with a folder that is moved."""
        return [
            path
            for path, file in self.known.files.items()
            if path in now.files
            and path not in self._unmounted
            and now.folders.get(str(file.folder)) != self.known.folders.get(str(file.folder))
        ]

    def _new(self, now: ProtectedFiles, root: Path) -> list[Path]:
        """The new ones; for those of a new repository its folder, which is not in `now`.

        What came with a new repository into a new folder stays, as do files in a folder that was moved.
        """
        before = {identity: folder for folder, identity in self.known.folders.items()}
        known = {_repository_of(path, root) for path in self.known.files}
        new, repositories, new_folders = dict[Path, None](), set[Path](), set[Path]()
        for path, file in now.files.items():
            if path in self.known.files or _is_of_a_worktree(path, root) or self._was_moved(path, file, now, before):
                continue
            repository, is_link = _repository_of(path, root), _leads_to_a_repository(path, root)
            is_repository = repository is not None and repository not in known
            if (is_repository or is_link) and str(file.folder) not in self.known.folders:
                new_folders.add(file.folder)
            if repository is not None and is_repository:
                repositories.add(repository)
                new[repository] = None
            elif not is_link:
                new[path] = None
        return [path for path in new if path in repositories or new_folders.isdisjoint(path.parents)]

    def _was_moved(
        self, path: Path, file: ProtectedFile, now: ProtectedFiles, before: dict[FolderIdentity, str]
    ) -> bool:
        """True if the file went along, unchanged, with its folder."""
        identity = now.folders.get(str(file.folder))
        folder = before.get(identity) if identity is not None else None
        if folder is None or folder == str(file.folder):
            return False
        earlier = Path(folder) / path.relative_to(file.folder)
        contents = {name: data for name, data in self._contents.items() if name == earlier or earlier in name.parents}
        return earlier in self.known.files and all(
            _read(path / name.relative_to(earlier), self.root) == data for name, data in contents.items()
        )

    def _is_there(self, file: ProtectedFile) -> bool:
        """False if the folder with the file was moved away or removed; the workspace itself is there."""
        return file.folder == self.root or file.folder.is_dir()

    def _put_back(self, root: Path) -> list[str]:
        moved: list[str] = []
        watched = [path for path in self._unmounted if self._is_there(self.known.files[path])]
        before = {path: data for path, data in self._contents.items() if any(map(path.is_relative_to, watched))}
        now = _contents(watched, root)
        for path in {**before, **now}:
            old = self._contents.get(path)
            if now.get(path) == old or path in own_writes:
                continue
            moved += self._move_away(path, root) or [str(path.relative_to(root))]
            if old is not None:
                for folder in folders_to(path, root):
                    with suppress(OSError), _folder_of(folder, root) as above:
                        os.mkdir(folder.name, dir_fd=above)
                _write_new(path, old, root)
        return moved

    def _restore(self, path: Path, link: str, root: Path) -> list[str]:
        moved = self._move_away(path, root)
        try:
            with _folder_of(path, root) as folder:
                os.symlink(link, path.name, dir_fd=folder)
        except OSError:
            return moved
        return moved or [str(path.relative_to(root))]

    def _clean_repository(self, git: Path, root: Path) -> list[str]:
        """A command may make a repository, but not one that names programs to run."""
        moved: list[str] = []
        for name in ("config.worktree", "commondir", "info/attributes"):
            if git / name not in own_writes:
                moved += self._move_away(git / name, root)
        moved += self._clean_hooks(git / "hooks", root)
        moved += self._clean_configuration(git / "config", root)
        return moved

    def _clean_hooks(self, hooks: Path, root: Path) -> list[str]:
        try:
            with _folder_of(hooks / "any", root) as folder:
                readable = os.open(".", os.O_RDONLY, dir_fd=folder)
                try:
                    names = os.listdir(readable)
                finally:
                    os.close(readable)
        except OSError:
            return self._move_away(hooks, root) if hooks.is_symlink() else []
        made = [hooks / name for name in names if not name.endswith(_EXAMPLE)]
        return [name for path in made if path not in own_writes for name in self._move_away(path, root)]

    def _clean_configuration(self, config: Path, root: Path) -> list[str]:
        data = _read(config, root)
        text = data.decode(errors="replace") if data is not None else None
        plain = plain_configuration(text or "")
        if text == plain or config in own_writes:
            return []
        moved = self._move_away(config, root)
        _write_new(config, plain.encode(), root)
        return moved

    def _move_away(self, path: Path, root: Path) -> list[str]:
        """Rename it, which follows no link and copies nothing: its content may be exchanged meanwhile."""
        for target in _free_names(self.kept / path.name, path.with_name(f"{path.name}.not-kept")):
            with suppress(OSError), _folder_of(path, root) as folder:
                os.lstat(path.name, dir_fd=folder)
                self.kept.mkdir(mode=0o700, parents=True, exist_ok=True)
                if target.parent == path.parent:
                    os.rename(path.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    os.rename(path.name, target, src_dir_fd=folder)
                return [str(path.relative_to(root))]
        return []


def _contents(paths: Iterable[Path], root: Path) -> dict[Path, bytes]:
    """The small files among them and in their folders, without following links."""
    files: dict[Path, bytes] = {}
    for path in paths:
        below = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
        for file in [path, *below[:_MAX_FILES]]:
            if (data := _read(file, root)) is not None:
                files[file] = data
    return files


def _free_names(*wanted: Path) -> Iterable[Path]:
    for path in wanted:
        number, free = 1, path
        while os.path.lexists(free):
            number += 1
            free = path.with_name(f"{path.name}-{number}")
        yield free


def _repository_of(path: Path, root: Path) -> Path | None:
    """The repository that the file configures, that of a folder or of a submodule."""
    git = next((above for above in path.parents if above.name == ".git" and above.is_relative_to(root)), None)
    if git is None or path.is_relative_to(git / "worktrees"):
        return None
    return next((path.parents[part.count("/")] for part in PROTECTED_PARTS[".git"] if path.match(part)), None)


def _is_of_a_worktree(path: Path, root: Path) -> bool:
    """True for what `git worktree add` writes: where the repository is."""
    is_there = path.name == "commondir" and path.parts[-4:-2] == (".git", "worktrees")
    return is_there and (_read(path, root) or b"").strip() == _COMMON


def _leads_to_a_repository(path: Path, root: Path) -> bool:
    """True for the file `.git` of a submodule or a linked worktree whose repository lies in the workspace."""
    if path.name != ".git":
        return False
    text = (_read(path, root) or b"").decode(errors="replace").strip()
    target = Path(os.path.normpath(path.parent / text.removeprefix("gitdir:").strip()))
    if not target.is_relative_to(root) or os.path.realpath(target) != str(target):
        return False
    parts = target.relative_to(root).parts
    git = parts.index(".git") if ".git" in parts else len(parts)
    return parts[git + 1 : git + 2] in (("modules",), ("worktrees",)) and target.is_dir()


def _write_new(path: Path, data: bytes, root: Path) -> None:
    with suppress(OSError), _folder_of(path, root) as folder:
        descriptor = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
        with open(descriptor, "wb") as file:
            file.write(data)


def _read(path: Path, root: Path) -> bytes | None:
    """The content of a small file, not through a link."""
    try:
        with _folder_of(path, root) as folder:
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_FILE_BYTES:
            return None
        return os.read(descriptor, _MAX_FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)
