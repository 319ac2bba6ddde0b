"""litellm, imported once for all tests: a process that has it forks for each test that asks for a process of it.

As a program it is that process: standard input is a socket that receives the other end of each connection.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errand.engine.models.catalog.providers import Provider
from errand.engine.models.litellm import library_child
from errand.engine.models.litellm.library_process import IDLE_S, LEAVE_S, STABLE_S, LibraryProcess
from errand.engine.models.litellm.model import practice_request
from tests.support.processes import is_alive, until

_PID_BYTES = 8
_ANY = Provider("any", "Any", "litellm")


@dataclass(frozen=True, slots=True)
class _Parent:
    process: "subprocess.Popen[bytes]"
    connection: socket.socket


@dataclass(frozen=True, slots=True)
class _Fork:
    pid: int
    connection: socket.socket

    async def end(self) -> None:
        if is_alive(self.pid):
            os.kill(self.pid, signal.SIGKILL)
        await until(lambda: not is_alive(self.pid))


_parents: list[_Parent] = []


def warm_process(idle_s: float = IDLE_S, leave_s: float = LEAVE_S, stable_s: float = STABLE_S) -> LibraryProcess:
    """One whose process starts in no time."""
    return LibraryProcess(idle_s=idle_s, leave_s=leave_s, stable_s=stable_s, start=_fork)


def warm_router_process(ca_file: Callable[[], str]) -> LibraryProcess:
    """The same, as a `ModelRouter` makes it."""
    return LibraryProcess(ca_file, start=_fork)


def warm_pids() -> list[int]:
    """Return the ids of the processes that stay for the next test."""
    return [parent.process.pid for parent in _parents]


async def _fork() -> _Fork:
    if not _parents:
        _parents.append(await asyncio.to_thread(_start))
    ours, theirs = socket.socketpair()
    with theirs:
        connection = _parents[0].connection
        socket.send_fds(connection, [b"f"], [theirs.fileno()])
        pid = await asyncio.to_thread(connection.recv, _PID_BYTES, socket.MSG_WAITALL)
    return _Fork(int.from_bytes(pid, "big"), ours)


def _start() -> _Parent:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=theirs.fileno(),
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
    return _Parent(process, ours)


def _serve() -> None:
    library_child.load()
    asyncio.run(library_child.practise(json.loads(practice_request(_ANY, "any/any"))))
    library: Any = sys.modules["litellm"]
    library.in_memory_llm_clients_cache.flush_cache()  # they belong to the loop that has ended
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=0) as requests:
        while True:
            data, descriptors, _, _ = socket.recv_fds(requests, 1, 1)
            if not data:
                return
            pid = os.fork()
            if not pid:
                with socket.socket(fileno=descriptors[0]) as connection:
                    requests.close()
                    asyncio.run(library_child.serve(connection))
            os.close(descriptors[0])
            requests.sendall(pid.to_bytes(_PID_BYTES, "big"))


if __name__ == "__main__":
    _serve()
    sys.exit()
