"""A client's connection to the engine: calls, events and reconnection. `launch.py` finds the engine."""

import asyncio
import itertools
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from errand.client.dial import DIAL_ERRORS, call_error, dial
from errand.client.errors import CallError, ConnectionLost, EngineDied, NoEngine, SocketFailed
from errand.client.known_tasks import KnownTasks
from errand.client.subscription import (
    ConnectionDown,
    ConnectionListener,
    ConnectionMessage,
    ConnectionRestored,
    Detail,
    FollowedScopes,
)
from errand.protocol.base import Method, Wire
from errand.protocol.engine import (
    SUBSCRIBE,
    UNSUBSCRIBE,
    Endpoint,
    HealthUpdate,
    InitializeParams,
    InitializeResult,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
)
from errand.protocol.events import Delta, LogRecord, Resync
from errand.protocol.methods import FailureObject, Request
from errand.system.environment import for_commands, keys_in
from errand.system.listeners import Listeners

if TYPE_CHECKING:
    from errand.client.socket import Socket

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)

_FIRST_DELAY_S = 0.05
_MAX_DELAY_S = 2.0
_PATIENCE_S = 15.0
# For an engine whose process has ended: another client may be starting a new one.
_PATIENCE_AFTER_EXIT_S = 2.0
_MAX_FRAME_BYTES = 1024 * 1024
_EMPTY: Mapping[str, str] = {}


@dataclass(slots=True)
class _Call:
    """`sent_on` is the socket that it was last sent on. A new socket resends unanswered calls, each once."""

    method: str
    frame: bytes
    answer: asyncio.Future[msgspec.Raw]
    sent_on: "Socket | None" = None


class _Incoming(msgspec.Struct):
    """Any message of the engine: an answer has an id, a notice a method."""

    id: str | int | None = None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: FailureObject | msgspec.UnsetType = msgspec.UNSET
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"null")


_incoming = msgspec.json.Decoder(_Incoming)
_event = msgspec.json.Decoder(LogRecord)
_delta = msgspec.json.Decoder(Delta)
_resync = msgspec.json.Decoder(Resync)
_health = msgspec.json.Decoder(HealthUpdate)


class Connection:
    """Connected by `open`. Listeners are called in the order of the events and must not block."""

    def __init__(
        self,
        find: Callable[[], Endpoint],
        client_name: str,
        patience_s: float = _PATIENCE_S,
        environment: Mapping[str, str] = _EMPTY,
        *,
        from_desktop: bool = False,
    ) -> None:
        """The engine receives the keys of the `environment` and the variables that commands may use.

        `from_desktop`: what the person's login shell sets is not among them.
        """
        self._find = find
        self._introduction = InitializeParams(
            client_id=secrets.token_hex(12),
            client_name=client_name,
            keys=keys_in(environment),
            environment=for_commands(environment),
            from_desktop=from_desktop,
        )
        self._patience_s = patience_s
        self._ids = itertools.count(1)
        self._unanswered: dict[int, _Call] = {}
        self._listeners = Listeners[[ConnectionMessage]]()
        self._follows = FollowedScopes()
        self._known_tasks = KnownTasks()
        self._socket: Socket | None = None
        self._serve_task: asyncio.Task[None] | None = None
        self._down = ""  # the reason why calls fail at once
        self.instance_id = ""
        self._has_conditions = False
        self._welcome: InitializeResult | None = None

    @property
    def welcome(self) -> InitializeResult:
        """The engine's answer to the newest handshake; `head` and `epoch` are the position to follow events from."""
        assert self._welcome, "open the connection first"
        return self._welcome

    async def open(self) -> None:
        """Connect for the first time. Raises `NoEngine`, `CallError` or DIAL_ERRORS."""
        self._socket = await self._dial()
        serving = self._serve_until_closed(self._socket)
        self._serve_task = asyncio.get_running_loop().create_task(serving, name="connection to the engine")

    async def call(self, method: Method[P, R], params: P) -> R:
        """Return the engine's answer. Raises `CallError`, or `ConnectionLost` if reconnection fails.

        A call without an answer is sent again under its id after a reconnect: the engine runs a command once.
        """
        if self._down:
            raise ConnectionLost(self._down)
        request_id = next(self._ids)
        raw = msgspec.Raw(msgspec.json.encode(params))
        frame = msgspec.json.encode(Request(method=method.name, id=request_id, params=raw))
        if len(frame) > _MAX_FRAME_BYTES:
            raise CallError(
                "too_large", f"{method.name}: {len(frame):,} bytes; at most {_MAX_FRAME_BYTES:,} can be sent."
            )
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        call = self._unanswered[request_id] = _Call(method.name, frame, answer)
        try:
            await self._send(call)
            result = msgspec.json.decode(await answer, type=method.result)
            self._known_tasks.learn(result)
            return result
        finally:
            del self._unanswered[request_id]

    def subscribe(self, listener: ConnectionListener) -> Callable[[], None]:
        """Call `listener` with each message from now on; returns the function that unsubscribes."""
        return self._listeners.add(listener)

    async def subscribe_scope(
        self,
        scope: str = "all",
        detail: Detail = "summary",
        after: int | None = None,
        epoch: str | None = None,
        agent_id: str | None = None,
    ) -> SubscribeResult:
        """Deliver the events of a scope to the listeners, now and after each reconnect.

        The caller resumes before listeners receive any event later than the answer, so it applies a snapshot first.
        Subscribe again after a `Resync` message.
        """
        params = SubscribeParams(scope=scope, detail=detail, after=after, epoch=epoch, agent_id=agent_id)
        result = await self.call(SUBSCRIBE, params)
        self._follows.add(scope, detail, result)
        return result

    async def unsubscribe_scope(self, scope: str = "all") -> None:
        self._follows.drop(scope)
        await self.call(UNSUBSCRIBE, UnsubscribeParams(scope=scope))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; the engine and its tasks keep running. Pending calls raise `ConnectionLost`."""
        self._down = "The connection was closed."
        serve_task, self._serve_task = self._serve_task, None
        if serve_task is None:
            return
        serve_task.cancel()
        try:
            await serve_task
        except asyncio.CancelledError:
            if not serve_task.cancelled():
                raise
        if self._socket is not None:  # the task was cancelled before it started
            await self._socket.close()
            self._socket = None

    async def _dial(self) -> "Socket":
        socket, engine = await dial(self._find(), self._introduction)
        self.instance_id = engine.instance_id
        self._welcome = engine
        self._has_conditions = self._has_conditions or bool(engine.health)
        return socket

    async def _serve_until_closed(self, socket: "Socket") -> None:
        """Serve the socket and its replacements after each loss until closed."""
        try:
            reason = await self._serve(socket, self._resend)
            while True:
                self._listeners.notify(ConnectionDown(reason))
                socket = await self._dial_again()
                reason = await self._serve(socket, self._restore)
        finally:
            self._give_up(self._down or "The connection has ended.")

    async def _serve(self, socket: "Socket", begin: Callable[[], Coroutine[None, None, None]]) -> str:
        """Read until the socket is lost; returns the reason."""
        reason = ""
        self._socket = socket
        try:
            async with asyncio.TaskGroup() as group:
                beginning = group.create_task(begin())
                try:
                    await self._read(socket)
                except SocketFailed as error:
                    reason = str(error)
                finally:
                    beginning.cancel()
        finally:
            self._socket = None
            await socket.close()
        return reason

    async def _read(self, socket: "Socket") -> None:
        while True:
            message = _incoming.decode(await socket.receive())
            match message.method:
                case "event":
                    record = _event.decode(message.params)
                    self._follows.record_event(record)
                    if (event := self._known_tasks.whole(record)) is not None:
                        self._listeners.notify(event)
                case "delta":
                    self._listeners.notify(_delta.decode(message.params))
                case "resync":
                    self._listeners.notify(_resync.decode(message.params))
                case "health":
                    self._notify_health(_health.decode(message.params))
                case _:
                    await self._resolve_call(message)

    async def _resolve_call(self, message: _Incoming) -> None:
        call = self._unanswered.get(message.id) if isinstance(message.id, int) else None
        if call is None or call.answer.done():
            return  # it was sent twice, or the caller no longer waits
        if isinstance(message.result, msgspec.UnsetType):
            call.answer.set_exception(call_error(message.error))
        else:
            call.answer.set_result(message.result)
        if call.method == SUBSCRIBE.name:
            await asyncio.sleep(0)  # its caller resumes here, before the next event

    async def _send(self, call: _Call) -> None:
        if self._socket is None or call.sent_on is self._socket:
            return  # it is sent on reconnect, or was sent already
        call.sent_on = self._socket
        with suppress(SocketFailed):  # the reader sees the failure too, and unanswered calls are sent again
            await self._socket.send(call.frame)

    async def _resend(self) -> None:
        for call in tuple(self._unanswered.values()):
            await self._send(call)

    async def _restore(self) -> None:
        self._follows.begin_catching_up()
        await self._resend()
        for follow in self._follows.all:
            try:
                result = await self.subscribe_scope(
                    follow.scope, follow.detail, self._follows.last_received(follow), follow.epoch
                )
            except CallError:
                self._follows.drop(follow.scope)  # the conversation was deleted
                continue
            if result.snapshot is not None:
                self._listeners.notify(Resync(reason=f"The events missed cannot be replayed ({result.reason})."))
        self._follows.caught_up()
        self._listeners.notify(ConnectionRestored(self.instance_id))
        if self.welcome.health or self._has_conditions:
            self._notify_health(HealthUpdate(conditions=self.welcome.health))

    async def _dial_again(self) -> "Socket":
        loop = asyncio.get_running_loop()
        began = loop.time()
        delay = _FIRST_DELAY_S
        while True:
            try:
                socket = await self._dial()
            except (NoEngine, CallError, *DIAL_ERRORS) as error:
                patience_s = _PATIENCE_AFTER_EXIT_S if isinstance(error, EngineDied) else self._patience_s
                if loop.time() - began >= min(patience_s, self._patience_s) and not self._down:
                    self._give_up(f"The engine does not answer: {error}")
                    self._listeners.notify(ConnectionDown(str(error), gave_up=True))
                await asyncio.sleep(delay)
                delay = min(1.5 * delay, _MAX_DELAY_S)
            else:
                self._down = ""
                return socket

    def _give_up(self, reason: str) -> None:
        self._down = reason
        for call in self._unanswered.values():
            if not call.answer.done():
                call.answer.set_exception(ConnectionLost(reason))

    def _notify_health(self, update: HealthUpdate) -> None:
        self._has_conditions = bool(update.conditions)
        self._listeners.notify(update)
