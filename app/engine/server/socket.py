"""The engine's WebSocket on the loopback: accepts clients, reads their frames, sends what waits for them.

What a frame means is the dispatcher's; what a client follows is its session's.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from aiohttp import web

from app.engine.errors import ConfigurationError
from app.engine.server.acceptor import Acceptor
from app.engine.server.commands import Commands
from app.engine.server.dispatch import Dispatcher
from app.engine.server.frame import MOST_BYTES
from app.engine.server.handshake import Handshake, refuse
from app.engine.server.line import Line
from app.engine.server.outbox import Outbox
from app.engine.server.route import Served
from app.engine.server.routes import ROUTES
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.health import HealthUpdate
from app.protocol.wire import Notice

# A client that neither answers a ping nor takes what is sent is closed after 45 s.
_HEARTBEAT_S = 30.0
_CLOSE_S = 2.0
# Above our own limit, so that a message that is a little too long gets an answer and not a closed socket; and so low
# that strangers cannot fill the memory with beginnings.
_CLOSED_AT_BYTES = MOST_BYTES + MOST_BYTES // 4
_SETTLE_S = 5.0


def bound(port: int) -> socket.socket:
    """A socket on 127.0.0.1; 0 takes any free port. ConfigurationError where the port is taken or not ours to use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # a port that an engine has just left is free; elsewhere the option lets two share one
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Port {port} cannot be used ({error.strerror}). Give another with --port, or none for any free one."
        ) from error
    return listener


class Server:
    """Serves `/rpc` on a socket that `bound` gave; `port` is that socket's. `outbox` makes one for each client."""

    def __init__(
        self,
        services: Services,
        token: str,
        listener: socket.socket,
        routes: Sequence[Served] = ROUTES,
        outbox: Callable[[], Outbox] = Outbox,
    ) -> None:
        self.port = int(listener.getsockname()[1])
        self._acceptor = Acceptor(listener)
        self._services = services
        self._token = token
        self._outbox = outbox
        self._commands = Commands(services.database)
        self._dispatcher = Dispatcher(services, routes, self._commands)
        self._lines: set[Line] = set()
        self._runner: web.AppRunner | None = None
        self._stop_telling = services.database.health.subscribe(self._on_health)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/rpc"

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/rpc", self._accept)
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=_CLOSE_S)
        await self._runner.setup()
        assert self._runner.server is not None
        self._acceptor.start(self._runner.server)

    async def close(self) -> None:
        """Let commands under way end, send what waits, then part from every client."""
        self._stop_telling()
        await self._acceptor.close()
        await self._commands.settle(_SETTLE_S)
        await asyncio.gather(*(line.part(_CLOSE_S) for line in self._lines))
        if self._runner is not None:
            await self._runner.cleanup()

    def _on_health(self) -> None:
        """To every client, whatever it follows and however slow it is: it is short and rare."""
        health = self._services.database.health.conditions
        notice = Notice("health", HealthUpdate(conditions=health, tasks=self._services.runner.under_way()))
        data = msgspec.json.encode(notice)
        for line in self._lines:
            line.tell(data)

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        self._acceptor.asks(request.transport)
        refusal = refuse(request.headers, self.port)
        if refusal is not None:
            status, text = refusal
            return web.Response(status=status, text=text)
        web_socket = web.WebSocketResponse(
            timeout=_CLOSE_S, heartbeat=_HEARTBEAT_S, compress=False, max_msg_size=_CLOSED_AT_BYTES, decode_text=False
        )
        if not web_socket.can_prepare(request):
            return web.Response(status=426, text="This address speaks WebSocket.")
        await web_socket.prepare(request)
        handshake = Handshake(self._token, partial(self._acceptor.admit, request.transport))
        session = Session(self._services.log, self._outbox(), handshake)
        line = Line(web_socket, session, self._dispatcher)
        self._lines.add(line)
        detach = self._services.log.attach(session)
        try:
            await line.serve()
        finally:
            detach()
            self._lines.discard(line)
        return web_socket
