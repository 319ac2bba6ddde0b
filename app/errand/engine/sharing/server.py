"""HTTP server of shared models: `POST /api/stream`, `GET /api/models`."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec
from aiohttp import web

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.fair_share import short_switches
from errand.engine.core.json_input.foreign_json import JsonBounds, check_bounds
from errand.engine.core.messages import AssistantMessage
from errand.engine.models.base import ChatModel, ModelRequest, ReplyEnd
from errand.engine.models.catalog.providers import PROVIDERS, Provider
from errand.engine.models.proxy.codec import ProxyEncoder
from errand.engine.models.proxy.wire import SharedModels, StreamRequest, request_from_wire
from errand.engine.models.router import ModelRouter
from errand.engine.server.acceptor import Acceptor, TokenBucket
from errand.engine.sharing.tokens import Tokens
from errand.text.redaction import redact

# Providers with a fixed endpoint: no scripted models, no models of a third machine. Those that the person added too.
_CATALOG_MODELS = tuple(f"{row.name}/*" for row in PROVIDERS if row.kind == "litellm" or row.base_url)

_logger = logging.getLogger(__name__)

# A list or an object in memory, beside its text.
_VALUE_BYTES = 64
# Names of models and fields that a refusal quotes may be as long as the request.
_MAX_REFUSAL_CHARACTERS = 1_000
_MAX_MODEL_CHARACTERS = 500
_KEEP_ALIVE = b": at work\n\n"

Handler = Callable[[web.Request, str], Awaitable[web.StreamResponse]]


class SharedModelFilter:
    """`patterns` are ids with `*` as a wildcard: `openai/*`, `anthropic/claude-haiku-*`. An empty tuple shares all.

    `added` gives the providers that the person added.
    """

    def __init__(self, patterns: tuple[str, ...] = (), added: Callable[[], tuple[Provider, ...]] = tuple) -> None:
        self._patterns = patterns
        self._added = added

    def has(self, model_id: str) -> bool:
        return any(fnmatchcase(model_id, pattern) for pattern in self._patterns or self._all())

    def _all(self) -> tuple[str, ...]:
        own = (row.name for row in self._added() if row.kind not in ("scripted", "proxy"))
        return (*_CATALOG_MODELS, *(f"{name}/*" for name in own))


@dataclass(frozen=True, slots=True)
class SharingLimits:
    """Limits per token holder; `life_s` is the keep-alive interval while a model thinks.

    `work_bytes` is for all requests that are read or answered at the same time.
    """

    body_bytes: int = 32 * 1024 * 1024
    work_bytes: int = 256 * 1024 * 1024
    values: int = 200_000
    read_s: float = 60.0
    per_second: float = 10.0
    burst: float = 60.0
    at_once: int = 64
    life_s: float = 15.0


_LIMITS = SharingLimits()


class _Refused(Exception):
    """An answer with a status other than 200."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True)
class _Account:
    """The current use of one token holder."""

    rate: TokenBucket
    streams: int = 0
    work_bytes: int = 0


class SharingServer:
    """Answers the requests of token holders; stores nothing of them."""

    def __init__(
        self, models: ModelRouter, tokens: Tokens, model_filter: SharedModelFilter, limits: SharingLimits = _LIMITS
    ) -> None:
        self._models = models
        self._tokens = tokens
        self._filter = model_filter
        self._limits = limits
        self._accounts: dict[str, _Account] = {}
        self._acceptors: list[Acceptor] = []
        # Cancels the handler when its client disconnects, which closes the request to the provider.
        self._runner = web.AppRunner(
            self._application(), handler_cancellation=True, access_log=None, handle_signals=False, shutdown_timeout=1.0
        )

    async def start(self, listeners: Sequence[socket.socket]) -> None:
        """Serve on bound sockets."""
        await self._runner.setup()
        assert self._runner.server is not None
        self._acceptors = [Acceptor(listener) for listener in listeners]
        for acceptor in self._acceptors:
            acceptor.start(self._runner.server)

    async def close(self) -> None:
        for acceptor in self._acceptors:
            await acceptor.close()
        await self._runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=self._limits.body_bytes)
        application.router.add_post("/api/stream", self._with_authentication(self._stream))
        application.router.add_get("/api/models", self._with_authentication(self._list))
        return application

    def _with_authentication(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            for acceptor in self._acceptors:
                acceptor.on_request(request.transport)
            try:
                return await handler(request, self._authenticate(request))
            except _Refused as refused:
                text = redact(str(refused)[:_MAX_REFUSAL_CHARACTERS])
                return web.json_response({"error": {"message": text}}, status=refused.status)

        return answer

    def _authenticate(self, request: web.Request) -> str:
        """Return the holder of the request's token; raises `_Refused`."""
        if "Origin" in request.headers:
            raise _Refused(403, "Web pages may not use the shared models.")
        holder = self._tokens.holder(request.headers.get("Authorization", ""))
        if holder is None:
            raise _Refused(401, "Wrong or missing token.")
        account = self._accounts.setdefault(holder, _Account(TokenBucket(self._limits.per_second, self._limits.burst)))
        if not account.rate.allows():
            raise _Refused(429, "Too many requests with this token.")
        for acceptor in self._acceptors:
            acceptor.on_authenticated(request.transport)
        return holder

    async def _list(self, request: web.Request, holder: str) -> web.StreamResponse:
        available = await self._models.available.list(refresh=False)
        models = tuple(model for model in available.models if self._filter.has(model.id))
        body = msgspec.json.encode(SharedModels(models=models, default=available.default))
        return web.Response(body=body, content_type="application/json")

    async def _stream(self, request: web.Request, holder: str) -> web.StreamResponse:
        with self._stream_slot(holder) as work:
            sent = await self._read(request, work)
            model = self._open(sent.model)
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
            with suppress(ConnectionError):  # the client disconnected
                await response.prepare(request)
                async with _keep_alive(response, self._limits.life_s):
                    await _send(model, request_from_wire(sent), response, holder)
                await response.write_eof()
        return response

    async def _read(self, request: web.Request, work: "_Work") -> StreamRequest:
        try:
            async with asyncio.timeout(self._limits.read_s):
                body = await self._body(request, work)
            with short_switches():
                return await asyncio.to_thread(_decoded, body, JsonBounds(len(body), self._limits.values))
        except TimeoutError as error:
            raise _Refused(408, "The request did not arrive in time.") from error
        except web.RequestPayloadError as error:
            raise _Refused(400, "The body is not in the encoding that its headers name.") from error
        except (ValueError, RecursionError) as error:
            raise _Refused(400, f"This is not a request for a reply: {error}.") from error

    async def _body(self, request: web.Request, work: "_Work") -> bytes:
        """Read a body; refuses it as soon as it, or what its token holder has in work, exceeds a limit."""
        body, limits, opened = bytearray(), self._limits, 0
        if (request.content_length or 0) > limits.body_bytes:
            raise _Refused(413, f"More than {limits.body_bytes:,} bytes.")
        async for piece in request.content.iter_any():
            body += piece
            opened += piece.count(b"[") + piece.count(b"{")
            if len(body) > limits.body_bytes:
                raise _Refused(413, f"More than {limits.body_bytes:,} bytes.")
            if opened > limits.values:  # empty lists need twenty times as much memory as in the request
                raise _Refused(413, f"More than {limits.values:,} values.")
            work.add(len(piece) + _VALUE_BYTES * piece.count(b"[") + _VALUE_BYTES * piece.count(b"{"))
        return bytes(body)

    def _open(self, model_id: str) -> ChatModel:
        if len(model_id) > _MAX_MODEL_CHARACTERS:
            raise _Refused(404, "No model has such a long name.")
        if not self._filter.has(model_id):
            raise _Refused(404, f"{model_id!r} is not shared here.")
        try:
            return self._models.open(model_id)
        except ConfigurationError as error:
            raise _Refused(404, str(error)) from error

    @contextmanager
    def _stream_slot(self, holder: str) -> Generator["_Work"]:
        account = self._accounts[holder]
        if account.streams >= self._limits.at_once:
            raise _Refused(429, f"At most {self._limits.at_once} replies at once with one token.")
        account.streams += 1
        work = _Work(account, self._limits.work_bytes)
        try:
            yield work
        finally:
            account.streams -= 1
            work.end()


class _Work:
    """The memory of one request, counted for its token holder until its reply has ended."""

    def __init__(self, account: _Account, max_bytes: int) -> None:
        self._account = account
        self._max_bytes = max_bytes
        self._bytes = 0

    def add(self, size: int) -> None:
        """Raises `_Refused` if all requests of the holder become too large."""
        self._bytes += size
        self._account.work_bytes += size
        if self._account.work_bytes > self._max_bytes:
            raise _Refused(429, f"The requests with this token have more than {self._max_bytes:,} bytes together.")

    def end(self) -> None:
        self._account.work_bytes -= self._bytes


def _decoded(body: bytes, bounds: JsonBounds) -> StreamRequest:
    check_bounds(body, bounds)
    return msgspec.json.decode(body, type=StreamRequest)


async def _send(model: ChatModel, request: ModelRequest, response: web.StreamResponse, holder: str) -> None:
    """Send the whole reply; an early exit ends the request to the provider. Logs the usage of each holder."""
    _logger.info("%s asks %s", holder, request.model)
    shortened = ProxyEncoder(request.model)
    async with aclosing(model.stream(request, CancelSignal())) as events:
        async for event in events:
            if isinstance(event, ReplyEnd):
                _logger.info("%s took %s", holder, _amount(event.message))
            await response.write(b"data: " + msgspec.json.encode(shortened.encode(event)) + b"\n\n")


def _amount(message: AssistantMessage) -> str:
    used = message.usage
    return f"{used.input_tokens} + {used.output_tokens} tokens of {message.model}, {used.cost_usd:.6f} USD"


@asynccontextmanager
async def _keep_alive(response: web.StreamResponse, each_s: float) -> AsyncGenerator[None]:
    """Send keep-alives, so that the client can distinguish a thinking model from a lost connection."""

    async def tell() -> None:
        with suppress(ConnectionError):
            while True:
                await asyncio.sleep(each_s)
                await response.write(_KEEP_ALIVE)

    telling = asyncio.create_task(tell(), name="signs of life")
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])
