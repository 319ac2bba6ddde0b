"""The files of a skill, in memory: what is shown before an installation is what is written by it."""

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from errand.engine.agent.prompt.skills import NAME, front_matter
from errand.engine.core.errors import InvalidParams
from errand.system.regular_file import FileTooLarge, read_regular

MAX_FILES, MAX_TOTAL_BYTES, MAX_FILE_BYTES = 300, 10_000_000, 5_000_000
_MAX_DEPTH, _MAX_PATH_LENGTH, _MAX_TEXT_LENGTH = 8, 200, 200_000
_MAX_CHOICES, _MAX_SCANNED_ENTRIES = 200, 20_000
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_SCRIPTS = frozenset(
    ("py", "sh", "bash", "zsh", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "ps1", "bat", "cmd", "r")
)
_GIT = ".git"


@dataclass(frozen=True, slots=True)
class SkillContent:
    """One file. `path` is relative, with slashes. What begins with `#!` becomes executable."""

    path: str
    data: bytes
    is_executable: bool

    @property
    def is_script(self) -> bool:
        """True for what a command could run; a binary program is one too."""
        suffix = self.path.rpartition("/")[2].rpartition(".")[2].lower()
        return self.is_executable or suffix in _SCRIPTS


@dataclass(frozen=True, slots=True)
class SkillContents:
    """A whole skill that may be installed. `text` is its SKILL.md; `fingerprint` covers names, rights and contents."""

    name: str
    description: str
    text: str
    files: tuple[SkillContent, ...]
    fingerprint: str


def skill_of(files: Iterable[SkillContent]) -> SkillContents:
    """Raises `InvalidParams` if the files are no skill that can be installed."""
    runnable = (replace(file, is_executable=file.is_executable or file.data[:2] == b"#!") for file in files)
    ordered = tuple(sorted(runnable, key=lambda file: file.path))
    head = next((file for file in ordered if file.path == NAME), None)
    if head is None:
        raise InvalidParams(f"There is no {NAME} in it, so it is no skill.")
    try:
        text = head.data.decode()
    except UnicodeDecodeError as error:
        raise InvalidParams(f"Its {NAME} is not UTF-8 text.") from error
    if len(text) > _MAX_TEXT_LENGTH:
        raise InvalidParams(f"Its {NAME} has {len(text):,} characters; at most {_MAX_TEXT_LENGTH:,} can be shown.")
    fields = front_matter(text)
    name, description = fields.get("name", ""), fields.get("description", "")
    if not name or not description:
        raise InvalidParams(f"Its {NAME} does not begin with a front matter that has a name and a description.")
    if not _FOLDER_NAME.fullmatch(name) or _RESERVED.fullmatch(name) or ".." in name:
        printable_name = name if name.isprintable() else ascii(name)
        raise InvalidParams(
            f"Its name “{printable_name[:80]}” cannot be that of a folder: use letters, digits, - and _."
        )
    return SkillContents(name, description, text, ordered, _fingerprint(ordered))


def read_folder(folder: Path) -> SkillContents:
    """Return the skill in a folder. Blocking: call it in a thread. Raises `InvalidParams`."""
    try:
        real = folder.resolve(strict=True)
        return skill_of(_read(real, Path(entry)) for entry in _entries(real))
    except FileTooLarge as error:
        raise InvalidParams(f"{error.filename} is larger than {_megabytes(MAX_FILE_BYTES)}.") from error
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidParams(f"{folder} cannot be read: {reason}.") from error


def choices_in(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of skills among these paths of files, the nearest first."""
    folders = {posixpath.dirname(path) for path in paths if posixpath.basename(path) == NAME}
    return tuple(sorted(folders, key=lambda path: (path.count("/"), path))[:_MAX_CHOICES])


def files_below(folder: Path) -> Iterator[str]:
    """Yield the paths of the first files below a folder, for `choices_in`; links are not followed. Blocking."""
    count = 0
    for parent, folders, names in os.walk(folder):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if name != _GIT) if depth < _MAX_DEPTH else []
        for name in names:
            count += 1
            if count > _MAX_SCANNED_ENTRIES:
                return
            yield Path(parent, name).relative_to(folder).as_posix()


def check_path(path: str) -> None:
    """Raises `InvalidParams` for the name of a file that nobody should have to look at twice."""
    parts = path.split("/")
    is_odd = not path.isprintable() or "\\" in path or len(path) > _MAX_PATH_LENGTH or not _is_text(path)
    if is_odd or len(parts) > _MAX_DEPTH or any(part in ("", ".", "..") or part.lower() == _GIT for part in parts):
        raise InvalidParams(f"It has a file with an unusual name: {ascii(path)[:_MAX_PATH_LENGTH]}.")


def check_size(count: int, size: int, largest: int) -> None:
    """Raises `InvalidParams` for a skill that is too large to be looked at."""
    if count > MAX_FILES:
        raise InvalidParams(f"It has more than {MAX_FILES} files. A skill is a small folder: install one of them.")
    if size > MAX_TOTAL_BYTES or largest > MAX_FILE_BYTES:
        raise InvalidParams(
            f"It is too large: a skill has at most {_megabytes(MAX_TOTAL_BYTES)}, "
            f"a file of it {_megabytes(MAX_FILE_BYTES)}."
        )


def linked_file(path: str, target: str) -> str:
    """Return the path in the skill to which a link at `path` leads. Raises `InvalidParams` if it leads out."""
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or joined.startswith("../") or joined == "..":
        raise InvalidParams(f"{path} is a link that leads out of the folder, to {ascii(target)[:_MAX_PATH_LENGTH]}.")
    return joined


def _entries(root: Path) -> list[str]:
    """Return the paths of all files, in bounds."""
    paths: list[str] = []
    size = 0
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != _GIT]
        for name in (*names, *(name for name in folders if Path(parent, name).is_symlink())):
            if name == _GIT:
                continue
            path = Path(parent, name)
            paths.append(str(path))
            check_path(path.relative_to(root).as_posix())
            length = path.lstat().st_size
            size += length
            check_size(len(paths), size, length)
    return paths


def _read(root: Path, path: Path) -> SkillContent:
    relative_path = path.relative_to(root).as_posix()
    real = path
    if path.is_symlink():
        real = Path(os.path.realpath(path, strict=True))
        if not real.is_relative_to(root) or _GIT in real.relative_to(root).parts:
            raise InvalidParams(f"{relative_path} is a link that leads out of the folder, to {real}.")
    if not stat.S_ISREG(real.lstat().st_mode):
        raise InvalidParams(f"{relative_path} is neither a file nor a folder.")
    data = read_regular(real, MAX_FILE_BYTES, follow_links=False)
    return SkillContent(relative_path, data, bool(real.stat().st_mode & stat.S_IXUSR))


def _fingerprint(files: Iterable[SkillContent]) -> str:
    digest = hashlib.sha256()
    for file in files:
        for part in (file.path.encode(), b"x" if file.is_executable else b"-", file.data):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _megabytes(size: int) -> str:
    return f"{size // 1_000_000} MB"
