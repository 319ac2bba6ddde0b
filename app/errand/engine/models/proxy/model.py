"""Models of another machine, which holds the keys: `POST /api/stream`, with the reply rebuilt from its events."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from io import BytesIO

import aiohttp
import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.outgoing import proxy_of
from errand.engine.models.base import AttemptEvent, ModelRequest, ReplyEnd
from errand.engine.models.catalog.providers import SHARED
from errand.engine.models.deadline import Aborted, Deadline, Stalled
from errand.engine.models.endpoint import ModelEndpoint, Timeouts
from errand.engine.models.failures import (
    ABORTED,
    AttemptFailure,
    FailedAttempt,
    FailureKind,
    ProviderError,
    connection_lost,
    failure_from_response,
)
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.http_stream import (
    EventStream,
    LineTooLong,
    ServerEvent,
    closed_with,
    read_event,
    read_start,
    transport_failure,
)
from errand.engine.models.proxy.codec import EventOrderError, ProxyDecoder
from errand.engine.models.proxy.wire import BlockEnded, BlockGrew, SharedEvent, request_to_wire
from errand.engine.models.reply.content import REPLY_LIMITS, ReplyLimits, ReplyTooLong, encode
from errand.text.redaction import RedactedStream, Redactor

# The other side sends keep-alives four times as often while the model thinks.
_TIMEOUTS = Timeouts(first_byte_s=60.0, between_s=60.0)
_STREAM = "text/event-stream"
_ATTEMPT_ERRORS = (ProviderError, ConfigurationError, Stalled, LineTooLong, aiohttp.ClientError, OSError, ValueError)

_decoder: msgspec.json.Decoder[SharedEvent] = msgspec.json.Decoder(SharedEvent)


class ProxyModel:
    """A `ModelProvider` for one machine that shares its models. That machine makes the retries for its models."""

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
        self._base = endpoint.base_url.rstrip("/").removesuffix("/api")

    async def attempt(self, request: ModelRequest, stop: CancelSignal) -> AsyncGenerator[AttemptEvent, None]:
        reply = ProxyDecoder(request.model, self._limits)
        hidden = _TokenRedaction(self._endpoint.redactor)
        try:
            with Deadline(stop, self._limits.seconds) as deadline:
                async with deadline.within(self._timeouts.first_byte_s):
                    response = await self._post(request)
                with closed_with(response, stop):
                    await self._check(response, deadline)
                    async with aclosing(self._payloads(response, deadline)) as payloads:
                        async for payload in payloads:
                            for sent in await read_event(payload, hidden.of):
                                event = reply.take(sent)
                                if isinstance(event, ReplyEnd):
                                    yield _with_local_id(event)
                                    return
                                yield event
                raise ProviderError(connection_lost(self._endpoint.provider.title))
        except Aborted:
            yield _aborted(reply)
        except ReplyTooLong as error:
            yield reply.cut(str(error))
        except _ATTEMPT_ERRORS as error:
            if stop.is_set:
                yield _aborted(reply)
            else:
                yield FailedAttempt(self._endpoint.redacted(self._failure(error)), reply.message)

    async def _check(self, response: aiohttp.ClientResponse, deadline: Deadline) -> None:
        """Check a response. Raises `ProviderError` unless it is a stream of events."""
        if response.status != 200:
            async with deadline.within(self._timeouts.between_s):
                body = await read_start(response)
            raise ProviderError(self._refusal(response, body))
        if response.content_type != _STREAM:
            text = f"{self._base} answers, but shares no models. Check the address."
            raise ProviderError(AttemptFailure(text, "no shared models", FailureKind.NOT_USABLE))

    async def _payloads(self, response: aiohttp.ClientResponse, watch: Deadline) -> AsyncGenerator[ServerEvent, None]:
        stream, left = EventStream(), self._limits.stream_bytes
        while True:
            async with watch.within(self._timeouts.between_s):
                piece = await response.content.readany()
            if not piece:
                break
            left -= len(piece)
            if left < 0:
                raise ReplyTooLong("comes with more than can be a reply")
            for event in stream.feed(piece):
                yield event
        for event in stream.finish():
            yield event

    async def _post(self, request: ModelRequest) -> aiohttp.ClientResponse:
        headers = {"Content-Type": "application/json", "Accept": _STREAM}
        if token := await self._endpoint.key_for(request.options.api_key):
            headers["Authorization"] = f"Bearer {token}"
        headers = self._endpoint.with_headers(headers)
        url = f"{self._base}/api/stream"
        body = BytesIO(encode(msgspec.to_builtins(request_to_wire(request))))
        return await self._connections.session.post(
            url, data=body, headers=headers, proxy=proxy_of(url), allow_redirects=False
        )

    def _refusal(self, response: aiohttp.ClientResponse, body: bytes) -> AttemptFailure:
        title, body = self._endpoint.provider.title, self._endpoint.redactor.hide_bytes(body)
        return failure_from_response(title, response.status, response.headers, body, self._endpoint.key_help)

    def _failure(self, error: Exception) -> AttemptFailure:
        if isinstance(error, EventOrderError | msgspec.DecodeError):
            text = f"{self._endpoint.provider.title} at {self._base} sent something else than a reply: {error}. "
            text = f"{text}Both sides may need the same version."
            return AttemptFailure(text, "unreadable reply", FailureKind.NOT_USABLE)
        return transport_failure(error, self._endpoint.provider, self._base)


class _TokenRedaction:
    """Redacts the token from the events of one reply, also where it is split over several of a block."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._blocks: dict[int, RedactedStream] = {}

    def of(self, data: bytes, name: str = "") -> list[SharedEvent]:
        """Return the events in the data of one; what lies between adds to keep a connection open is none."""
        return list(self._of(data)) if data.lstrip().startswith(b"{") else []

    def _of(self, data: bytes) -> Iterator[SharedEvent]:
        event = _decoder.decode(self._redactor.hide_bytes(data))
        match event:
            case BlockGrew():
                block = self._blocks.setdefault(event.index, RedactedStream(self._redactor))
                if delta := block.feed(event.delta):
                    yield msgspec.structs.replace(event, delta=delta)
            case BlockEnded():
                if event.index in self._blocks and (rest := self._blocks.pop(event.index).finish()):
                    yield BlockGrew(index=event.index, delta=rest)
                yield event
            case _:
                yield event


def _with_local_id(event: ReplyEnd) -> ReplyEnd:
    """Return the end event with the model's id on this machine."""
    return replace(event, message=replace(event.message, model=SHARED + event.message.model))


def _aborted(reply: ProxyDecoder) -> ReplyEnd:
    return ReplyEnd(replace(reply.message, stop_reason="aborted", error=ABORTED))
