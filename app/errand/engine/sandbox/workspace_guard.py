"""Moves away protected files that commands made, and puts back those that they changed.

A command can make new ones: a mount needs something to cover, and an empty file in its place would show in every
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
from errand.system.regular_file import real_path

# Git's examples, which git does not run.
_EXAMPLE = ".sample"
# Files that are put back where the sandbox cannot protect them: up to this size, and this many of a folder.
_MAX_FILE_BYTES, _MAX_FILES = 65_536, 200
# The text that `git worktree add` writes.
_COMMON = b"../.."


@contextmanager
def _folder_of(path: Path, root: Path) -> Generator[int]:
    """Open the folder of a path: a command may replace any folder by a link meanwhile. Raises OSError."""
    descriptor = open_below(root, path.parent)
    if descriptor is None:
        raise FileNotFoundError(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class WorkspaceGuard:
    """Moves away files that no command may make. One for each task; call it in a thread.

    `trash` is the folder for moved files; on another file system they stay in the workspace under another name. Files
    that a person makes while a command runs are moved and named too: they look like the command's.
    """

    workspace: Path
    trash: Path
    protected: ProtectedFiles = field(default_factory=ProtectedFiles)
    _is_watching: bool = False
    # False until the first command: files that are protected then are the person's.
    _has_begun: bool = False
    # Protected paths that the sandbox lets commands change, and the content of their files.
    _unmounted: list[Path] = field(default_factory=list[Path])
    _contents: dict[Path, bytes] = field(default_factory=dict[Path, bytes])
    # Repositories that background processes of their commands can still change.
    _new_repositories: set[Path] = field(default_factory=set[Path])

    def before(self, *, can_change: bool) -> list[str]:
        """Prepare for a command. Return the names of files that background processes have made since the last one.

        `can_change`: the sandbox does not keep the command from changing protected files, so they are put back.
        """
        moved = self.after(has_background=True) if self._is_watching else []
        root = self.root
        self.protected, self._is_watching, self._has_begun = find_protected(root), True, True
        pinned = {} if can_change else pinned_of(root, self.protected)
        plain = (path for path, file in self.protected.files.items() if file.link is None)
        self._unmounted = [path for path in plain if path not in pinned]
        self._contents = _contents(self._unmounted, root)
        return moved

    def after(self, *, has_background: bool) -> list[str]:
        """Clean up after a command. Return the names of files that were moved away or put back.

        `has_background`: processes are left that can go on.
        """
        if not self._has_begun:
            return []
        self._is_watching = has_background
        root, moved = self.root, list[str]()
        if self._unmounted:
            moved += self._put_back(root)
        now = find_protected(root, self.protected.folders)
        for path, file in self.protected.files.items():
            if file.link is not None and self._is_there(file) and now.files.get(path) != file:
                moved += self._restore(path, file.link, root)
        changed = dict.fromkeys((*self._new_repositories, *self._exchanged(now), *self._new(now, root)))
        for path in changed:
            if path not in now.files:
                moved += self._clean_repository(path, root)
                self._new_repositories.add(path)
            elif path not in own_writes:
                moved += self._move_away(path, root)
        self._new_repositories = self._new_repositories if has_background else set()
        self.protected = find_protected(root, now.folders) if moved or changed else now
        return moved

    @property
    def root(self) -> Path:
        return Path(real_path(self.workspace))

    def _exchanged(self, now: ProtectedFiles) -> list[Path]:
        """Return files whose folder was replaced by another of the same name: a mount moves along with its folder."""
        return [
            path
            for path, file in self.protected.files.items()
            if path in now.files
            and path not in self._unmounted
            and now.folders.get(str(file.folder)) != self.protected.folders.get(str(file.folder))
        ]

    def _new(self, now: ProtectedFiles, root: Path) -> list[Path]:
        """Return the new files; for those of a new repository its folder, which is not in `now`.

        Files that came with a new repository into a new folder stay, as do files in a folder that was moved.
        """
        unknown = [(path, file) for path, file in now.files.items() if path not in self.protected.files]
        if not unknown:
            return []
        before = {identity: folder for folder, identity in self.protected.folders.items()}
        repositories_before = {_repository_of(path, root) for path in self.protected.files}
        new, repositories, new_folders = dict[Path, None](), set[Path](), set[Path]()
        for path, file in unknown:
            if _is_of_a_worktree(path, root) or self._was_moved(path, file, now, before):
                continue
            repository, is_link = _repository_of(path, root), _leads_to_a_repository(path, root)
            is_repository = repository is not None and repository not in repositories_before
            if (is_repository or is_link) and str(file.folder) not in self.protected.folders:
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
        """Return True if the file was moved, unchanged, with its folder."""
        identity = now.folders.get(str(file.folder))
        folder = before.get(identity) if identity is not None else None
        if folder is None or folder == str(file.folder):
            return False
        earlier = Path(folder) / path.relative_to(file.folder)
        contents = {name: data for name, data in self._contents.items() if name == earlier or earlier in name.parents}
        return earlier in self.protected.files and all(
            _read(path / name.relative_to(earlier), self.root) == data for name, data in contents.items()
        )

    def _is_there(self, file: ProtectedFile) -> bool:
        """Return False if the folder with the file was moved away or removed; the workspace itself is there."""
        return file.folder == self.root or file.folder.is_dir()

    def _put_back(self, root: Path) -> list[str]:
        moved: list[str] = []
        watched = [path for path in self._unmounted if self._is_there(self.protected.files[path])]
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
        """Remove from a repository that a command made whatever names programs to run."""
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
        hooks_made = [hooks / name for name in names if not name.endswith(_EXAMPLE)]
        return [name for path in hooks_made if path not in own_writes for name in self._move_away(path, root)]

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
        """Rename it, which follows no link and copies nothing: its content may change meanwhile."""
        for target in _free_names(self.trash / path.name, path.with_name(f"{path.name}.not-kept")):
            with suppress(OSError), _folder_of(path, root) as folder:
                os.lstat(path.name, dir_fd=folder)
                self.trash.mkdir(mode=0o700, parents=True, exist_ok=True)
                if target.parent == path.parent:
                    os.rename(path.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    os.rename(path.name, target, src_dir_fd=folder)
                return [str(path.relative_to(root))]
        return []


def _contents(paths: Iterable[Path], root: Path) -> dict[Path, bytes]:
    """Return the small files among them and in their folders, without following links."""
    files: dict[Path, bytes] = {}
    for path in paths:
        below = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
        for file in [path, *below[:_MAX_FILES]]:
            if (data := _read(file, root)) is not None:
                files[file] = data
    return files


def _free_names(*paths: Path) -> Iterable[Path]:
    for path in paths:
        number, free = 1, path
        while os.path.lexists(free):
            number += 1
            free = path.with_name(f"{path.name}-{number}")
        yield free


def _repository_of(path: Path, root: Path) -> Path | None:
    """Return the repository that the file configures, that of a folder or of a submodule."""
    git = next((above for above in path.parents if above.name == ".git" and above.is_relative_to(root)), None)
    if git is None or path.is_relative_to(git / "worktrees"):
        return None
    return next((path.parents[part.count("/")] for part in PROTECTED_PARTS[".git"] if path.match(part)), None)


def _is_of_a_worktree(path: Path, root: Path) -> bool:
    """Return True for the file by which `git worktree add` says where the repository is."""
    is_there = path.name == "commondir" and path.parts[-4:-2] == (".git", "worktrees")
    return is_there and (_read(path, root) or b"").strip() == _COMMON


def _leads_to_a_repository(path: Path, root: Path) -> bool:
    """Return True for the file `.git` of a submodule or a linked worktree whose repository lies in the workspace."""
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
    """Return the content of a small file, not through a link."""
    try:
        with _folder_of(path, root) as folder:
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
            return None
        return os.read(descriptor, _MAX_FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)
