"""Tells which files of a folder and of those below it changed: the kernel's inotify, read when somebody asks.

Nothing waits for events: the kernel keeps them, and coalesces equal ones, until a command begins or ends.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x4000_0000
_ONLY_FOLDERS, _NO_LINKS, _NOT_UNLINKED = 0x0100_0000, 0x0200_0000, 0x0400_0000
_WATCHED = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
) | (_ONLY_FOLDERS | _NO_LINKS | _NOT_UNLINKED)
_EVENT = struct.Struct("iIII")
_BUFFER_BYTES = 65_536


@dataclass(slots=True)
class SeenChanges:
    """Paths relative to the watched folder. Of `folders` everything below may be another; `is_all`: events were lost.

    `is_root_gone`: the watched folder was moved or deleted. `is_unmounted`: its file system is gone, not its files.
    """

    files: set[str] = field(default_factory=set[str])
    folders: set[str] = field(default_factory=set[str])
    is_all: bool = False
    is_root_gone: bool = False
    is_unmounted: bool = False


class FolderWatch:
    """Watches folders below `root`, each added alone. Raises OSError where the system has no more watches or none."""

    def __init__(self, root: str) -> None:
        if sys.platform != "linux":
            raise OSError(errno.ENOSYS, "this system has no inotify")
        self._root = root
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._checked(self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._paths: dict[int, str] = {}

    def add(self, folder: str) -> int | None:
        """Watch a folder, named relative to the root; None if it is gone. Add it before its files are listed."""
        path = os.fsencode(os.path.join(self._root, folder))
        try:
            watch = self._checked(self._library.inotify_add_watch(self._descriptor, path, _WATCHED))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None
        self._paths[watch] = folder
        return watch

    def remove(self, watch: int) -> None:
        self._library.inotify_rm_watch(self._descriptor, watch)
        self._paths.pop(watch, None)

    def take(self) -> SeenChanges:
        """Return what has changed since the last call."""
        seen = SeenChanges()
        for watch, mask, name in self._events():
            folder = self._paths.get(watch)
            if mask & _OVERFLOW:
                seen.is_all = True
            elif mask & _IGNORED:
                self._paths.pop(watch, None)
            elif folder is None:
                continue
            elif mask & _UNMOUNT:
                seen.is_unmounted = True
            elif mask & (_DELETE_SELF | _MOVE_SELF):
                seen.is_root_gone |= not folder
            elif name:
                path = os.path.join(folder, name)
                (seen.folders if mask & _IS_FOLDER and not mask & _ATTRIB else seen.files).add(path)
        return seen

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._paths.clear()

    def _events(self) -> Iterator[tuple[int, int, str]]:
        while True:
            try:
                data = os.read(self._descriptor, _BUFFER_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size
                yield watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0"))
                at += length

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
