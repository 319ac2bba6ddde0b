"""Finds the engine of a data directory or starts one that outlives this client."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

import errand
from errand.client.connection import Connection
from errand.client.dial import DIAL_ERRORS
from errand.client.errors import CallError, ConnectionLost, EngineDied, LaunchError, NoEngine, NotOurs
from errand.protocol.engine import ENGINE_SHUTDOWN, Endpoint, EngineShutdownParams
from errand.system.environment import without_secrets
from errand.system.file_lock import FileLock
from errand.system.local_trust import is_same_process, listener_user, own_user, read_private
from errand.system.paths import Paths

_MAX_OUTPUT_LENGTH = 2_000
_MIN_FREE_BYTES = 1_000_000  # with less, an engine cannot even say what it lacks

_START_S = 30.0
_POLL_S = 0.005
_MAX_POLL_S = 0.05


class _Detached(subprocess.Popen[bytes]):
    """Popen warns when it is collected while its process runs; here that is intended."""

    def __del__(self) -> None:
        pass


class EngineProcess:
    """Starts the process in a new session, with its output in `logs/engine.out`."""

    def __init__(self, paths: Paths) -> None:
        self._output = paths.logs / "engine.out"
        if self._output.exists():
            os.replace(self._output, self._output.with_suffix(".old"))
        with open(self._output, "wb") as output:
            self._process = _spawn(paths, output.fileno())

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def output_tail(self) -> str:
        """Return the end of its output, for people."""
        text = self._output.read_text(encoding="utf-8", errors="replace").strip()[-_MAX_OUTPUT_LENGTH:]
        if not text and shutil.disk_usage(self._output.parent).free < _MIN_FREE_BYTES:
            return f"The disk of {self._output.parents[1]} is full: free some space and try again."
        report = f"It said:\n{text}" if text else "It said nothing."
        code = self._process.returncode
        return f"{report}\nIts exit code was {code}; {self._output} and engine.log beside it have more."


def _spawn(paths: Paths, output: int) -> _Detached:
    command = [sys.executable, "engine"] if _is_frozen() else [sys.executable, "-m", "errand", "engine"]
    environment = without_secrets(os.environ) | {"ERRAND_HOME": str(paths.home)}
    # `-m errand` finds the package in the working directory, installed or not.
    folder = paths.home if _is_frozen() else Path(errand.__path__[0]).parent
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        return _Detached(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=environment,
            creationflags=flags,
        )  # fmt: skip
    return _Detached(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )


def _is_frozen() -> bool:
    """True in an installed bundle, whose executable is errand itself."""
    return bool(getattr(sys, "frozen", False))


async def connect(
    paths: Paths,
    client_name: str,
    *,
    start: bool = True,
    on_silence: Callable[[], None] = lambda: None,
    from_desktop: bool = False,
) -> Connection:
    """Connect to the engine of the data directory; start it if none runs.

    `from_desktop`: no login shell has set this program's environment.
    `on_silence` is called if a running engine does not answer; another is started once its watchdog has ended it.
    Raises `NoEngine` (only without `start`), `LaunchError` with the engine's last output, or `CallError` if the
    engine uses another protocol version.
    """
    connection = Connection(
        lambda: read_endpoint(paths), client_name, environment=os.environ, from_desktop=from_desktop
    )
    try:
        await connection.open()
    except NotOurs:
        raise
    except (NoEngine, *DIAL_ERRORS) as error:
        if not start:
            raise NoEngine(f"No engine runs on {paths.home}.") from error
        if isinstance(error, TimeoutError):
            on_silence()
        await _start(paths, connection)
        return connection
    if start and is_outdated(paths, connection.welcome.engine_version):
        return await _replace_engine(paths, connection, client_name, from_desktop=from_desktop)
    return connection


def read_endpoint(paths: Paths) -> Endpoint:
    """Read the endpoint of the running engine.

    Raises `NoEngine` if there is none, `EngineDied` if it left its file behind, and `NotOurs` if another user could
    have written the file or listens on the engine's port.
    """
    try:
        data = read_private(paths.endpoint)
    except OSError as error:  # the file or its folder does not exist
        if not isinstance(error, FileNotFoundError) and has_engine(paths):
            raise NotOurs(f"The engine that runs is not used: {error.strerror}.") from error
        raise NoEngine(f"No engine runs on {paths.home}.") from error
    try:
        endpoint = msgspec.json.decode(data, type=Endpoint)
    except msgspec.DecodeError as error:
        raise NoEngine(f"The endpoint file {paths.endpoint} cannot be read: {error}.") from error
    if not has_engine(paths) or not is_same_process(endpoint.pid, endpoint.process_start):
        raise EngineDied(f"The engine that ran on {paths.home} ended unexpectedly.")
    if listener_user(endpoint.port) not in (None, own_user()):
        raise NotOurs(f"Another user of this machine listens on port {endpoint.port}, which was the engine's.")
    return endpoint


def is_outdated(paths: Paths, engine_version: str) -> bool:
    """Return True if an older engine still runs after an update. Reads its version only if there was an update."""
    try:
        # The time of installation, whatever date the files carry.
        if os.stat(errand.__file__).st_ctime < paths.endpoint.stat().st_ctime:
            return False
    except OSError:
        return False
    from importlib.metadata import version  # 20 ms

    return _numbers(version("errand-desktop")) > _numbers(engine_version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


async def _replace_engine(paths: Paths, old: Connection, client_name: str, *, from_desktop: bool) -> Connection:
    """Shut down the older engine, and let a new one resume its tasks."""
    try:
        await old.call(ENGINE_SHUTDOWN, EngineShutdownParams(hand_over=True))
    except CallError:
        return old  # too old to support it: leave its tasks running
    except ConnectionLost:
        pass  # it has ended already
    await old.close()
    give_up_at = time.monotonic() + _START_S
    while has_engine(paths) and time.monotonic() < give_up_at:  # noqa: ASYNC110 -- another process: it sets no event
        await asyncio.sleep(_MAX_POLL_S)
    connection = Connection(
        lambda: read_endpoint(paths), client_name, environment=os.environ, from_desktop=from_desktop
    )
    await _start(paths, connection)
    return connection


async def _start(paths: Paths, connection: Connection) -> None:
    """Start an engine and connect to it, or to the one that another client starts at the same time."""
    starter = _prepare(paths)
    process: EngineProcess | None = None
    try:
        give_up_at, delay = time.monotonic() + _START_S, _POLL_S
        while not await _try_open(connection):
            starter = starter or FileLock.acquire(paths.run / "start.lock")
            if process is None and starter is not None:
                process = EngineProcess(paths)
            if process is not None and process.has_ended() and not has_engine(paths):
                raise LaunchError("The engine did not start.", process.output_tail())
            if time.monotonic() > give_up_at:
                raise LaunchError(f"The engine did not answer in {_START_S:.0f} s. See {paths.logs / 'engine.log'}.")
            await asyncio.sleep(delay)
            delay = min(1.2 * delay, _MAX_POLL_S)
    finally:
        if starter is not None:
            starter.release()


def _prepare(paths: Paths) -> FileLock | None:
    """Create the data directory and take the start lock; None if another client holds it."""
    try:
        paths.prepare()
        return FileLock.acquire(paths.run / "start.lock")
    except OSError as error:
        raise LaunchError(
            f"The data directory {paths.home} cannot be used ({error.strerror}: {error.filename}). "
            "Make it writable, or set ERRAND_HOME to another folder."
        ) from error


async def _try_open(connection: Connection) -> bool:
    try:
        await connection.open()
    except NotOurs:
        raise
    except (NoEngine, *DIAL_ERRORS):
        return False
    return True


def has_engine(paths: Paths) -> bool:
    """Return True while a process holds the engine's lock; it may have been started elsewhere and not listen yet."""
    try:
        return FileLock.is_held(paths.lock)
    except OSError:
        return False
