"""Shuts down the engine of a data directory; kills its process if it does not answer."""

import asyncio
import os
import select
import signal
import sys
import time
from typing import Literal

from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost, NoEngine
from errand.client.launch import has_engine, read_endpoint
from errand.protocol.engine import ENGINE_SHUTDOWN, Endpoint, EngineShutdownParams
from errand.system.local_trust import is_same_process
from errand.system.paths import Paths

# `killed` is an engine that did not answer; its running tasks are interrupted as well.
ShutdownResult = Literal["none", "ended", "killed", "left"]

# An engine gives running steps 2 s and exits after 3 s in any case.
_ANSWERS_WITHIN_S = 2.0
_ENDS_WITHIN_S = 5.0
_KILLED_WITHIN_S = 5.0
_LOOK_S = 0.02
_KILL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


async def shut_down(paths: Paths, client_name: str) -> ShutdownResult:
    """Shut the engine down, in order if possible. `left` means that even a kill failed. Raises `NotOurs`."""
    try:
        endpoint = read_endpoint(paths)
    except NoEngine:
        return "none"
    if not await _ask(paths, client_name):
        _signal(endpoint, signal.SIGTERM)  # an engine that is only slow ends in order
    if await _is_gone(paths, endpoint, _ENDS_WITHIN_S):
        return "ended"
    _signal(endpoint, _KILL)
    return "killed" if await _is_gone(paths, endpoint, _KILLED_WITHIN_S) else "left"


async def _ask(paths: Paths, client_name: str) -> bool:
    """Return True if it accepted the request, or has ended meanwhile."""
    connection = Connection(lambda: read_endpoint(paths), client_name, patience_s=0)
    try:
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            await connection.open()
            await connection.call(ENGINE_SHUTDOWN, EngineShutdownParams())
    except (TimeoutError, OSError, CallError):
        return False
    except (ConnectionLost, NoEngine):
        pass
    finally:
        await connection.close()
    return True


async def _is_gone(paths: Paths, endpoint: Endpoint, seconds: float) -> bool:
    give_up_at = time.monotonic() + seconds
    while has_engine(paths) or _is_running(endpoint):  # a lock of another process sets no event
        if time.monotonic() > give_up_at:
            return False
        await asyncio.sleep(_LOOK_S)
    return True


def _is_running(endpoint: Endpoint) -> bool:
    """Return True for the process that wrote the endpoint file: it releases its lock shortly before it ends."""
    if sys.platform != "linux":
        return False
    try:
        process = os.pidfd_open(endpoint.pid)
    except OSError:
        return False
    try:
        ended = select.poll()
        ended.register(process, select.POLLIN)
        return is_same_process(endpoint.pid, endpoint.process_start) and not ended.poll(0)
    finally:
        os.close(process)


def _signal(endpoint: Endpoint, number: int) -> None:
    """Signal the process that wrote the endpoint file, and no other process with a reused pid."""
    try:
        if sys.platform != "linux":
            os.kill(endpoint.pid, number)
            return
        process = os.pidfd_open(endpoint.pid)
        try:
            if is_same_process(endpoint.pid, endpoint.process_start):
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)
    except OSError:
        pass  # it has ended, or may not be signalled: the check that follows shows which
