"""A client that disconnects, falls behind and dies in the middle of a frame, and keeps its state current."""

import asyncio
import socket as sockets
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from itertools import chain

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from errand.client.known_tasks import KnownTasks
from errand.client.subscription import Detail, FollowedScope, FollowedScopes
from errand.engine.server.session import ALL
from errand.protocol.base import JsonObject
from errand.protocol.engine import Endpoint, SubscribeResult
from errand.protocol.events import Delta, LogRecord
from errand.protocol.methods import Response
from errand.system.local_trust import new_nonce, proof
from tests.clients.client_state import ClientState

# So little that a client which does not read falls behind after some ten kilobytes.
_KERNEL_BYTES = 4096
# The first bytes of a text frame of 255 that is never completed.
_HALF_A_FRAME = b"\x81\xfe\x00\xff\x01\x02\x03\x04half of a"


class Gone(Exception):
    """The connection was lost before the answer."""


class _Notice(msgspec.Struct, frozen=True):
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"")


Answered = Callable[[Response], None]


class RestlessClient:
    """Created once, connected repeatedly.

    All methods except `die` raise `Gone` when the connection is lost.
    """

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.state = ClientState()
        self.follows = FollowedScopes()
        self._known_tasks = KnownTasks()
        self.is_behind = False
        self.resyncs = 0
        self.epoch = ""
        self.head = 0
        self._endpoint = endpoint
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._reads = asyncio.Event()
        self._reads.set()
        self._pending: dict[str, deque[asyncio.Future[Response]]] = defaultdict(deque)
        self._on_answer: dict[str, Answered] = {}
        self._number = 0

    @property
    def is_connected(self) -> bool:
        return self._socket is not None

    async def connect(self) -> None:
        """Perform the handshake, then resume all subscriptions from their last position."""
        raw = sockets.socket()
        raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, _KERNEL_BYTES)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self._endpoint.port))
        try:
            self._socket = await connect(
                self._endpoint.url,
                sock=raw,
                proxy=None,
                compression=None,
                max_size=None,
                max_queue=2,
                ping_interval=None,
                close_timeout=1,
            )
        except WebSocketException as error:  # a busy engine closes what took too long
            raise Gone from error
        self._reads.set()
        self._reader = asyncio.create_task(self._read(self._socket), name=f"reader of {self.name}")
        nonce = new_nonce()
        other = str((await self.call("challenge", nonce=nonce))["nonce"])
        own = proof(self._endpoint.token, "asks", nonce, other)
        answer = await self.call("initialize", clientId=self.name, clientName=self.name, proof=own)
        self.epoch, self.head = str(answer["epoch"]), msgspec.convert(answer["head"], int)
        self.follows.begin_catching_up()
        for follow in self.follows.all:
            await self.follow(follow.scope, follow.detail, after=self.follows.last_received(follow), epoch=follow.epoch)
        self.follows.caught_up()

    async def follow(
        self, scope: str = ALL, detail: Detail = "summary", *, after: int | None = None, epoch: str | None = None
    ) -> None:
        """Subscribe; `after` only for a known scope, or with a number that cannot be replayed."""
        params: JsonObject = {"scope": scope, "detail": detail, "after": after, "epoch": epoch}

        def take(response: Response) -> None:
            if isinstance(response.result, msgspec.UnsetType):
                self.follows.drop(scope)
                return
            result = msgspec.json.decode(response.result, type=SubscribeResult)
            self.follows.add(scope, detail, result)
            self._known_tasks.learn(result)
            if result.snapshot is not None:
                self.state.show(scope, detail, result.snapshot)

        await self._ask("subscribe", params, self._next_id(), take)

    async def unfollow(self, follow: FollowedScope) -> None:
        self.follows.drop(follow.scope)
        await self.call("unsubscribe", scope=follow.scope)

    async def call(self, method: str, **params: object) -> JsonObject:
        """The result, or an empty object if the engine refused."""
        return _result(await self._ask(method, params, self._next_id()))

    async def call_twice(self, method: str, **params: object) -> tuple[JsonObject, JsonObject]:
        """Send the same command twice with one id; returns both results."""
        number = self._next_id()
        first, second = self._expect(number), self._expect(number)
        await self._send(method, params, number)
        await self._send(method, params, number)
        return _result(await first), _result(await second)

    def stop_reading(self) -> None:
        self._reads.clear()

    def read_on(self) -> None:
        self._reads.set()

    async def start_over(self) -> None:
        """Handle `resync`: take a new snapshot of all subscriptions."""
        self.is_behind = False
        for follow in self.follows.all:
            await self.follow(follow.scope, follow.detail)

    async def die(self, *, in_mid_frame: bool) -> None:
        """Disconnect without closing."""
        if self._socket is None or self._reader is None:
            return
        if in_mid_frame:
            with suppress(RuntimeError):  # the engine has closed it a moment ago
                self._socket.transport.write(_HALF_A_FRAME)
        self._socket.transport.abort()
        self._reads.set()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader
        with suppress(WebSocketException):
            await self._socket.wait_closed()
        self._lost()

    def _lost(self) -> None:
        self._socket, self.is_behind = None, False
        for future in chain.from_iterable(self._pending.values()):
            if not future.done():
                future.set_exception(Gone())
                future.exception()  # waiters get the exception; there may be none
        self._pending.clear()
        self._on_answer.clear()

    def _next_id(self) -> str:
        self._number += 1
        return f"{self.name}-{self._number}"

    async def _ask(self, method: str, params: object, number: str, take: Answered | None = None) -> Response:
        if take is not None:
            self._on_answer[number] = take
        answer = self._expect(number)
        await self._send(method, params, number)
        return await answer

    def _expect(self, number: str) -> asyncio.Future[Response]:
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._pending[number].append(answer)
        return answer

    async def _send(self, method: str, params: object, number: str) -> None:
        if self._socket is None:
            raise Gone
        frame = {"jsonrpc": "2.0", "method": method, "id": number, "params": params}
        try:
            await self._socket.send(msgspec.json.encode(frame), text=True)
        except WebSocketException as error:
            raise Gone from error

    async def _read(self, socket: ClientConnection) -> None:
        try:
            while True:
                await self._reads.wait()
                self._take(await socket.recv(decode=False))
        except WebSocketException:
            self._lost()

    def _take(self, frame: bytes) -> None:
        notice = msgspec.json.decode(frame, type=_Notice)
        match notice.method:
            case "event":
                record = msgspec.json.decode(notice.params, type=LogRecord)
                self.follows.record_event(record)
                if (event := self._known_tasks.whole(record)) is not None:
                    self.state.apply(event.event)
            case "delta":
                self.state.stream(msgspec.json.decode(notice.params, type=Delta))
            case "resync":
                self.is_behind = True
                self.resyncs += 1
            case _:
                self._answer(msgspec.json.decode(frame, type=Response))

    def _answer(self, response: Response) -> None:
        number = str(response.id)
        # At its position among the events.
        take = self._on_answer.pop(number, None)
        if take is not None:
            take(response)
        if self._pending[number] and not (future := self._pending[number].popleft()).done():
            future.set_result(response)
        if not self._pending[number]:
            del self._pending[number]


def _result(response: Response) -> JsonObject:
    if isinstance(response.result, msgspec.UnsetType):
        return {}
    return msgspec.json.decode(response.result, type=JsonObject)
