"""A task's files: reading, replacing and comparing them, with errors that say what to do.

What the system refuses (OSError) is left to the caller.
"""

import hashlib
import os
import stat
from pathlib import Path

from app.engine.tools.atomic_write import write_atomically
from app.engine.tools.base import ToolError, Workplace
from app.engine.tools.close_match import close_matches
from app.engine.tools.diff import Change, compare
from app.engine.tools.file_window import LARGEST, Window, window, window_of_large
from app.engine.tools.plain_text import tidy_name
from app.engine.tools.text_file import TextFile, decode
from app.regular_file import read_regular

_LARGEST_EDITED = 20_000_000


class WorkspaceFiles:
    """Remembers what the task has read, so that it does not overwrite what somebody else changed since."""

    def __init__(self, workplace: Workplace) -> None:
        self._workspace = Path(os.path.realpath(workplace.workspace))
        self._read: dict[Path, bytes] = {}

    def name(self, path: Path) -> str:
        """The path as people and models should see it: relative inside the workspace."""
        return str(path.relative_to(self._workspace)) if path.is_relative_to(self._workspace) else str(path)

    def window(self, path: Path, first: int, last: int) -> Window:
        size = self._checked(path).st_size
        if size > LARGEST:
            part = window_of_large(path, first, last)
        else:
            data = read_regular(path, LARGEST, follow_links=False)
            self._read[path] = _digest(data)
            part = window(data, first, last)
        if part is None:
            raise ToolError(f"{self.name(path)} is a binary file of {size:,} bytes. Look at it with the shell.")
        return part

    def load(self, path: Path) -> TextFile:
        """A whole text file for changing it, if it is still what the task has read of it."""
        data = self._current(path)
        file = decode(data)
        if file is None:
            raise ToolError(f"{self.name(path)} is a binary file; patch works on text.")
        return file

    def replace(self, path: Path, before: TextFile, text: str) -> Change:
        """Write the text in the form of `before`, which `load` gave, or make a new file."""
        name = self.name(path)
        try:
            data = before.encode(text)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{name} is in {before.encoding}, which has no {error.object[error.start]!r}. Use other characters, or "
                "convert the file to UTF-8 first."
            ) from error
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
        self._read[path] = _digest(data)
        return compare(before.text, text.replace("\r\n", "\n") if before.newline == "\r\n" else text, name)

    def form_of(self, path: Path) -> TextFile:
        """What is there now: an empty file if there is none, or if it is binary."""
        return decode(self._current(path)) or TextFile("") if path.exists() else TextFile("")

    def _current(self, path: Path) -> bytes:
        if self._checked(path).st_size > _LARGEST_EDITED:
            raise ToolError(f"{self.name(path)} is too large to be changed here. Use the shell.")
        data = read_regular(path, _LARGEST_EDITED, follow_links=False)
        if self._read.get(path, digest := _digest(data)) != digest:
            raise ToolError(f"{self.name(path)} was changed by somebody else since you read it. Read it again first.")
        return data

    def _checked(self, path: Path) -> os.stat_result:
        try:
            found = path.stat()
        except FileNotFoundError as error:
            raise ToolError(f"There is no file {self.name(path)}.{_alike(path)}") from error
        if stat.S_ISDIR(found.st_mode):
            raise ToolError(f"{self.name(path)} is a folder. Use the action list.")
        if not stat.S_ISREG(found.st_mode):
            raise ToolError(f"{self.name(path)} is no regular file but a device, pipe or socket.")
        return found


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _alike(path: Path) -> str:
    try:
        names = os.listdir(path.parent)
    except OSError:
        return f" There is no folder {path.parent} either."
    texts = [tidy_name(name) for name in names]
    close = [texts[index] for index in close_matches(path.name, texts, 3)]
    return f" There is {', '.join(close)}." if close else ""
