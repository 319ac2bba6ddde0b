"""The WebSocket server on the loopback, and each client's connection."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from app.engine.core.errors import ConfigurationError
from app.engine.server import json_rpc
from app.engine.server.acceptor import Acceptor, TokenBucket
from app.engine.server.dispatcher import ROUTES, Dispatcher, refusal
from app.engine.server.idempotent_commands import IdempotentCommands
from app.engine.server.json_rpc import MOST_BYTES
from app.engine.server.outbox import Outbox
from app.engine.server.route import ServedMethod
from app.engine.server.services import Services
from app.engine.server.session import ClientSession, Handshake, refuse
from app.protocol.engine import HealthUpdate
from app.protocol.methods import Notice

_MOST_RUNNING = 64

# A client that neither answers a ping nor reads is closed after 45 s.
_HEARTBEAT_S = 30.0
_CLOSE_S = 2.0
# Above our own limit, so that a slightly oversized message gets an answer instead of a closed socket, but low enough
# that unauthenticated clients cannot fill the memory with partial messages.
_CLOSED_AT_BYTES = MOST_BYTES + MOST_BYTES // 4
_SETTLE_S = 5.0


class ClientConnection:
    """Owns the asyncio tasks of one client. Its requests run concurrently; a disconnect cancels its reads."""

    def __init__(self, socket: web.WebSocketResponse, session: ClientSession, dispatcher: Dispatcher) -> None:
        self._socket = socket
        self._session = session
        self._dispatcher = dispatcher
        self._rate = TokenBucket()
        self._running: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MOST_RUNNING)

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

    async def _send(self) -> None:
        try:
            while True:
                await self._socket.send_frame(await self._session.outbox.take(), WSMsgType.TEXT)
        except ConnectionError:
            pass  # the client disconnected; the reader sees it too and ends the connection


def bind_loopback(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0 selects a free one. Raises ConfigurationError if the port cannot be used."""
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
    """Serves `/rpc` on a socket made by `bound`; `port` is that socket's. `outbox` creates the queue of each client."""

    def __init__(
        self,
        services: Services,
        token: str,
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
        """Wait for running commands, send queued messages, then disconnect every client."""
        self._unsubscribe()
        await self._acceptor.close()
        await self._commands.wait_running(_SETTLE_S)
        await asyncio.gather(*(line.disconnect(_CLOSE_S) for line in self._connections))
        if self._runner is not None:
            await self._runner.cleanup()

    def _on_health(self) -> None:
        """Sent to every client regardless of subscriptions and speed, since it is short and rare."""
        health = self._services.database.health.conditions
        notice = Notice("health", HealthUpdate(conditions=health, tasks=self._services.running.shown()))
        data = msgspec.json.encode(notice)
        for line in self._connections:
            line.notify(data)

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        self._acceptor.on_request(request.transport)
        if any(len(request.headers.getall(name, ())) > 1 for name in ("Host", "Origin")):
            return web.Response(status=400, text="Host or Origin is given twice.")
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
        handshake = Handshake(self._token, partial(self._acceptor.on_authenticated, request.transport))
        session = ClientSession(self._services.log, self._outbox(), handshake)
        line = ClientConnection(web_socket, session, self._dispatcher)
        self._connections.add(line)
        detach = self._services.log.attach(session)
        try:
            await line.serve()
        finally:
            detach()
            self._connections.discard(line)
        return web_socket
