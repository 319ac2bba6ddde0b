"""The files of a zip, unpacked one at a time to anonymous temporary files, never to a path from the zip."""

import os
import tempfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from errand.engine.core.errors import InvalidParams

_MAX_FILE_BYTES = 1024 * 1024 * 1024
_MAX_ARCHIVE_BYTES = 4 * _MAX_FILE_BYTES
# JSON compresses to about a tenth; a much higher ratio indicates a zip bomb.
_MAX_RATIO = 100
_UNSUSPICIOUS = 32 * 1024 * 1024
# The directory of a zip is read into memory: each entry of 47 bytes becomes an object of 700.
_MAX_LIST_BYTES = 8 * 1024 * 1024
_END, _END_64 = b"PK\x05\x06", b"PK\x06\x07"
_MAX_END_BYTES = 22 + 65_535
_MAX_ASSET_BYTES = 10 * 1024 * 1024
_MAX_FILES = 100_000
_PIECE = 1024 * 1024
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)


class Archive:
    """Raises `InvalidParams` for a zip that is unreadable, encrypted, or too large when unpacked."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._unpacked = 0
        self._members = {member.filename: member for member in file.infolist() if not member.is_dir()}
        if len(self._members) > _MAX_FILES:
            raise InvalidParams(f"it has more than {_MAX_FILES:,} files")

    def names(self) -> tuple[str, ...]:
        """Return the files that may contain conversations."""
        return tuple(sorted(name for name in self._members if name.endswith((".json", ".jsonl"))))

    def others(self) -> int:
        return len(self._members) - len(self.names())

    @contextmanager
    def unpacked(self, name: str, folder: Path) -> Generator[IO[bytes]]:
        """Unpack a temporary copy on the disk of `folder`, deleted on exit."""
        with tempfile.TemporaryFile(dir=folder) as copy:
            size = 0
            packed = max(1, self._members[name].compress_size)
            for piece in self._pieces(name):
                size += len(piece)
                self._unpacked += len(piece)
                if size > _MAX_FILE_BYTES or self._unpacked > _MAX_ARCHIVE_BYTES:
                    raise InvalidParams(f"{name[:200]} in it unpacks to more than can be imported")
                if size > _UNSUSPICIOUS and size > _MAX_RATIO * packed:
                    raise InvalidParams(f"{name[:200]} in it unpacks to more than {_MAX_RATIO} times its size")
                copy.write(piece)
            copy.seek(0)
            yield copy

    def asset(self, beginning: str) -> bytes | None:
        """Return an included picture; None if it is missing or too large."""
        names = (name for name in self._members if beginning and Path(name).name.startswith(beginning))
        name = next(names, None)
        if name is None or self._members[name].file_size > _MAX_ASSET_BYTES:
            return None
        data = bytearray()
        for piece in self._pieces(name):
            data += piece
            if len(data) > _MAX_ASSET_BYTES:
                return None
        return bytes(data)

    def _pieces(self, name: str) -> Iterator[bytes]:
        try:
            with self._file.open(self._members[name]) as member:
                while piece := member.read(_PIECE):
                    yield piece
        except _BROKEN as error:
            raise InvalidParams(f"{name} in it cannot be unpacked ({error})") from error


@contextmanager
def open_archive(content: IO[bytes]) -> Generator[Archive]:
    _check_list(content)
    try:
        with zipfile.ZipFile(content) as file:
            yield Archive(file)
    except zipfile.BadZipFile as error:
        raise InvalidParams(f"it is no zip that can be read ({error})") from error


def _check_list(content: IO[bytes]) -> None:
    """Check the size of the directory, from the record at the end of the file."""
    content.seek(max(0, content.seek(0, os.SEEK_END) - _MAX_END_BYTES))
    tail = content.read(_MAX_END_BYTES)
    end = tail.rfind(_END)
    size = int.from_bytes(tail[end + 12 : end + 16], "little") if end >= 0 else 0
    if size > _MAX_LIST_BYTES or _END_64 in tail[max(0, end - 20) : max(0, end)]:
        raise InvalidParams("it has too many files")
    content.seek(0)
