"""A file that is there whole or not at all: written beside its place in pieces, off the loop, then moved into it."""

import asyncio
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from app.engine.errors import Conflict, InvalidParams

_PIECE = 1_000_000


def check_place(path: Path, *, overwrite: bool) -> None:
    """Raises `InvalidParams` or `Conflict` for a place where no file can be put."""
    if not path.is_absolute():
        raise InvalidParams(f"path: {str(path)!r} must be an absolute path.")
    if path.is_dir():
        raise Conflict(f"{path} is a folder. Give the name of a file.")
    if path.exists() and not overwrite:
        raise Conflict(f"{path} is there already. Choose another name, or overwrite it.")
    if not path.parent.is_dir():
        raise InvalidParams(f"There is no folder {path.parent}. Make it first, or choose another.")


class NewFile:
    """An async context: left without an error the file is in its place, else nothing is there. Readable by its owner.

    What the disk refuses is `InvalidParams` with the disk's words.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self.size = 0

    async def __aenter__(self) -> Self:
        try:
            descriptor = await asyncio.to_thread(os.open, self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise self._refused(error) from error
        self._file = open(descriptor, "wb", buffering=0)  # noqa: ASYNC230, SIM115 -- opened above; closed by __aexit__
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self._flush()
                await asyncio.to_thread(self._finish)
        except OSError as failure:
            raise self._refused(failure) from failure
        finally:
            self._file.close()
            with suppress(FileNotFoundError):
                self._unfinished.unlink()

    async def write(self, text: str) -> None:
        self._waiting.append(text.encode())
        self._waiting_size += len(self._waiting[-1])
        if self._waiting_size >= _PIECE:
            try:
                await self._flush()
            except OSError as error:
                raise self._refused(error) from error

    async def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting, self._waiting_size = [], 0
        await asyncio.to_thread(self._write, data)
        self.size += len(data)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def _finish(self) -> None:
        os.fsync(self._file.fileno())
        os.replace(self._unfinished, self._path)

    def _refused(self, error: OSError) -> InvalidParams:
        return InvalidParams(f"{self._path} cannot be written: {error.strerror}. Choose another place or make room.")
