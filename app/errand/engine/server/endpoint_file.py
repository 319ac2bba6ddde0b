"""The endpoint file, and the lock that allows one engine per data directory."""

import os
import time
from pathlib import Path

import msgspec

from errand.engine.core.errors import EngineRunning
from errand.protocol.engine import Endpoint
from errand.system.file_lock import FileLock
from errand.system.paths import Paths
from errand.system.regular_file import read_regular

_MAX_FILE_BYTES = 64_000
_PATIENCE_S = 0.1
_PAUSE_S = 0.005


def write_endpoint(file: Path, endpoint: Endpoint) -> None:
    """Write the file atomically, with mode 0600 from its first byte on."""
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(msgspec.json.encode(endpoint))
    os.replace(new, file)


def remove_endpoint(file: Path, instance_id: str) -> None:
    """Remove the file unless another engine has replaced it."""
    try:
        current = msgspec.json.decode(read_regular(file, _MAX_FILE_BYTES), type=Endpoint)
    except (OSError, msgspec.DecodeError):
        return
    if current.instance_id == instance_id:
        file.unlink(missing_ok=True)


def take_engine_lock(paths: Paths) -> FileLock:
    """Return the lock of a data directory, held for the lifetime of an engine.

    Raises `EngineRunning`, with the process id, if another engine holds it.
    """
    lock = FileLock.acquire(paths.lock)
    give_up_at = time.monotonic() + _PATIENCE_S
    while lock is None and time.monotonic() < give_up_at:  # a client that checks the lock holds it for an instant
        time.sleep(_PAUSE_S)
        lock = FileLock.acquire(paths.lock)
    if lock is None:
        raise EngineRunning(
            f"Another engine{_holder(paths)} works on {paths.home}. "
            "Use it, end it with `errand engine --stop`, or set ERRAND_HOME to another folder."
        )
    paths.endpoint.unlink(missing_ok=True)  # left by a killed engine: any process may have its port now
    _pid_file(paths).write_text(str(os.getpid()), encoding="ascii")
    return lock


def _pid_file(paths: Paths) -> Path:
    # Beside the lock, not in it: on Windows a locked file cannot be read.
    return paths.lock.with_suffix(".pid")


def _holder(paths: Paths) -> str:
    try:
        return f" (process {_pid_file(paths).read_text(encoding='ascii')})"
    except OSError:
        return ""
