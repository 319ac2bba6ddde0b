"""Reads the events of a streamed message."""

import msgspec

from errand.engine.core.input_limits import token_count
from errand.engine.core.messages import StopReason, Usage
from errand.engine.models.base import ModelEvent
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.faults import decode_event, empty_reply, error_in_stream, withheld
from errand.protocol.base import JsonValue

# The signature of a thought that Anthropic sends encrypted alone: it begins with this.
REDACTED = "redacted_thinking:"
_STOP_REASONS: dict[str, StopReason] = {
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
# Errors in the middle of a stream have the status that they would have had at its start.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: JsonValue = None


class _Delta(msgspec.Struct):
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Usage(msgspec.Struct):
    """Accepts any types: a wrong number must not fail the reply."""

    input_tokens: JsonValue = None
    output_tokens: JsonValue = None
    cache_read_input_tokens: JsonValue = None
    cache_creation_input_tokens: JsonValue = None


class _Message(msgspec.Struct):
    content: list[_Block] = []
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Event(msgspec.Struct):
    """An event; a whole message too, from servers that do not stream."""

    type: str = ""
    index: int | None = None
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    content: list[_Block] = []
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: JsonValue = None


_decoder = msgspec.json.Decoder(_Event)


class MessageReader:
    """A `ReplyReader` of the events of one message."""

    def __init__(self, builder: ReplyBuilder, title: str) -> None:
        self.finish_reason: str | None = None
        self.is_over = False
        self._builder = builder
        self._title = title
        self._thoughts: set[int | None] = set()
        self._counts: dict[str, JsonValue] = {}

    def read(self, data: bytes) -> list[ModelEvent]:
        event = decode_event(data, _decoder, self._title, self._builder.redactor)
        if event.error or event.type == "error":
            raise error_in_stream(event.error, _status_of(event.error), self._title, self._builder.redactor)
        match event.type:
            case "message_start":
                self._count(event.message.usage if event.message is not None else None)
            case "content_block_start" if event.content_block is not None:
                return self._begin(event.index, event.content_block)
            case "content_block_delta" if event.delta is not None:
                return self._grow(event.index, event.delta)
            case "content_block_stop" if event.index in self._thoughts:
                return self._builder.end_thought()
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None:
                    self.finish_reason = event.delta.stop_reason or self.finish_reason
            case "message_stop":
                self.is_over = True
            case "message":
                self._count(event.usage)
                self.finish_reason = event.stop_reason or "end_turn"
                return [made for at, block in enumerate(event.content) for made in self._begin(at, block)]
            case _:
                pass  # ping, and events that this API may get
        return []

    def end(self) -> list[ModelEvent]:
        reason = self.finish_reason
        if reason == "refusal":
            raise withheld(self._title, reason)
        stop = _STOP_REASONS.get(reason or "", "stop")
        if self._builder.is_empty and stop != "length":
            raise empty_reply(self._title)
        return self._builder.end(stop)

    def _begin(self, index: int | None, block: _Block) -> list[ModelEvent]:
        match block.type:
            case "text":
                return self._builder.text(block.text) if block.text else []
            case "thinking":
                self._thoughts.add(index)
                return self._builder.thinking(block.thinking, block.signature)
            case "redacted_thinking":
                self._thoughts.add(index)
                return self._builder.thinking("", REDACTED + block.data)
            case "tool_use":
                given = msgspec.json.encode(block.input).decode() if block.input else ""
                return self._builder.tool_call(index, block.id, block.name, given)
            case _:
                return []  # of tools that run at the provider, which are never asked for

    def _grow(self, index: int | None, delta: _Delta) -> list[ModelEvent]:
        if delta.text:
            return self._builder.text(delta.text)
        if delta.thinking or delta.signature:
            return self._builder.thinking(delta.thinking, delta.signature)
        return self._builder.tool_call(index, "", "", delta.partial_json) if delta.partial_json else []

    def _count(self, usage: _Usage | None) -> None:
        """Counts come at the start and at the end; a later one replaces the earlier."""
        if usage is None:
            return
        self._counts |= {name: count for name, count in msgspec.structs.asdict(usage).items() if count is not None}
        counts = {name: token_count(count) for name, count in self._counts.items()}
        read, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        total = counts.get("input_tokens", 0) + read + written
        self._builder.usage = Usage(total, counts.get("output_tokens", 0), read, written)


def _status_of(error: JsonValue) -> int:
    kind = error.get("type") if isinstance(error, dict) else None
    return _STATUS.get(kind, 500) if isinstance(kind, str) else 500
