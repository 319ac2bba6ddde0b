"""An asynchronous atomic file: written in pieces under a temporary name, then renamed."""

from pathlib import Path
from types import TracebackType
from typing import Self

from errand.engine.core.errors import Conflict, InvalidParams
from errand.engine.core.workspace_threads import in_workspace
from errand.system.paths import Paths
from errand.system.regular_file import NotRegularFile, atomic_writer, check_write_path

_PIECE = 1_000_000
# Time for a slow disk to flush a large file.
_PATIENCE_S = 60.0


def check_target(path: Path, paths: Paths, *, overwrite: bool) -> None:
    """Check a path. Raises `InvalidParams` or `Conflict` if it cannot be written."""
    if not path.is_absolute():
        raise InvalidParams(f"path: {str(path)!r} must be an absolute path.")
    try:
        check_write_path(path, paths, overwrite=overwrite)
        if not path.parent.is_dir():
            raise InvalidParams(f"There is no folder {path.parent}. Make it first, or choose another.")
    except OSError as error:
        raise _refused(path, error) from error


class AtomicFile:
    """An async context manager: a normal exit puts the file at its path, an error leaves nothing. Mode 0600.

    Errors of the file system become `InvalidParams` with the system's text.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self._path = path
        self._output = atomic_writer(path, overwrite=overwrite)
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self.size = 0

    async def __aenter__(self) -> Self:
        try:
            self._file = await in_workspace(self._path.parent, self._output.__enter__, _PATIENCE_S)
        except OSError as error:
            raise _refused(self._path, error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await in_workspace(self._path.parent, lambda: self._end(error), _PATIENCE_S)
        except OSError as failure:
            raise _refused(self._path, failure) from failure

    async def write(self, text: str) -> None:
        self._waiting.append(text.encode())
        self._waiting_size += len(self._waiting[-1])
        if self._waiting_size >= _PIECE:
            try:
                await in_workspace(self._path.parent, self._flush, _PATIENCE_S)
            except OSError as error:
                raise _refused(self._path, error) from error

    def _end(self, error: BaseException | None) -> None:
        failure = None if error is not None else self._last_flush()
        reason = error or failure
        self._output.__exit__(type(reason) if reason else None, reason, None)
        if failure is not None:
            raise failure

    def _last_flush(self) -> OSError | None:
        try:
            self._flush()
        except OSError as error:
            return error
        return None

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting, self._waiting_size = [], 0
        self._file.write(data)
        self.size += len(data)


def _refused(path: Path, error: OSError) -> InvalidParams | Conflict:
    match error:
        case FileExistsError():
            return Conflict(f"{path} is there already. Choose another name, or overwrite it.")
        case NotRegularFile():
            return Conflict(f"{path} cannot be replaced: {error.strerror}. Give the name of a file.")
        case _:
            return InvalidParams(f"{path} cannot be written: {error.strerror}. Choose another place or make room.")
