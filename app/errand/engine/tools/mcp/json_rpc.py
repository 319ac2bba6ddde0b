"""JSON-RPC 2.0 as MCP uses it: requests with answers, cancellation and progress, and bounds on what a server sends."""

import asyncio
import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.json_input.foreign_json import UnreadableJson, decode_foreign
from errand.engine.tools.mcp.messages import Answer, Request, RpcFailure, answered_id, messages_in
from errand.protocol.base import JsonObject

# Messages without a request of ours: more than this many in a second are a flood.
_MAX_UNREQUESTED = 2_000
_METHOD_NOT_FOUND = -32601
_MAX_LOGGED_BYTES = 200
_DIGITS = re.compile(r"[0-9]{1,15}")

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


class Transport(Protocol):
    """Carries messages to a server; what comes back goes to `RpcPeer.receive`, and its end to `RpcPeer.fail`."""

    def send(self, data: bytes, request_id: int | None) -> None:
        """Send a message without waiting. `request_id` is set for a request, whose answer may come with the sending."""
        ...

    def forget(self, request_id: int) -> None:
        """The answer to this request is not awaited any more."""
        ...


@dataclass(slots=True)
class _OpenRequest:
    answer: asyncio.Future[JsonObject]
    on_progress: OnProgress | None
    # Progress shows that the server works: the time limit starts again.
    last_sign: float


class RpcPeer:
    """Our side of one connection. `on_notice` gets the server's notifications except progress.

    `on_unreadable` gets a line for the log about each message that cannot be read.
    """

    def __init__(
        self,
        transport: Transport,
        on_notice: Callable[[str, JsonObject], None],
        on_flood: Callable[[str], None],
        on_unreadable: Callable[[str], None],
    ) -> None:
        self._transport = transport
        self._on_notice = on_notice
        self._on_flood = on_flood
        self._on_unreadable = on_unreadable
        self._numbers = itertools.count(1)
        self._open: dict[int, _OpenRequest] = {}
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
        """Return the result of a request. Raises `McpError`; a cancelled request is cancelled at the server too.

        `timeout_s` counts from the last sign of progress. After `cancel` it raises at once, without waiting for the
        server.
        """
        if self._failure is not None:
            raise self._failure
        number = next(self._numbers)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        entry = self._open[number] = _OpenRequest(answer, on_progress, time.monotonic())
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

    async def _awaited(self, entry: _OpenRequest, method: str, timeout_s: float) -> JsonObject:
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

    async def receive(self, data: bytes) -> None:
        """Handle one message. What cannot be read is an error of the server, which fails what it answers."""
        try:
            value = await decode_foreign(data)
        except UnreadableJson as problem:
            self.refuse(data[:_MAX_LOGGED_BYTES], data, str(problem))
            return
        messages = tuple(messages_in(value))
        if not messages:
            self.refuse(data[:_MAX_LOGGED_BYTES], b"", "it is not a message")
        for message in messages:
            match message:
                case Answer():
                    self._settle_with(message)
                case Request():
                    self._count_unasked()
                    self._serve(message)

    def refuse(self, head: bytes, tail: bytes, reason: str) -> None:
        """Note that a message cannot be taken, by its ends, and fail the request that it answers."""
        self._count_unasked()
        self._on_unreadable(f"no message: {head[:_MAX_LOGGED_BYTES].decode('utf-8', 'replace')} ({reason})")
        request_id = answered_id(head, tail)
        if request_id is not None:
            self.fail(McpError(f"Its answer cannot be read: {reason}."), request_id)

    def _settle_with(self, message: Answer) -> None:
        request = self._open.get(message.id) if message.id is not None else None
        if request is None:
            self._count_unasked()  # a late answer, or to nothing
        elif isinstance(message.outcome, RpcFailure):
            _settle(request.answer, ServerAnswer(message.outcome.text, message.outcome.code))
        elif message.outcome is None:
            _settle(request.answer, McpError("It sent an answer without a result."))
        elif not request.answer.done():
            request.answer.set_result(message.outcome)

    def fail(self, failure: McpError, request_id: int | None = None) -> None:
        """The connection is over, or one request of it: nobody waits any more."""
        if request_id is not None:
            if (request := self._open.get(request_id)) is not None:
                _settle(request.answer, failure)
            return
        self._failure = self._failure or failure
        for request in self._open.values():
            _settle(request.answer, failure)

    def _serve(self, message: Request) -> None:
        if message.id is not None:
            answer: JsonObject = {"id": message.id}
            if message.method == "ping":
                answer["result"] = {}
            else:
                text = f"This client does not serve {message.method[:100]}."
                answer["error"] = {"code": _METHOD_NOT_FOUND, "message": text}
            self._transport.send(_encode(answer), None)
        elif message.method == "notifications/progress":
            self._progress(message.params)
        else:
            self._on_notice(message.method, message.params)

    def _progress(self, params: JsonObject) -> None:
        token = params.get("progressToken")
        number = int(token) if isinstance(token, str) and _DIGITS.fullmatch(token) else token
        request = self._open.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
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
        if count >= _MAX_UNREQUESTED:
            self._on_flood(f"it sent more than {_MAX_UNREQUESTED:,} messages in a second that nobody asked for")


def _encode(message: JsonObject) -> bytes:
    return _ENCODER.encode({"jsonrpc": "2.0", **message})


def _settle(answer: asyncio.Future[JsonObject], failure: McpError) -> None:
    if not answer.done():
        answer.set_exception(failure)
