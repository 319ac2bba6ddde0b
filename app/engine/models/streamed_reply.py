"""Reads the body of one answer: server-sent events to events of the reply. The request and its refusal are others'."""

import asyncio
from collections.abc import AsyncGenerator

import aiohttp

from app.engine.models.assembly import Assembly
from app.engine.models.base import ModelEvent
from app.engine.models.chunks import ChunkReader
from app.engine.models.endpoint import Timeouts
from app.engine.models.failure import Failure, Refused, cut
from app.engine.models.refusals import told
from app.engine.models.reply_content import REPLY_LIMITS, ReplyTooLong
from app.engine.models.sse import EventStream, read_event
from app.engine.models.watch import Stalled, Watch

_DONE = b"[DONE]"
_BODY_LIMIT = 64 * 1024
_AFTER_FINISH_S = 5.0  # how long usage may come after the model said that it is done
_DRAIN_S = 0.05  # how long the end of the body may come after [DONE]; only then can the connection be used again


class StreamedReply:
    """One body under way. `events` gives what comes in, `end` the last events; both raise what goes wrong."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        assembly: Assembly,
        title: str,
        timeouts: Timeouts,
        most_bytes: int = REPLY_LIMITS.stream_bytes,
    ) -> None:
        self._response = response
        self._assembly = assembly
        self._title = title
        self._timeouts = timeouts
        self._reader = ChunkReader(assembly, title)
        self._stream = EventStream()
        self._left = most_bytes

    async def events(self, watch: Watch) -> AsyncGenerator[ModelEvent, None]:
        while True:
            try:
                piece = await watch.of(self._response.content.readany(), self._limit_s)
            except Stalled:
                if self._reader.finish_reason is None:
                    raise
                return  # the reply was whole, only [DONE] is missing
            self._left -= len(piece)
            if self._left < 0:
                raise ReplyTooLong("comes with more than can be a reply")
            for data in self._stream.feed(piece) if piece else self._stream.finish():
                if data == _DONE:
                    await self._drain()
                    return
                for event in await read_event(data, self._reader.read):
                    yield event
                self._assembly.check()
            if not piece:
                for event in await self._closed():
                    yield event
                return

    def end(self) -> list[ModelEvent]:
        return self._reader.end()

    @property
    def _limit_s(self) -> float:
        if self._reader.finish_reason is not None:
            return _AFTER_FINISH_S
        return self._timeouts.first_byte_s if self._assembly.is_nothing else self._timeouts.between_s

    async def _closed(self) -> list[ModelEvent]:
        """The body ended without [DONE]: whole after all, no event stream at all, or cut."""
        events: list[ModelEvent] = []
        if self._stream.stray and self._assembly.is_nothing:
            if not self._stream.stray.lstrip().startswith(b"{"):
                raise Refused(self._no_model_server())
            events = await read_event(self._stream.stray, self._reader.read)
        if self._reader.finish_reason is None and not self._assembly.is_nothing:
            raise Refused(cut(self._title))
        return events

    def _no_model_server(self) -> Failure:
        url = self._response.url
        said = told(self._assembly.redactor.hide_bytes(self._stream.stray[:_BODY_LIMIT]))
        text = f"There is no model server at {url}; it answered: {said} Check the API base."
        return Failure(text, "no model server", may_pass=False)

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(_DRAIN_S):
                await self._response.content.read(_BODY_LIMIT)
        except (TimeoutError, aiohttp.ClientError):
            self._response.close()


async def read_start(response: aiohttp.ClientResponse) -> bytes:
    """The first part of a body, as much as an error text needs."""
    body = bytearray()
    while len(body) < _BODY_LIMIT and (piece := await response.content.readany()):
        body += piece
    return bytes(body)
