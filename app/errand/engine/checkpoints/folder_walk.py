"""Lists the files of a workspace for its baseline: each folder is watched before it is read.

Folders whose files are made again by the program that made them are left out, unless git tracks files in them.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from errand.engine.checkpoints.watch import FolderWatch
from errand.engine.core.file_names import CACHE_TAG, FILLED_BY_TOOLS
from errand.engine.tools.plain_text import clean_name, is_text

MAX_COPIED_FILES = 5_000
MAX_COPIED_BYTES = 200_000_000
MAX_FILES = 100_000
# Version control keeps its own history.
LEFT_OUT = FILLED_BY_TOOLS | {".hypothesis", ".svelte-kit", ".parcel-cache", ".turbo"} | {".git", ".hg", ".svn", ".jj"}
# By these files a program says that it can make the folder again.
_TAGS = frozenset((CACHE_TAG, "pyvenv.cfg"))


class NotCovered(Exception):
    """A folder cannot have a baseline; the text says why, for people."""


@dataclass(slots=True)
class FolderWalk:
    """`tracked_folders` have files of git. `left_out` and `problems` are filled by paths relative to the root.

    `private` is the app's own data, which is left out of a workspace around it: a baseline would copy itself.
    """

    root: str
    is_closed: Callable[[], bool]
    private: str
    tracked_folders: frozenset[str] = frozenset()
    watch: FolderWatch | None = None
    left_out: set[str] = field(default_factory=set[str])
    problems: dict[str, str] = field(default_factory=dict[str, str])

    def below(self, tops: Iterable[str], needs_copy: Callable[[str], bool]) -> Iterator[tuple[str, os.stat_result]]:
        """Yield folders, each before what it holds, and regular files. Raises `NotCovered` if they are too many.

        Links, pipes, sockets and devices are passed over. A top that is gone or no folder yields nothing.
        """
        count = copied_files = copied_bytes = 0
        folders = [(top, self.status(top)) for top in tops if not self._is_left_out(top)]
        while folders:
            folder, status = folders.pop()
            if status is None or not stat.S_ISDIR(status.st_mode):
                continue
            entries = self._entries(folder)
            if entries is None:
                continue
            if folder:
                yield folder, status
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if not is_text(entry.name):
                    self.problems[folder] = f"the name {clean_name(entry.name)} is not UTF-8"
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    if not self._is_left_out(path):
                        folders.append((path, status))
                elif stat.S_ISREG(status.st_mode):
                    yield path, status
                    count += 1
                    if needs_copy(path):
                        copied_files, copied_bytes = copied_files + 1, copied_bytes + status.st_size
            check_size(count, copied_files, copied_bytes)
            if self.is_closed():
                raise NotCovered("the engine is ending")

    def status(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(os.path.join(self.root, path))
        except OSError:
            return None

    def is_below_left_out(self, path: str) -> bool:
        """Return True for a path in a folder that is left out."""
        parts = path.split("/")[:-1]
        above = ("/".join(parts[: count + 1]) for count in range(len(parts)))
        return any(folder in self.left_out or self._is_left_out(folder) for folder in above)

    def _is_left_out(self, path: str) -> bool:
        is_made_again = path.rpartition("/")[2] in LEFT_OUT and path not in self.tracked_folders
        if not is_made_again and os.path.join(self.root, path) != self.private:
            return False
        self.left_out.add(path)
        return True

    def _entries(self, folder: str) -> "list[os.DirEntry[str]] | None":
        """Return what a folder holds; None if it is gone or left out."""
        watch = self.watch.add(folder) if self.watch is not None else None
        try:
            with os.scandir(os.path.join(self.root, folder)) as opened:
                entries = list(opened)
            self.problems.pop(folder, None)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self.problems[folder] = f"{clean_name(folder) or 'the folder'} cannot be read: {error.strerror}"
            return []
        if folder and folder not in self.tracked_folders and not _TAGS.isdisjoint(entry.name for entry in entries):
            self.left_out.add(folder)
            if self.watch is not None and watch is not None:
                self.watch.remove(watch)
            return None
        return entries


def check_size(files: int, copied_files: int, copied_bytes: int) -> None:
    """Raise `NotCovered` for a folder that is too large."""
    if copied_files > MAX_COPIED_FILES:
        raise NotCovered(f"it holds more than {MAX_COPIED_FILES:,} files that git does not have")
    if copied_bytes > MAX_COPIED_BYTES:
        raise NotCovered(f"it holds more than {MAX_COPIED_BYTES // 1_000_000} MB that git does not have")
    if files > MAX_FILES:
        raise NotCovered(f"it holds more than {MAX_FILES:,} files")
