"""The files of a zip, unpacked one at a time to where nobody sees them: by content, never to a name of the zip's."""

import tempfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from app.engine.errors import InvalidParams

_LARGEST = 2 * 1024 * 1024 * 1024
_LARGEST_ASSET = 10 * 1024 * 1024
_MOST = 100_000
_PIECE = 1024 * 1024
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)


class Archive:
    """`InvalidParams` for a zip that cannot be read, is locked, or unpacks to more than 2 GB a file."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._members = {member.filename: member for member in file.infolist() if not member.is_dir()}
        if len(self._members) > _MOST:
            raise InvalidParams(f"it has more than {_MOST:,} files")

    def names(self) -> tuple[str, ...]:
        """Of its files those that can hold conversations."""
        return tuple(sorted(name for name in self._members if name.endswith((".json", ".jsonl"))))

    def others(self) -> int:
        return len(self._members) - len(self.names())

    @contextmanager
    def unpacked(self, name: str, folder: Path) -> Generator[IO[bytes]]:
        """A file on the disk of `folder` that is gone afterwards."""
        with tempfile.TemporaryFile(dir=folder) as copy:
            size = 0
            for piece in self._pieces(name):
                size += len(piece)
                if size > _LARGEST:
                    raise InvalidParams(f"{name} in it unpacks to more than 2 GB")
                copy.write(piece)
            copy.seek(0)
            yield copy

    def asset(self, beginning: str) -> bytes | None:
        """A picture that came along; None for one that is not there or too large."""
        names = (name for name in self._members if beginning and Path(name).name.startswith(beginning))
        name = next(names, None)
        if name is None or self._members[name].file_size > _LARGEST_ASSET:
            return None
        data = b""
        for piece in self._pieces(name):
            data += piece
            if len(data) > _LARGEST_ASSET:
                return None
        return data

    def _pieces(self, name: str) -> Iterator[bytes]:
        try:
            with self._file.open(self._members[name]) as member:
                while piece := member.read(_PIECE):
                    yield piece
        except _BROKEN as error:
            raise InvalidParams(f"{name} in it cannot be unpacked ({error})") from error


@contextmanager
def open_archive(content: IO[bytes]) -> Generator[Archive]:
    try:
        with zipfile.ZipFile(content) as file:
            yield Archive(file)
    except zipfile.BadZipFile as error:
        raise InvalidParams(f"it is no zip that can be read ({error})") from error
