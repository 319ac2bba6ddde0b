"""Parses server-sent events from an HTTP body; converts transport errors to failures."""

import asyncio
import re
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

import aiohttp

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.outgoing import CERTIFICATE_HELP, UnusableRoute
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.deadline import Stalled
from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError, connection_lost, no_response

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_BOM = b"\xef\xbb\xbf"
STRAY_LIMIT = 4 * 1024 * 1024
# Of a body, what an error message needs, in bytes.
BODY_START = 64 * 1024
# A whole reply in one event, from servers that do not stream.
EVENT_LIMIT = 4 * 1024 * 1024
# Larger events are parsed in a thread; events of streaming models have some hundred bytes.
_LONG = 32 * 1024
_MAX_NAME_BYTES = 200
_DATA = re.compile(rb"[ \t]*data[ \t]*:", re.IGNORECASE)  # of servers that do not write it as the standard has it


class LineTooLong(ValueError):
    """A line, or the data of one event, is longer than `EVENT_LIMIT` bytes."""


class ServerEvent(NamedTuple):
    """One event of a stream; `name` is that of its `event:` line, which some servers need to be understood."""

    data: bytes
    name: str = ""


class _ReadEvent(Protocol[T_co]):
    def __call__(self, data: bytes, name: str = "") -> T_co: ...


async def read_event(event: ServerEvent, read: _ReadEvent[T]) -> T:
    """Call `read` with the data and the name of one event, in a thread if it is large.

    The search for keys takes up to 3 µs per character of hostile data.
    """
    return await asyncio.to_thread(read, *event) if len(event.data) > _LONG else read(*event)


class EventStream:
    """An incremental parser: `feed` takes bytes and returns complete events with data.

    It works on bytes and returns only complete lines, so it never splits a character. `stray` keeps lines that are not
    event fields: the whole body if a server answers with plain JSON or a web page.
    """

    def __init__(self) -> None:
        self._has_begun = False
        self._line: list[bytes] = []  # pieces of the unfinished line, joined at its end
        self._line_size = 0
        self._after_return = False  # a leading \n now belongs to the previous \r
        self._data: list[bytes] = []
        self._data_size = 0
        self._name = ""
        self._stray: list[bytes] = []
        self._stray_size = 0

    @property
    def stray(self) -> bytes:
        return b"".join(self._stray)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if not self._has_begun:
            chunk = b"".join((*self._line, chunk))
            self._line, self._line_size = [], 0
            if _BOM.startswith(chunk):
                self._add(chunk)
                return []
            chunk, self._has_begun = chunk.removeprefix(_BOM), True
        if b"\r" in chunk or self._after_return:
            if self._after_return:
                chunk = chunk.removeprefix(b"\n")
            self._after_return = chunk.endswith(b"\r") if chunk else self._after_return
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = chunk.split(b"\n")
        self._add(first)
        if not others:
            return []
        lines = [b"".join(self._line), *others[:-1]]
        self._line, self._line_size = [], 0
        self._add(others[-1])
        return self._take(lines)

    def finish(self) -> list[ServerEvent]:
        """Call at the end of the stream: an event without its final blank line is complete too."""
        lines, self._line = [b"".join(self._line), b""], []
        return self._take(lines)

    def _add(self, piece: bytes) -> None:
        self._line_size += len(piece)
        if self._line_size > EVENT_LIMIT:
            raise LineTooLong
        if piece:
            self._line.append(piece)

    def _take(self, lines: list[bytes]) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        for line in lines:
            if line.startswith(b"data:") or _DATA.match(line):
                self._data.append(line.partition(b":")[2].removeprefix(b" "))
                self._data_size += len(line)
                if self._data_size > EVENT_LIMIT:
                    raise LineTooLong
            elif not line:
                if self._data:
                    events.append(ServerEvent(b"\n".join(self._data), self._name))
                self._data, self._data_size, self._name = [], 0, ""
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()[:_MAX_NAME_BYTES].decode("utf-8", "replace")
            elif not line.startswith((b":", b"event", b"id", b"retry", b"data")) and self._stray_size < STRAY_LIMIT:
                self._stray.append(line + b"\n")
                self._stray_size += len(line) + 1
        return events


class LineStream(EventStream):
    """A parser of streams that have one JSON object on each line, in place of events."""

    def _take(self, lines: list[bytes]) -> list[ServerEvent]:
        return [ServerEvent(line) for line in lines if line.strip()]


async def read_start(response: aiohttp.ClientResponse) -> bytes:
    """Return the beginning of a body, as much as an error message needs."""
    body = bytearray()
    while len(body) < BODY_START and (piece := await response.content.readany()):
        body += piece
    return bytes(body)


@contextmanager
def closed_with(response: aiohttp.ClientResponse, stop: CancelSignal) -> Generator[None]:
    """Close the response at the end of the block, or as soon as the stop signal is set."""
    unsubscribe = stop.subscribe(response.close)
    try:
        yield
    finally:
        unsubscribe()
        response.close()  # no-op after a body read to its end, whose connection is back in the pool


def transport_failure(error: Exception, provider: Provider, base_url: str) -> AttemptFailure:
    """Classify an exception raised by a request to `base_url`."""
    match error:
        case ProviderError():
            return error.failure
        case ConfigurationError():
            return AttemptFailure(str(error), "key not readable", FailureKind.NOT_AUTHORISED)
        case aiohttp.InvalidURL():
            text = f"{base_url} is not a web address. Check the base URL."
            return AttemptFailure(text, "bad address", FailureKind.NOT_USABLE)
        case ssl.SSLError() | aiohttp.ClientSSLError():
            text = f"No secure connection to {base_url}: {error}. Check the base URL. {CERTIFICATE_HELP}"
            return AttemptFailure(text, "no secure connection", FailureKind.NOT_USABLE)
        case UnusableRoute():
            return AttemptFailure(str(error), "no way to the network", FailureKind.NOT_USABLE)
        case aiohttp.ClientConnectorError():
            hint = provider.start_hint or "check the network and the base URL"
            text = f"Cannot reach {provider.title} at {base_url}: {hint}."
            return AttemptFailure(text, "cannot connect", FailureKind.UNAVAILABLE)
        case Stalled():
            return no_response(provider.title, error.limit_s)
        case LineTooLong():
            text = f"{provider.title} sent an endless line."
            return AttemptFailure(text, "unreadable reply", FailureKind.NOT_USABLE)
        case _:
            return connection_lost(provider.title)
