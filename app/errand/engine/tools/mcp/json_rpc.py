"""JSON-RPC 2.0 as MCP uses it: requests with answers, cancellation and progress, and bounds on what a server sends."""

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.protocol.base import JsonObject, JsonValue

LARGEST_MESSAGE = 32 * 1024 * 1024
# Messages without a request of ours: more than this many in a second are a flood.
_MOST_UNASKED = 2_000
_METHOD_NOT_FOUND = -32601
_LONGEST_ERROR = 4_000

OnProgress: TypeAlias = Callable[[float, float | None, str], None]

_ENCODER = msgspec.json.Encoder()


class McpError(EngineError):
    """A server failed: it answered with an error, not in time, not in the protocol, or not at all."""

    code = "mcp_failed"


class McpTimeout(McpError):
    """No answer in time."""


class ServerAnswer(McpError):
    """The server answered with an error; `number` is its code."""

    def __init__(self, text: str, number: int = 0) -> None:
        super().__init__(text)
        self.number = number


class RpcFailure(msgspec.Struct):
    code: float = 0
    message: str = ""
    data: JsonValue = None


class Message(msgspec.Struct):
    """A message of a server; unknown fields are passed over."""

    id: str | int | None = None
    method: str | None = None
    params: JsonObject | None = None
    result: JsonObject | msgspec.UnsetType = msgspec.UNSET
    error: RpcFailure | msgspec.UnsetType = msgspec.UNSET


_DECODER = msgspec.json.Decoder(Message)


class Transport(Protocol):
    """Carries messages to a server; what comes back goes to `RpcPeer.receive`, and its end to `RpcPeer.fail`."""

    def send(self, data: bytes, request_id: int | None) -> None:
        """Send a message without waiting. `request_id` is set for a request, whose answer may come with the sending."""
        ...

    def forget(self, request_id: int) -> None:
        """The answer to this request is not awaited any more."""
        ...


@dataclass(slots=True)
class _Request:
    answer: asyncio.Future[JsonObject]
    on_progress: OnProgress | None
    # Progress shows that the server works: the time limit starts again.
    last_sign: float


class RpcPeer:
    """Our side of one connection. `on_notice` gets the server's notifications except progress."""

    def __init__(
        self, transport: Transport, on_notice: Callable[[str, JsonObject], None], on_flood: Callable[[str], None]
    ) -> None:
        self._transport = transport
        self._on_notice = on_notice
        self._on_flood = on_flood
        self._numbers = itertools.count(1)
        self._open: dict[int, _Request] = {}
        self._failure: McpError | None = None
        self._window = (0.0, 0)

    async def request(
        self,
        method: str,
        params: JsonObject,
        timeout_s: float,
        cancel: CancelSignal | None = None,
        on_progress: OnProgress | None = None,
    ) -> JsonObject:
        """The result of a request. Raises `McpError`; a cancelled request is cancelled at the server too.

        `timeout_s` counts from the last sign of progress. After `cancel` it raises at once, without waiting for the
        server.
        """
        if self._failure is not None:
            raise self._failure
        number = next(self._numbers)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        entry = self._open[number] = _Request(answer, on_progress, time.monotonic())
        if on_progress is not None:
            params = {**params, "_meta": {"progressToken": number}}
        unsubscribe = cancel.subscribe(lambda: _settle(answer, McpError("Operation aborted"))) if cancel else None
        try:
            self._transport.send(_encode({"method": method, "params": params, "id": number}), number)
            return await self._awaited(entry, method, timeout_s)
        except BaseException:
            if self._failure is None and number in self._open and method != "initialize":
                reason: JsonObject = {"requestId": number, "reason": "the answer is not needed any more"}
                self.notify("notifications/cancelled", reason)
            raise
        finally:
            if unsubscribe is not None:
                unsubscribe()
            self._open.pop(number, None)
            self._transport.forget(number)

    async def _awaited(self, entry: _Request, method: str, timeout_s: float) -> JsonObject:
        while True:
            left = entry.last_sign + timeout_s - time.monotonic()
            await asyncio.wait((entry.answer,), timeout=max(left, 0))
            if entry.answer.done():
                return entry.answer.result()
            if entry.last_sign + timeout_s <= time.monotonic():
                raise McpTimeout(f"It did not answer {method} within {timeout_s:g} s.")

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        if self._failure is None:
            self._transport.send(_encode({"method": method, **({"params": params} if params else {})}), None)

    def receive(self, data: bytes) -> bool:
        """Handle one message; False if it is none."""
        try:
            message = _DECODER.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._count_unasked()
            return False
        if message.method is not None:
            self._count_unasked()
            self._of_server(message.method, message)
            return True
        request = self._open.get(message.id) if isinstance(message.id, int) else None
        if request is None:
            self._count_unasked()  # a late answer, or to nothing
            return True
        if isinstance(message.error, RpcFailure):
            failure, text = message.error, message.error.message or "an error without a text"
            _settle(request.answer, ServerAnswer(text[:_LONGEST_ERROR], int(failure.code)))
        elif isinstance(message.result, dict):
            if not request.answer.done():
                request.answer.set_result(message.result)
        else:
            _settle(request.answer, McpError("It sent an answer without a result."))
        return True

    def fail(self, failure: McpError, request_id: int | None = None) -> None:
        """The connection is over, or one request of it: nobody waits any more."""
        if request_id is not None:
            if (request := self._open.get(request_id)) is not None:
                _settle(request.answer, failure)
            return
        self._failure = self._failure or failure
        for request in self._open.values():
            _settle(request.answer, failure)

    def _of_server(self, method: str, message: Message) -> None:
        if message.id is not None:
            answer: JsonObject = {"id": message.id}
            if method == "ping":
                answer["result"] = {}
            else:
                answer["error"] = {"code": _METHOD_NOT_FOUND, "message": f"This client does not serve {method[:100]}."}
            self._transport.send(_encode(answer), None)
        elif method == "notifications/progress":
            self._progress(message.params or {})
        else:
            self._on_notice(method, message.params or {})

    def _progress(self, params: JsonObject) -> None:
        token = params.get("progressToken")
        request = self._open.get(token) if isinstance(token, int) and not isinstance(token, bool) else None
        if request is None or request.on_progress is None:
            return
        request.last_sign = time.monotonic()
        done, total, text = params.get("progress"), params.get("total"), params.get("message")
        request.on_progress(
            float(done) if isinstance(done, int | float) else 0.0,
            float(total) if isinstance(total, int | float) else None,
            text if isinstance(text, str) else "",
        )

    def _count_unasked(self) -> None:
        began, count = self._window
        now = time.monotonic()
        if now - began > 1:
            began, count = now, 0
        self._window = (began, count + 1)
        if count >= _MOST_UNASKED:
            self._on_flood(f"it sent more than {_MOST_UNASKED:,} messages in a second that nobody asked for")


def _encode(message: JsonObject) -> bytes:
    return _ENCODER.encode({"jsonrpc": "2.0", **message})


def _settle(answer: asyncio.Future[JsonObject], failure: McpError) -> None:
    if not answer.done():
        answer.set_exception(failure)
