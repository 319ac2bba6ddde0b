"""Reads, replaces and compares a task's files, with errors that say what to do.

Leaves OSErrors to the caller.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from errand.engine.sandbox.protected_files import note_own_write
from errand.engine.tools.code.edits import TextDiff, close_matches, diff_texts
from errand.engine.tools.code.text_file import MAX_FILE_BYTES, LineRange, TextFile, decode, line_range, window_of_large
from errand.engine.tools.context import ToolContext
from errand.engine.tools.files.file_walk import TooLong, is_file, walk
from errand.engine.tools.files.git_excludes import personal_excludes
from errand.engine.tools.files.gitignore import GitIgnore
from errand.engine.tools.files.path_calls import PathCalls
from errand.engine.tools.files.real_path import name_in, opened_folder, with_real_path
from errand.engine.tools.results import ToolError
from errand.engine.tools.sessions import WorkingFolder
from errand.system.regular_file import NotRegularFile, is_read_only, open_regular, read_at_most, replace_file

_MAX_EDITED_BYTES = 20_000_000
_MAX_COMPARED_BYTES = 1_000_000
_NO_FILE_STATE = "nothing"
# Of the search for a file of the same name, which is for a hint alone.
_MAX_NAMESAKES = 3
_MAX_SEARCHED_ENTRIES = 5_000
_NAMESAKES_S = 1.0


@dataclass(frozen=True)
class LoadedFile:
    """A file as it was read for a change; `data` is None if there is none. `mode` has its permissions."""

    path: Path
    data: bytes | None
    mode: int | None = None
    identity: str = ""

    @cached_property
    def file(self) -> TextFile:
        """Its text; empty if there is no file or a binary one."""
        return self._decoded or TextFile("")

    @property
    def is_binary(self) -> bool:
        return self._decoded is None

    @cached_property
    def _decoded(self) -> TextFile | None:
        return decode(self.data or b"")


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """A write that is about to be made: the new content of a file, and how it differs from the current one."""

    before: LoadedFile
    data: bytes
    diff: TextDiff


class WorkspaceFiles:
    """Records what the task has read, so that it does not overwrite changes that others made since.

    `paths` gives the names of paths in errors.
    """

    def __init__(self, context: ToolContext, paths: PathCalls) -> None:
        self._context = context
        self._paths = paths
        self._read: dict[Path, bytes] = {}

    def window(self, path: Path, first: int, last: int, is_cancelled: Callable[[], bool]) -> LineRange:
        with self._open(path, with_hint=True) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE_BYTES:
                part = window_of_large(file, first, last, is_cancelled)
            else:
                data = read_at_most(file, MAX_FILE_BYTES)
                self._read[path] = _digest(data)
                part = line_range(data, first, last)
        if part is None:
            raise ToolError(f"{self._paths.name(path)} is a binary file of {size:,} bytes. Look at it with the shell.")
        return part

    def state(self, path: Path) -> str:
        """Return a fingerprint of the file's current content, which `load` and `current_file` compare."""
        try:
            with self._open(path) as file:
                status = os.fstat(file.fileno())
                return _state(status, read_at_most(file, _MAX_COMPARED_BYTES + 1))
        except _NoFile:
            return _NO_FILE_STATE
        except (ToolError, OSError):
            return "no file"

    def load(self, path: Path, state: str | None = None) -> LoadedFile:
        """Load a text file for a change, if it has not changed since the task read it and still has this state."""
        loaded = self._current(path, state, with_hint=True)
        if loaded.is_binary:
            raise ToolError(f"{self._paths.name(path)} is a binary file; this action works on text.")
        return loaded

    def current_file(self, path: Path, state: str | None = None) -> LoadedFile:
        """Return the current file, also a binary one, or none if it does not exist."""
        try:
            return self._current(path, state)
        except _NoFile:
            if state not in (None, _NO_FILE_STATE):
                raise self._changed(path) from None
            return LoadedFile(path, None)

    def prepare(self, before: LoadedFile, text: str) -> PreparedWrite:
        """Return what a write of this text with the encoding of `before` will do; writes nothing yet."""
        name, file = self._paths.name(before.path), before.file
        try:
            data = file.encode(text)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{name} is in {file.encoding}, which has no {error.object[error.start]!r}. Use other characters, or "
                "convert the file to UTF-8 first."
            ) from error
        after = text.replace("\r\n", "\n") if file.newline == "\r\n" else text
        return PreparedWrite(before, data, diff_texts(file.text, after, name))

    def check_writable(self, path: Path) -> None:
        """Raises `ToolError` for a file that is read-only: to replace it would change it all the same."""
        with suppress(OSError), opened_folder(path.parent) as folder:
            name = name_in(folder, path)
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and is_read_only(name, status, folder=folder):
                mode = stat.S_IMODE(status.st_mode)
                raise ToolError(
                    f"{self._paths.name(path)} is read-only (mode {mode:04o}), so it was not changed. Somebody "
                    "protected it: ask the person, or leave it as it is.",
                    "the file is read-only",
                )

    def write(self, prepared: PreparedWrite) -> None:
        """Replace or create the file, unless it has changed since it was loaded."""
        path, before = prepared.before.path, prepared.before
        note_own_write(path)
        with opened_folder(path.parent, make=True) as folder:
            try:
                now = os.stat(name_in(folder, path), dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                now = None
            if (_identity(now) if now is not None else "") != before.identity:
                raise self._changed(path)
            replace_file(name_in(folder, path), prepared.data, folder=folder)
        self._read[path] = _digest(prepared.data)

    def _current(self, path: Path, state: str | None, *, with_hint: bool = False) -> LoadedFile:
        with self._open(path, with_hint=with_hint) as file:
            status = os.fstat(file.fileno())
            if status.st_size > _MAX_EDITED_BYTES:
                raise ToolError(f"{self._paths.name(path)} is too large to be changed here. Use the shell.")
            data = read_at_most(file, _MAX_EDITED_BYTES)
        if state is not None and _state(status, data) != state:
            raise self._changed(path)
        if self._read.get(path, digest := _digest(data)) != digest:
            raise ToolError(
                f"{self._paths.name(path)} has changed since you read it, by a command or by somebody else. "
                "Read it again first."
            )
        return LoadedFile(path, data, stat.S_IMODE(status.st_mode), _identity(status))

    def _changed(self, path: Path) -> ToolError:
        return ToolError(
            f"{self._paths.name(path)} was changed by somebody else since this call was allowed. Nothing was written. "
            "Read it again first; then make the call again, and it is asked about anew.",
            "changed since it was allowed",
        )

    def _open(self, path: Path, *, with_hint: bool = False) -> BinaryIO:
        try:
            with opened_folder(path.parent) as folder:
                return open_regular(name_in(folder, path), follow_links=False, folder=folder)
        except FileNotFoundError as error:
            hint = self.hint(path) if with_hint else ""
            raise _NoFile(f"There is no file {self._paths.name(path)}.{hint}") from error
        except NotRegularFile as error:
            if path.is_symlink():
                raise with_real_path(path) from error
            if path.is_dir():
                raise ToolError(f"{self._paths.name(path)} is a folder: list it.") from error
            raise ToolError(f"{self._paths.name(path)} is no regular file but a device, pipe or socket.") from error

    def hint(self, path: Path) -> str:
        """Return where a file of this name is, else names like it, as the next call can have them."""
        shell = self._context.sessions.find(WorkingFolder)
        if (
            shell is not None
            and shell.path
            and os.path.isfile(meant := Path(shell.path, self._paths.path_from_workspace(path)))
        ):
            return f" Paths start at the workspace: {self._paths.name(meant)} is there."
        missing, files = "", self._namesakes(path)
        try:
            names = os.listdir(path.parent)
        except OSError:
            missing = f" There is no folder {self._paths.name(path.parent)} either."
        else:
            files = files or [path.parent / names[index] for index in close_matches(path.name, names, 3)]
        there = ", ".join(map(self._paths.name, files))
        return f"{missing} There is {there}." if there else missing

    def _namesakes(self, path: Path) -> list[Path]:
        """Return up to three files of this name elsewhere in the workspace, of its first entries."""
        root = Path(os.path.realpath(self._context.workspace))
        if not path.is_relative_to(root):
            return []
        ignore = GitIgnore(root, personal_excludes(self._context.environment))
        give_up_at = time.monotonic() + _NAMESAKES_S
        files: list[Path] = []
        with suppress(TooLong):
            entries = walk(root, lambda: False, ignore.leaves_out)
            for _, entry in islice(entries, _MAX_SEARCHED_ENTRIES):
                if entry.name.casefold() == path.name.casefold() and is_file(entry):
                    files.append(Path(entry.path))
                if len(files) == _MAX_NAMESAKES or time.monotonic() > give_up_at:
                    break
        return files


class _NoFile(ToolError):
    """The file does not exist."""


def _state(status: os.stat_result, data: bytes) -> str:
    """Return a fingerprint; for a large file its metadata is enough, since hashing takes too long."""
    if len(data) <= _MAX_COMPARED_BYTES:
        return f"content {_digest(data).hex()}"
    return f"file {_identity(status)}"


def _identity(status: os.stat_result) -> str:
    """Differs for any other file, and after any change of this one."""
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
