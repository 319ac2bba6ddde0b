"""`errand` without the time of its imports: a process that has them forks for each command and each engine.

As a program it is that process. A fork is a process of its own, with the arguments, working directory, environment and
streams of the command; it runs the module as `python -m` does and is a child of the tests, which adopt orphans. On
Linux only.
"""

import atexit
import gc
import io
import os
import pickle
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from runpy import run_module

import errand
from errand.client import launch
from errand.system.environment import without_secrets
from errand.system.paths import Paths
from tests.support.processes import adopts_orphans, is_alive

CHECKOUT = Path(__file__).parents[2]

_NUMBER_BYTES = 8
_MAX_ADDRESS_LENGTH = 108
# Variables that the loader, Python and Errand read when a process starts.
_READ_AT_START = ("PYTHON", "ERRAND_LANGUAGE", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "TMPDIR")
_IMPORTED = ("errand.cli", "errand.client", "errand.protocol", "errand.engine")
# What these load starts threads, or is what a test wants to see imported.
_NOT_IMPORTED = ("_child", ".browser.", ".litellm", ".migrations.", ".postgres.")
_LIBRARIES = ("sqlalchemy.dialects.sqlite.aiosqlite", "websockets.asyncio.client", "prompt_toolkit.shortcuts")

_running: list[tuple["subprocess.Popen[bytes]", socket.socket]] = []
_pids: list[int] = []
_codes: list[int] = []
_address: list[bytes] = []


@dataclass(frozen=True, slots=True)
class Command:
    """`errand`, or another module that runs as a program, with these arguments, working directory and environment."""

    arguments: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    new_session: bool = False
    module: str = "errand"


def errand_pids() -> list[int]:
    """Return the ids of the processes that stay for the next command."""
    return _pids


def can_fork(environment: Mapping[str, str]) -> bool:
    """False if a process with this environment would not start as the one that forks did."""
    return adopts_orphans() and _starts_alike(environment)


def fork(command: Command, streams: Sequence[int]) -> int:
    """The id of a new process, a child of this one, with these descriptors as its standard streams."""
    asked = pickle.dumps(astuple(command))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(_place())
        socket.send_fds(connection, [len(asked).to_bytes(_NUMBER_BYTES, "big")], streams)
        connection.sendall(asked)
        pid = int.from_bytes(connection.recv(_NUMBER_BYTES, socket.MSG_WAITALL), "big")
    assert pid, "the process that forks has ended"
    return pid


@cache
def _environment() -> dict[str, str]:
    return without_secrets(os.environ) | {"PYTHONPATH": _python_path()}


def _python_path() -> str:
    return os.pathsep.join((str(Path(errand.__file__).parents[1]), str(CHECKOUT)))


def _starts_alike(environment: Mapping[str, str]) -> bool:
    return _read_at_start(environment) == _read_at_start(_environment())


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def _place() -> bytes:
    """The address of the process that forks, which is started by the first call."""
    if not _address:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=theirs.fileno(),
                cwd=CHECKOUT,
                env=_environment(),
                start_new_session=True,
            )
        _address.append(ours.recv(_MAX_ADDRESS_LENGTH))
        _running.append((process, ours))  # it ends when this process does
        _pids.append(process.pid)
    return _address[0]


class ForkedEngine(launch.EngineProcess):
    """Starts an engine as its base class does, in a fork if that makes no difference."""

    def __init__(self, paths: Paths) -> None:
        changed = {"ERRAND_HOME": str(paths.home), "PYTHONPATH": _python_path()}
        environment = without_secrets(os.environ) | changed
        self._pid = 0
        if not _starts_alike(environment):
            super().__init__(paths)
            return
        self._file = paths.logs / "engine.out"
        if self._file.exists():
            os.replace(self._file, self._file.with_suffix(".old"))
        command = Command(("engine",), str(Path(errand.__path__[0]).parent), environment, new_session=True)
        with open(self._file, "wb") as output, open(os.devnull, "rb") as nothing:
            self._pid = fork(command, (nothing.fileno(), output.fileno(), output.fileno()))

    def has_ended(self) -> bool:
        return not is_alive(self._pid) if self._pid else super().has_ended()

    def output_tail(self) -> str:
        if not self._pid:
            return super().output_tail()
        text = self._file.read_text(encoding="utf-8", errors="replace").strip()
        return f"It said:\n{text}" if text else "It said nothing."


def fork_engines() -> None:
    """Fork the engines that clients in this process start from now on."""
    if adopts_orphans():
        launch.EngineProcess = ForkedEngine


def _serve() -> bool:
    """Fork for each request until the tests end: True in a fork, which is `errand` from then on."""
    _import_all()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as tests, socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")  # an address without a file, which the system chooses
        listener.listen(100)
        _address.append(listener.getsockname())
        tests.sendall(_address[0])
        while True:
            ready, _, _ = select.select([tests, listener], [], [])
            if tests in ready:
                return False
            connection, _ = listener.accept()
            with connection:
                if _answer(connection):
                    return True


def _import_all() -> None:
    packages = walk_packages([str(Path(errand.__file__).parent)], "errand.")
    for name in (*(package.name for package in packages if _is_imported(package.name)), *_LIBRARIES):
        import_module(name)


def _is_imported(name: str) -> bool:
    return name.startswith(_IMPORTED) and not any(part in f"{name}." for part in _NOT_IMPORTED)


def _answer(connection: socket.socket) -> bool:
    """Fork twice, so that the process is nobody's child here. True in it."""
    head, descriptors, _, _ = socket.recv_fds(connection, _NUMBER_BYTES, 3)
    if not head:
        return False
    asked = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    reading, writing = os.pipe()
    between = os.fork()
    if not between:
        if pid := os.fork():
            os.write(writing, pid.to_bytes(_NUMBER_BYTES, "big"))
            os._exit(0)
        _become(Command(*pickle.loads(asked)), descriptors)
        return True
    os.waitpid(between, 0)
    connection.sendall(os.read(reading, _NUMBER_BYTES))
    for descriptor in (reading, writing, *descriptors):
        os.close(descriptor)
    return False


def _become(command: Command, streams: Sequence[int]) -> None:
    """Do what the system and Python do when a process starts."""
    if command.new_session:
        os.setsid()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(command.environment)
    time.tzset()
    sys.argv = ["", *command.arguments]
    sys.orig_argv = [sys.executable, "-m", command.module, *command.arguments]
    sys.path[0] = command.folder
    typed = io.BufferedReader(io.FileIO(0, "rb", closefd=False))
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(typed, sys.stdin.encoding, sys.stdin.errors)
    sys.stdout = sys.__stdout__ = _writer(1, sys.stdout.encoding, sys.stdout.errors)
    sys.stderr = sys.__stderr__ = _writer(2, sys.stderr.encoding, sys.stderr.errors)
    launch.EngineProcess = ForkedEngine


def _writer(descriptor: int, encoding: str, errors: str | None) -> io.TextIOWrapper:
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    raw = io.FileIO(descriptor, "wb", closefd=False)
    return io.TextIOWrapper(
        raw if is_unbuffered else io.BufferedWriter(raw),
        encoding,
        errors,
        line_buffering=descriptor == 2 or os.isatty(descriptor),
        write_through=is_unbuffered,
    )


def _run(module: str) -> None:
    """Run it, and leave without freeing what was imported, which takes twice as long as most commands."""
    try:
        run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as left:
        if isinstance(left.code, int):
            _codes.append(left.code)
        raise


def _leave() -> None:
    """The last step at the exit, after all threads have ended."""
    if _codes:
        with suppress(OSError, ValueError):  # Python says what is wrong with them
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_codes[0])


if __name__ == "__main__":
    atexit.register(_leave)  # first, so that it is called last
    if _serve():
        os.closerange(3, 1024)
        _run(sys.orig_argv[2])
