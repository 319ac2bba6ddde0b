"""Asks a model over HTTP, in whatever format its provider has, and reads the reply as it streams."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from io import BytesIO
from typing import Protocol

import aiohttp

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.fair_share import Slice
from errand.engine.core.outgoing import proxy_of
from errand.engine.models.base import AttemptEvent, ModelEvent, ModelRequest
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.deadline import Aborted, Deadline, Stalled
from errand.engine.models.endpoint import ModelEndpoint, Timeouts
from errand.engine.models.failures import (
    AttemptFailure,
    FailedAttempt,
    FailureKind,
    ProviderError,
    connection_lost,
    error_text,
    failure_from_response,
)
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.http_stream import (
    BODY_START,
    EventStream,
    LineTooLong,
    ServerEvent,
    closed_with,
    read_event,
    read_start,
    transport_failure,
)
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import (
    REPLY_LIMITS,
    PartlyEncoded,
    ReplyLimits,
    ReplyTooLong,
    encode,
    reply_limits,
)

_TIMEOUTS = Timeouts()
_LARGE = 256 * 1024
# Longer conversations are converted in a thread, off the event loop.
_MANY = 500
_AFTER_FINISH_S = 5.0  # wait for usage after the model has finished
_DRAIN_S = 0.05  # wait for the end of the body after the end mark; only then can the connection be reused
_BARE_ERROR = re.compile(rb'\{\s*"(error|type|object|message|detail|code)"\s*:')
_ATTEMPT_ERRORS = (ProviderError, ConfigurationError, Stalled, LineTooLong, aiohttp.ClientError, OSError, ValueError)


class ReplyReader(Protocol):
    """Feeds the data of one stream's events to a `ReplyBuilder`."""

    @property
    def finish_reason(self) -> str | None:
        """Set once the model has finished."""
        ...

    @property
    def is_over(self) -> bool:
        """True after the mark that ends the stream."""
        ...

    def read(self, data: bytes, name: str = "") -> list[ModelEvent]:
        """Return the events of one piece. Raises `ProviderError` for an error from the server and for damaged data."""
        ...

    def end(self) -> list[ModelEvent]:
        """Return the stream has ended; raises `ProviderError` if it was cut off, empty or filtered."""
        ...


class ApiFormat(Protocol):
    """The request and reply format of one kind of API, for one provider and the name of its server."""

    def urls(self, base: str) -> tuple[str, ...]:
        """Return the addresses to try in turn: some are given without their path."""
        ...

    def headers(self, key: str | None) -> dict[str, str]: ...

    def body(self, request: ModelRequest) -> PartlyEncoded: ...

    def reader(self, builder: ReplyBuilder) -> ReplyReader: ...


class HttpModel:
    """A `ModelProvider` for one endpoint."""

    def __init__(
        self,
        endpoint: ModelEndpoint,
        format_for: Callable[[Provider, str], ApiFormat],
        connections: HttpPool,
        timeouts: Timeouts = _TIMEOUTS,
        limits: ReplyLimits = REPLY_LIMITS,
        stream_parser: Callable[[], EventStream] = EventStream,
    ) -> None:
        self._stream_parser = stream_parser
        self._endpoint = endpoint
        self._format = format_for(endpoint.provider, endpoint.server)
        self._limits = limits
        self._connections = connections
        self._timeouts = timeouts
        self._base = endpoint.base_url.rstrip("/")
        self._urls = self._format.urls(self._base)

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        limits = reply_limits(self._limits, is_small=request.options.is_small)
        builder = ReplyBuilder(request.model, limits, self._endpoint.redactor)
        title = self._endpoint.provider.title
        try:
            with Deadline(stop, self._limits.seconds) as deadline:
                async with deadline.within(self._timeouts.first_byte_s):
                    response = await self._post(request)
                with closed_with(response, stop):
                    if not 200 <= response.status < 300:
                        async with deadline.within(self._timeouts.between_s):
                            body = await read_start(response)
                        raise ProviderError(self._refusal(response, body))
                    yield builder.start()
                    reader = self._format.reader(builder)
                    reply = _ReplyStream(
                        response, builder, reader, title, self._timeouts, limits.stream_bytes, self._stream_parser()
                    )
                    async with aclosing(reply.events(deadline)) as events:
                        async for event in events:
                            yield event
                    for event in reader.end():
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
        key = await self._endpoint.key_for(request.options.api_key)
        own = {"Content-Type": "application/json", "Accept": "text/event-stream", **self._format.headers(key)}
        headers = self._endpoint.with_headers(own)
        if len(request.messages) > _MANY:
            body = await asyncio.to_thread(lambda: encode(self._format.body(request)))
        else:
            body = encode(self._format.body(request))
        *others, last = self._urls
        for url in others:
            response = await self._send(url, body, headers)
            if response.status != 404:
                self._urls = (url,)
                return response
            response.close()
        return await self._send(last, body, headers)

    async def _send(self, url: str, body: bytes, headers: dict[str, str]) -> aiohttp.ClientResponse:
        # Images make it large: aiohttp would send bytes in one piece and block the event loop.
        data = BytesIO(body) if len(body) >= _LARGE else body
        return await self._connections.session.post(
            url, data=data, headers=headers, proxy=proxy_of(url), allow_redirects=False
        )

    def _refusal(self, response: aiohttp.ClientResponse, body: bytes) -> AttemptFailure:
        title, body = self._endpoint.provider.title, self._endpoint.redactor.hide_bytes(body)
        return failure_from_response(title, response.status, response.headers, body, self._endpoint.key_help)


class _ReplyStream:
    """The reply in one HTTP body."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        builder: ReplyBuilder,
        reader: ReplyReader,
        title: str,
        timeouts: Timeouts,
        most_bytes: int,
        stream: EventStream,
    ) -> None:
        self._response = response
        self._builder = builder
        self._reader = reader
        self._title = title
        self._timeouts = timeouts
        self._stream = stream
        self._bytes_left = most_bytes

    async def events(self, watch: Deadline) -> AsyncGenerator[ModelEvent, None]:
        """Stream the response. Raises on failure."""
        share = Slice()
        while True:
            try:
                async with watch.within(self._limit_s):
                    piece = await self._response.content.readany()
            except (Stalled, aiohttp.ClientError, OSError):
                if self._reader.finish_reason is None:
                    raise
                return  # the reply is complete, only the end mark is missing
            self._bytes_left -= len(piece)
            if self._bytes_left < 0:
                raise ReplyTooLong("comes with more than can be a reply")
            for sent in self._stream.feed(piece) if piece else self._stream.finish():
                for event in await read_event(sent, self._reader.read):
                    yield event
                if self._reader.is_over:
                    await self._drain()
                    await self._raise_for_bare_error()
                    return
                self._builder.check()
                if share.is_over:  # a continuous flood never waits for data
                    await share.renew()
            if not piece:
                for event in await self._end_without_mark():
                    yield event
                return

    @property
    def _limit_s(self) -> float:
        if self._reader.finish_reason is not None:
            return _AFTER_FINISH_S
        return self._timeouts.first_byte_s if self._builder.is_empty else self._timeouts.between_s

    async def _end_without_mark(self) -> list[ModelEvent]:
        """Return the body may be complete, not an event stream, or cut off."""
        events: list[ModelEvent] = []
        if self._stream.stray and self._builder.is_empty:
            if not self._stream.stray.lstrip().startswith((b"{", b"[")):
                raise ProviderError(self._no_model_server())
            events = await read_event(ServerEvent(self._stream.stray), self._reader.read)
        else:
            await self._raise_for_bare_error()
        if self._reader.finish_reason is None and not self._builder.is_empty:
            raise ProviderError(connection_lost(self._title))
        return events

    async def _raise_for_bare_error(self) -> None:
        """Raise for an error that came as a plain line between the events."""
        lines = [line for line in self._stream.stray.splitlines() if _BARE_ERROR.match(line)]
        for line in lines[:1]:
            await read_event(ServerEvent(line), self._reader.read)

    def _no_model_server(self) -> AttemptFailure:
        url = self._response.url
        excerpt = error_text(self._builder.redactor.hide_bytes(self._stream.stray[:BODY_START]))
        text = f"There is no model server at {url}; it answered: {excerpt} Check the base URL."
        return AttemptFailure(text, "no model server", FailureKind.NOT_USABLE)

    async def _drain(self) -> None:
        if self._response.content.at_eof():
            return
        try:
            async with asyncio.timeout(_DRAIN_S):
                await self._response.content.read(BODY_START)
        except (TimeoutError, aiohttp.ClientError):
            self._response.close()
