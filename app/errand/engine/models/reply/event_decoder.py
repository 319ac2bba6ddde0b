"""Decodes the events of a model's stream. What is not understood beside the reply is skipped and counted.

Only text, calls and errors may fail a reply: servers differ in everything else, and a field of another type than
OpenAI's or Anthropic's must not cost an answer that has come. Lone surrogates are passed on: `ReplyBuilder` joins them.
"""

import logging
from collections.abc import Iterator
from typing import Generic, Protocol, TypeAlias, TypeVar

import msgspec

from errand.engine.core.json_input.fitting import Misfits, read_loose
from errand.engine.core.json_input.foreign_json import JsonBounds, UnreadableJson, check_bounds
from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError, error_text
from errand.engine.models.reply.content import encode
from errand.engine.models.reply.faults import empty_reply, error_in_stream, top_level_error
from errand.protocol.base import JsonObject, JsonValue
from errand.text.redaction import Redactor

_END_MARKS = frozenset({"[DONE]", "DONE"})
_BLANK = "\ufeff \t\r\n\0"
_QUOTES = "\"' \t"
# Maximum length of an event that is quoted in an error.
_MAX_EXCERPT_BYTES = 65_536
# Shorter events have too few values to matter.
_MAX_UNCOUNTED_BYTES = 65_536
_BOUNDS = JsonBounds(max_depth=500)

_logger = logging.getLogger(__name__)


class StreamEvent(Protocol):
    """A decoded event. `is_blank`: it has nothing of a reply, so it may be an error."""

    @property
    def is_blank(self) -> bool: ...


# The number of a call or choice: some servers send it as a text.
IndexValue: TypeAlias = int | str | float | None
T = TypeVar("T", bound=StreamEvent)


class EventDecoder(Generic[T]):
    """The decoder of one stream. `has_ended` is set by the mark that ends the streams of most servers."""

    def __init__(self, decoder: msgspec.json.Decoder[T], title: str, redactor: Redactor) -> None:
        self.has_ended = False
        self._decoder = decoder
        self._title = title
        self._redactor = redactor
        self._skipped = 0
        self._first_skipped = b""

    def decode(self, data: bytes, name: str = "", *, is_complete: bool = False) -> list[T]:
        """Return the objects in the data of one event, mostly one. `name` is that of the event.

        Raises `ProviderError` for an error, and for an object that is damaged, unless the reply is complete without it.
        """
        if len(data) > _MAX_UNCOUNTED_BYTES:
            self._check_bounds(data)
        try:
            event = self._decoder.decode(data)
        except (ValueError, RecursionError):
            return [self._event(value, name) for value in self._objects(data, name, is_complete)]
        if event.is_blank:
            self._raise_for_error(msgspec.json.decode(data), name)
        return [event]

    def _check_bounds(self, data: bytes) -> None:
        """Check the memory. Raises `ProviderError` for an event that would take much more than its text."""
        try:
            check_bounds(data, _BOUNDS)
        except UnreadableJson as error:
            raise self._unreadable(data) from error

    def empty_reply(self) -> ProviderError:
        """Return the failure of a reply without content: what was skipped may be the reason."""
        return self._unreadable(self._first_skipped) if self._skipped else empty_reply(self._title)

    def log_skipped(self) -> None:
        """Call at the end of the stream."""
        if self._skipped:
            excerpt = error_text(self._redactor.hide_bytes(self._first_skipped))
            _logger.info("%s: skipped %d parts of a reply, the first in: %s", self._title, self._skipped, excerpt)

    def _event(self, value: JsonObject, name: str) -> T:
        misfits = Misfits()
        cleaned = misfits.removed_from(value, self._decoder.type)
        if misfits.count:
            self._skip(encode(value), misfits.count)
        event: T = msgspec.convert(cleaned, self._decoder.type)
        if event.is_blank:
            self._raise_for_error(value, name)
        return event

    def _objects(self, data: bytes, name: str, is_complete: bool) -> Iterator[JsonObject]:
        """Yield the objects of an event, or of its lines: some servers leave out the empty line between events."""
        text = data.decode("utf-8", "surrogateescape").strip(_BLANK)
        text = text.removeprefix("data:").strip(_BLANK)  # of a gateway that adds its own
        match read_loose(text):
            case str() as inner if inner.lstrip().startswith("{") and inner != text:
                yield from self._objects(inner.encode("utf-8", "surrogatepass"), name, is_complete)
            case dict() as value:
                yield value
            case list() as values:
                yield from (value for value in values if isinstance(value, dict))
                self._skip(data, sum(not isinstance(value, dict) for value in values))
            case _ if "\n" in text:
                for line in text.split("\n"):
                    yield from self._objects(line.encode("utf-8", "surrogateescape"), name, is_complete)
            case _:
                self._take_word(text, name, is_complete)

    def _take_word(self, text: str, name: str, is_complete: bool) -> None:
        """Take the data of an event that is no JSON object: an end mark, a keep-alive, an error in plain words."""
        data = text.encode("utf-8", "surrogateescape")
        if text.strip(_QUOTES).upper() in _END_MARKS:
            self.has_ended = True
        elif name == "error" and text:
            raise error_in_stream(text.strip(_QUOTES), self._title, self._redactor)
        elif text.startswith("{") and not is_complete:
            raise self._unreadable(data)
        elif text:
            self._skip(data, 1)

    def _raise_for_error(self, value: JsonValue, name: str) -> None:
        error = top_level_error(value, is_named=name == "error") if isinstance(value, dict) else None
        if error:
            raise error_in_stream(error, self._title, self._redactor)

    def _skip(self, data: bytes, count: int) -> None:
        self._first_skipped = self._first_skipped or data[:_MAX_EXCERPT_BYTES]
        self._skipped += count

    def _unreadable(self, data: bytes) -> ProviderError:
        excerpt = error_text(self._redactor.hide_bytes(data[:_MAX_EXCERPT_BYTES]))
        text = f"{self._title} sent something that is not a model reply: {excerpt}"
        return ProviderError(AttemptFailure(text, "unreadable reply", FailureKind.UNAVAILABLE))


def index_number(value: IndexValue) -> int | None:
    """Return the number of a call or choice, None for one that is not a number."""
    try:
        return None if value is None else int(value)
    except (ValueError, OverflowError):
        return None
