"""The WebSocket server on the loopback, and each client's connection."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from errand.engine.core.errors import ConfigurationError
from errand.engine.server import json_rpc
from errand.engine.server.acceptor import Acceptor, TokenBucket
from errand.engine.server.authentication import AccessToken, Handshake, refuse_headers
from errand.engine.server.dispatcher import ROUTES, Dispatcher, refusal
from errand.engine.server.idempotent_commands import IdempotentCommands
from errand.engine.server.json_rpc import MAX_FRAME_BYTES
from errand.engine.server.outbox import Outbox
from errand.engine.server.route import ServedMethod
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.engine import HealthUpdate
from errand.protocol.methods import Notice

_logger = logging.getLogger(__name__)

_MAX_RUNNING_CALLS = 64
_LOGGED = 200

# A client that neither answers a ping nor reads is closed after 45 s.
_HEARTBEAT_S = 30.0
_CLOSE_S = 2.0
# Above our own limit, so that a slightly oversized message gets an answer instead of a closed socket, but low enough
# that unauthenticated clients cannot fill the memory with partial messages.
_CLOSED_AT_BYTES = MAX_FRAME_BYTES + MAX_FRAME_BYTES // 4
_SETTLE_S = 5.0


class ClientConnection:
    """Owns the asyncio tasks of one client. Its requests run concurrently; a disconnect cancels its reads."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        transport: asyncio.Transport | None,
        session: ClientSession,
        dispatcher: Dispatcher,
    ) -> None:
        self._socket = socket
        self._transport = transport
        self._session = session
        self._dispatcher = dispatcher
        self._rate = TokenBucket()
        self._running: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MAX_RUNNING_CALLS)

    async def serve(self) -> None:
        """Returns when the socket is closed."""
        async with asyncio.TaskGroup() as group:
            sender = group.create_task(self._send(), name="send to client")
            try:
                async for message in self._socket:
                    # A client that sends faster than it reads, or than we answer, is throttled: its socket fills up.
                    await self._session.outbox.room()
                    if message.type is not WSMsgType.TEXT:
                        self._session.reply(refusal(json_rpc.binary_frame(), None))
                    elif not self._rate.allows():
                        self._session.reply(self._dispatcher.busy(message.data))
                    else:
                        await self._slots.acquire()
                        task = group.create_task(self._answer(message.data), name="answer a request")
                        self._running.add(task)
                        task.add_done_callback(self._on_answered)
            finally:
                sender.cancel()
                for task in self._running:
                    task.cancel()

    def notify(self, data: bytes) -> None:
        """Send a message for all clients, if this one is initialized."""
        if self._session.client_id:
            self._session.reply(data)

    def revoke(self) -> None:
        """Cut the connection if its client has not proved the current token: it gets nothing more, not even events."""
        if self._session.client_id and not self._session.handshake.holds and self._transport is not None:
            _logger.warning("the token was replaced: disconnected %r", self._session.client_name)
            self._transport.abort()

    async def disconnect(self, seconds: float) -> None:
        """Send queued messages, for at most `seconds`, then close."""
        try:
            async with asyncio.timeout(seconds):
                await self._session.outbox.emptied()
        except TimeoutError:
            pass  # it does not read; the close notifies it
        await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"The engine ends.")

    def _on_answered(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._slots.release()

    async def _answer(self, frame: bytes) -> None:
        self._session.reply(await self._dispatcher.answer(self._session, frame))
        if self._session.handshake.is_exhausted:
            _logger.warning("disconnected a client after too many wrong proofs")
            await self.disconnect(_CLOSE_S)

    async def _send(self) -> None:
        try:
            while True:
                await self._socket.send_frame(await self._session.outbox.take(), WSMsgType.TEXT)
        except ConnectionError:
            pass  # the client disconnected; the reader sees it too and ends the connection
        finally:
            self._session.outbox.close()  # the reader may wait for room in it


def bind_loopback(port: int) -> socket.socket:
    """Return a socket on 127.0.0.1; port 0 selects a free one. Raises ConfigurationError if the port cannot be used."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # a recently closed port is free; elsewhere the option lets two processes share one
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Port {port} cannot be used ({error.strerror}). Give another with --port, or none for any free one."
        ) from error
    return listener


class Server:
    """Serves `/rpc` on a socket made by `bind_loopback`, on its `port`. `outbox` creates the queue of each client."""

    def __init__(
        self,
        services: Services,
        token: AccessToken,
        listener: socket.socket,
        routes: Sequence[ServedMethod] = ROUTES,
        outbox: Callable[[], Outbox] = Outbox,
    ) -> None:
        self.port = int(listener.getsockname()[1])
        self._acceptor = Acceptor(listener)
        self._services = services
        self._token = token
        self._outbox = outbox
        self._commands = IdempotentCommands(services.database)
        self._dispatcher = Dispatcher(services, routes, self._commands)
        self._connections: set[ClientConnection] = set()
        self._runner: web.AppRunner | None = None
        self._unsubscribe = services.database.health.subscribe(self._on_health)
        self._ignore_token = token.rotated.add(self._on_token)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/rpc"

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/rpc", self._accept)
        application.router.add_route("*", r"/{path:[\s\S]*}", self._refuse)
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=_CLOSE_S)
        await self._runner.setup()
        assert self._runner.server is not None
        self._acceptor.start(self._runner.server)

    async def close(self) -> None:
        """Wait for running commands, send queued messages, then disconnect every client."""
        self._unsubscribe()
        self._ignore_token()
        await self._acceptor.close()
        await self._commands.wait_running(_SETTLE_S)
        await asyncio.gather(*(connection.disconnect(_CLOSE_S) for connection in self._connections))
        if self._runner is not None:
            await self._runner.cleanup()

    def _on_health(self) -> None:
        """Sent to every client regardless of subscriptions and speed, since it is short and rare."""
        health = self._services.database.health.conditions
        notice = Notice("health", HealthUpdate(conditions=health, tasks=self._services.runner.running.shown()))
        data = msgspec.json.encode(notice)
        for connection in self._connections:
            connection.notify(data)

    def _on_token(self) -> None:
        for connection in tuple(self._connections):
            connection.revoke()

    async def _refuse(self, request: web.Request) -> web.Response:
        """Everything that is not the WebSocket: there are no pages and no other way to ask for something."""
        self._acceptor.on_request(request.transport)
        return _refusal(request, 404, "Nothing is here. The engine speaks WebSocket at /rpc.")

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        self._acceptor.on_request(request.transport)
        if request.transport is None or request.transport.is_closing():  # its time ran out while the engine was busy
            return web.Response()
        if any(len(request.headers.getall(name, ())) > 1 for name in ("Host", "Origin")):
            return _refusal(request, 400, "Host or Origin is given twice.")
        refusal = refuse_headers(request.headers, self.port)
        if refusal is not None:
            return _refusal(request, *refusal)
        web_socket = web.WebSocketResponse(
            timeout=_CLOSE_S, heartbeat=_HEARTBEAT_S, compress=False, max_msg_size=_CLOSED_AT_BYTES, decode_text=False
        )
        if not web_socket.can_prepare(request):
            return _refusal(request, 426, "This address speaks WebSocket.")
        await web_socket.prepare(request)
        handshake = Handshake(self._token, partial(self._acceptor.on_authenticated, request.transport))
        session = ClientSession(self._services.log, self._outbox(), handshake)
        connection = ClientConnection(web_socket, request.transport, session, self._dispatcher)
        self._connections.add(connection)
        detach = self._services.log.attach(session)
        try:
            await connection.serve()
        finally:
            detach()
            self._connections.discard(connection)
        return web_socket


def _refusal(request: web.Request, status: int, text: str) -> web.Response:
    origin, host = (request.headers.get(name, "")[:_LOGGED] for name in ("Origin", "Host"))
    where = request.path[:_LOGGED]
    _logger.warning("refused %s %r (Host %r, Origin %r): %s", request.method[:20], where, host, origin, text)
    return web.Response(status=status, text=text)
