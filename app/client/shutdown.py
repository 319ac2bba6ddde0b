"""Ends the engine of a data directory: asks it to, and where it does not answer ends its process."""

import asyncio
import os
import select
import signal
import sys
import time
from typing import Literal

from app.client.connection import Connection
from app.client.errors import CallError, ConnectionLost, NoEngine
from app.client.launch import has_engine, read_endpoint
from app.local_trust import start_of
from app.paths import Paths
from app.protocol.engine import ENGINE_SHUTDOWN, Endpoint, EngineShutdownParams

# `killed` is one that answered nothing; what it had under way is interrupted all the same.
ShutdownResult = Literal["none", "ended", "killed", "left"]

# An engine ends the steps in hand for 2 s, and leaves after 3 s whatever is left.
_ANSWERS_WITHIN_S = 2.0
_ENDS_WITHIN_S = 5.0
_KILLED_WITHIN_S = 5.0
_LOOK_S = 0.02
_KILL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


async def shut_down(paths: Paths, client_name: str) -> ShutdownResult:
    """End the engine in order if it can be. `left` is one that even the system could not end. Raises `NotOurs`."""
    try:
        endpoint = read_endpoint(paths)
    except NoEngine:
        return "none"
    if not await _ask(paths, client_name):
        _signal(endpoint, signal.SIGTERM)  # one that is merely slow ends in order
    if await _is_gone(paths, endpoint, _ENDS_WITHIN_S):
        return "ended"
    _signal(endpoint, _KILL)
    return "killed" if await _is_gone(paths, endpoint, _KILLED_WITHIN_S) else "left"


async def _ask(paths: Paths, client_name: str) -> bool:
    """True where it has taken the request, or has gone meanwhile."""
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
    """True for the process that wrote the endpoint file: it gives up its lock a moment before it has ended."""
    if sys.platform != "linux":
        return False
    try:
        process = os.pidfd_open(endpoint.pid)
    except OSError:
        return False
    try:
        ended = select.poll()
        ended.register(process, select.POLLIN)
        return start_of(endpoint.pid) == endpoint.process_start and not ended.poll(0)
    finally:
        os.close(process)


def _signal(endpoint: Endpoint, number: int) -> None:
    """To the process that wrote the endpoint file, and to no other that has got its number meanwhile."""
    try:
        if sys.platform != "linux":
            os.kill(endpoint.pid, number)
            return
        process = os.pidfd_open(endpoint.pid)
        try:
            if start_of(endpoint.pid) == endpoint.process_start:
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)
    except OSError:
        pass  # it has gone, or may not be ended: the look that follows tells
