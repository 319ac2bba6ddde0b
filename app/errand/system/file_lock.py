"""A file lock that the system releases when its process ends for any reason."""

import os
from pathlib import Path
from typing import BinaryIO

if os.name == "nt":
    import msvcrt

    def _lock(file: BinaryIO) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _probe(file: BinaryIO) -> None:
        _lock(file)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _probe(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


class FileLock:
    """Held from `take` to `release`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @classmethod
    def acquire(cls, path: Path) -> "FileLock | None":
        """Returns None immediately if another process holds the lock. The file stays after release."""
        file = open(path, "a+b")  # noqa: SIM115 -- open as long as the lock is held
        try:
            _lock(file)
        except OSError:
            file.close()
            return None
        return cls(file)

    @classmethod
    def is_held(cls, path: Path) -> bool:
        """Return True while a process holds the lock. OSError if the file does not exist.

        Several processes may check at once; a `take` in the same instant fails and must be retried.
        """
        with open(path, "rb") as file:
            try:
                _probe(file)
            except OSError:
                return True
            return False

    def release(self) -> None:
        self._file.close()
