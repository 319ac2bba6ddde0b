"""The engine's WebSocket on the loopback: accepts clients, reads their frames, sends what waits for them.

What a frame means is the dispatcher's; what a client follows is its session's.
"""

import asyncio
from collections.abc import Sequence

from aiohttp import web

from app.engine.server.commands import Commands
from app.engine.server.dispatch import Dispatcher
from app.engine.server.frame import MOST_BYTES
from app.engine.server.handshake import refuse
from app.engine.server.line import Line
from app.engine.server.outbox import Outbox
from app.engine.server.route import Served
from app.engine.server.routes import ROUTES
from app.engine.server.services import Services
from app.engine.server.session import Session

# A client that neither answers a ping nor takes what is sent is closed after 45 s.
_HEARTBEAT_S = 30.0
_CLOSE_S = 2.0
_SETTLE_S = 5.0


class Server:
    """Serves `/rpc` on 127.0.0.1. `port` is the real one once `start` has returned; 0 asks for any free one."""

    def __init__(self, services: Services, token: str, port: int = 0, routes: Sequence[Served] = ROUTES) -> None:
        self.port = port
        self._services = services
        self._token = token
        self._commands = Commands(services.database)
        self._dispatcher = Dispatcher(services, routes, self._commands)
        self._lines: set[Line] = set()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/rpc"

    async def start(self) -> None:
        """OSError when the port is taken."""
        application = web.Application()
        application.router.add_get("/rpc", self._accept)
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=_CLOSE_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Let commands under way end, send what waits, then part from every client."""
        await self._commands.settle(_SETTLE_S)
        await asyncio.gather(*(line.part(_CLOSE_S) for line in self._lines))
        if self._runner is not None:
            await self._runner.cleanup()

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        refusal = refuse(request.headers, self._token, self.port)
        if refusal is not None:
            status, text = refusal
            return web.Response(status=status, text=text)
        # Four times our own limit, so that most messages that are too long get an answer and not a closed socket.
        socket = web.WebSocketResponse(
            timeout=_CLOSE_S, heartbeat=_HEARTBEAT_S, compress=False, max_msg_size=4 * MOST_BYTES, decode_text=False
        )
        if not socket.can_prepare(request):
            return web.Response(status=426, text="This address speaks WebSocket.")
        await socket.prepare(request)
        session = Session(self._services.log, Outbox())
        line = Line(socket, session, self._dispatcher)
        self._lines.add(line)
        detach = self._services.log.attach(session)
        try:
            await line.serve()
        finally:
            detach()
            self._lines.discard(line)
        return socket
