"""OpenAI-compatible endpoints over HTTP; OpenAI's own models go through the library where it is needed."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from io import BytesIO
from urllib.parse import urlsplit

import aiohttp

from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import ConfigurationError
from app.engine.models.base import AttemptEvent, ModelProvider, ModelRequest
from app.engine.models.deadline import Aborted, Deadline, Stalled
from app.engine.models.endpoint import ModelEndpoint, Timeouts
from app.engine.models.failures import AttemptFailure, FailedAttempt, ProviderError, failure_from_response
from app.engine.models.http_pool import HttpPool, proxy_for
from app.engine.models.http_stream import LineTooLong, closed_with, transport_failure
from app.engine.models.message_cache import MessageCache
from app.engine.models.openai.request import chat_messages, effort_fields, needs_responses, tool_definitions
from app.engine.models.openai.stream import ReplyStream, read_start
from app.engine.models.reply.builder import ReplyBuilder
from app.engine.models.reply.content import REPLY_LIMITS, ReplyLimits, ReplyTooLong, encode
from app.protocol.base import JsonObject, JsonValue

_TIMEOUTS = Timeouts()
_LARGE = 256 * 1024
# Longer conversations are converted in a thread, off the event loop.
_MANY = 500
_ATTEMPT_ERRORS = (ProviderError, ConfigurationError, Stalled, LineTooLong, aiohttp.ClientError, OSError, ValueError)


class OpenAICompatibleModel:
    """A `ModelProvider` for one endpoint."""

    def __init__(
        self,
        endpoint: ModelEndpoint,
        connections: HttpPool,
        timeouts: Timeouts = _TIMEOUTS,
        limits: ReplyLimits = REPLY_LIMITS,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._connections = connections
        self._timeouts = timeouts
        self._message_cache: MessageCache[list[JsonValue]] = MessageCache()
        self._base = endpoint.base_url.rstrip("/").removesuffix("/chat/completions")
        self._proxy = proxy_for(self._base)

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        builder = ReplyBuilder(request.model, self._limits, self._endpoint.redactor)
        title = self._endpoint.provider.title
        try:
            with Deadline(stop, self._limits.seconds) as deadline:
                async with deadline.within(self._timeouts.first_byte_s):
                    response = await self._post(request)
                with closed_with(response, stop):
                    if response.status != 200:
                        async with deadline.within(self._timeouts.between_s):
                            body = await read_start(response)
                        raise ProviderError(self._refusal(response, body))
                    yield builder.start()
                    reply = ReplyStream(response, builder, title, self._timeouts, self._limits.stream_bytes)
                    async with aclosing(reply.events(deadline)) as events:
                        async for event in events:
                            yield event
                    for event in reply.end():
                        yield event
        except Aborted:
            yield builder.abort()
        except ReplyTooLong as error:
            for event in builder.cut(str(error)):
                yield event
        except _ATTEMPT_ERRORS as error:
            if stop.is_set:
                yield builder.abort()
                return
            builder.close_blocks()
            failure = transport_failure(error, self._endpoint.provider, self._base)
            yield FailedAttempt(self._endpoint.redacted(failure), replace(builder.message, usage=builder.usage))

    async def _post(self, request: ModelRequest) -> aiohttp.ClientResponse:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if key := await self._endpoint.key_for(request.options.api_key):
            headers["Authorization"] = f"Bearer {key}"
        if len(request.messages) > _MANY:
            body = await asyncio.to_thread(lambda: encode(self._body(request)))
        else:
            body = encode(self._body(request))
        while True:
            # Images make it large: aiohttp would send bytes in one piece and block the event loop.
            data = BytesIO(body) if len(body) >= _LARGE else body
            url = f"{self._base}/chat/completions"
            response = await self._connections.session.post(
                url, data=data, headers=headers, proxy=self._proxy, allow_redirects=False
            )
            if response.status != 404 or urlsplit(self._base).path:
                return response
            response.close()  # the address was given without its path
            self._base += "/v1"

    def _body(self, request: ModelRequest) -> JsonObject:
        provider, options = self._endpoint.provider, request.options
        body: JsonObject = {
            "model": request.model.partition("/")[2],
            "messages": chat_messages(request, provider, self._message_cache),
            "stream": True,
        }
        if provider.asks_usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = tool_definitions(request.tools)
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if options.max_tokens is not None:
            body[provider.max_tokens_field] = options.max_tokens
        if provider.cache_field and options.session_id:
            body[provider.cache_field] = options.session_id
        return body | effort_fields(request, provider)

    def _refusal(self, response: aiohttp.ClientResponse, body: bytes) -> AttemptFailure:
        title, body = self._endpoint.provider.title, self._endpoint.redactor.hide_bytes(body)
        return failure_from_response(title, response.status, response.headers, body, self._endpoint.key_help)


class OpenAIModel:
    """A `ModelProvider` that selects the interface for each request; the library is opened on first use."""

    def __init__(self, fast: ModelProvider, open_library: Callable[[], ModelProvider]) -> None:
        self._fast = fast
        self._open_library = open_library
        self._library: ModelProvider | None = None

    def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        if not needs_responses(request):
            return self._fast.attempt(request, stop)
        if self._library is None:
            self._library = self._open_library()
        return self._library.attempt(request, stop)
