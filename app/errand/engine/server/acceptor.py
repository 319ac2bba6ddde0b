"""Accepts connections, drops unauthenticated ones, limits the request rate."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from errand.engine.background import Background

# The fastest interactive client needs less than 20 requests per second; a script may burst.
_PER_SECOND = 200.0
_BURST = 400.0

_logger = logging.getLogger(__name__)

_BACKLOG = 512
_NO_DESCRIPTORS_S = 1.0
_AGAIN_S = 1.0


class TokenBucket:
    def __init__(
        self, per_second: float = _PER_SECOND, burst: float = _BURST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._tokens = burst
        self._at = clock()

    def allows(self) -> bool:
        """Take one token; False if there is none."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


@dataclass(frozen=True, slots=True)
class AcceptLimits:
    """`authenticate_s` is the maximum time before authentication, `unauthenticated` the maximum number of such
    connections.

    At the maximum a new connection replaces the oldest one that has been silent for `silent_s`, or that has sent a
    request but is not authenticated after `requested_s`; it waits if all are newer.
    """

    unauthenticated: int = 128
    authenticate_s: float = 5.0
    silent_s: float = 0.1
    requested_s: float = 1.0


_LIMITS = AcceptLimits()


@dataclass(slots=True)
class _Unauthenticated:
    """An unauthenticated connection, when it may be replaced, and the timer that closes it."""

    accepted_at: float
    replaceable_at: float
    deadline: asyncio.TimerHandle


class Acceptor:
    """Owns the listener from `start` to `close`."""

    def __init__(self, listener: socket.socket, limits: AcceptLimits = _LIMITS) -> None:
        self._listener = listener
        self._limits = limits
        self._unauthenticated: dict[asyncio.BaseTransport, _Unauthenticated] = {}
        self._has_room = asyncio.Event()
        self._background = Background()

    def start(self, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        """Start listening; `protocol` creates the protocol of a connection."""
        self._listener.listen(_BACKLOG)
        self._listener.setblocking(False)
        self._background.keep(lambda: self._run(protocol), "the acceptance of connections", _AGAIN_S)

    async def close(self) -> None:
        """Stop accepting and close unauthenticated connections; authenticated ones stay."""
        await self._background.close()
        self._listener.close()
        for transport in (*self._unauthenticated,):
            self._close(transport)

    def on_request(self, transport: asyncio.BaseTransport | None) -> None:
        """An unauthenticated client sent a request: it gets more time than a silent one."""
        connection = self._unauthenticated.get(transport) if transport is not None else None
        if connection is not None:
            connection.replaceable_at = connection.accepted_at + self._limits.requested_s

    def on_authenticated(self, transport: asyncio.BaseTransport | None) -> None:
        """The client is authenticated: the connection has no time limit any more."""
        connection = self._unauthenticated.pop(transport, None) if transport is not None else None
        if connection is not None:
            connection.deadline.cancel()
            self._has_room.set()

    async def _run(self, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._make_room()
            try:
                connection, _ = await loop.sock_accept(self._listener)
                transport, _ = await loop.connect_accepted_socket(protocol, connection)
            except OSError as error:
                # Most likely out of file descriptors. New clients wait in the system's queue.
                loop.call_exception_handler({"message": "a connection could not be accepted", "exception": error})
                await asyncio.sleep(_NO_DESCRIPTORS_S)
            else:
                self._take(transport)

    def _take(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        deadline = loop.call_later(self._limits.authenticate_s, self._close, transport)
        self._unauthenticated[transport] = _Unauthenticated(now, now + self._limits.silent_s, deadline)

    async def _make_room(self) -> None:
        while len(self._unauthenticated) >= self._limits.unauthenticated:
            for transport in [transport for transport in self._unauthenticated if transport.is_closing()]:
                self._close(transport)
            if len(self._unauthenticated) < self._limits.unauthenticated:
                return
            transport, connection = min(self._unauthenticated.items(), key=lambda item: item[1].replaceable_at)
            wait_s = connection.replaceable_at - asyncio.get_running_loop().time()
            if wait_s <= 0:
                _logger.warning("too many connections that do not say who they are: the oldest is closed")
                self._close(transport)
                return
            self._has_room.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._has_room.wait()
            except TimeoutError:
                pass

    def _close(self, transport: asyncio.BaseTransport) -> None:
        self._unauthenticated.pop(transport).deadline.cancel()
        if isinstance(transport, asyncio.Transport):
            transport.abort()
