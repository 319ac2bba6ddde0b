"""Reads the events of a streamed message."""

import msgspec

from errand.engine.core.input_limits import token_count
from errand.engine.core.messages import StopReason, Usage
from errand.engine.models.base import ModelEvent
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import encode
from errand.engine.models.reply.event_decoder import EventDecoder, IndexValue, index_number
from errand.engine.models.reply.faults import error_in_stream, says_error, withheld
from errand.protocol.base import JsonValue

# The signature of a thought that Anthropic sends encrypted alone: it begins with this.
REDACTED = "redacted_thinking:"
_DELTA_TYPES = frozenset({"text_delta", "thinking_delta", "signature_delta", "input_json_delta"})
# The signature of a thought that came without one: the name of its server follows.
UNSIGNED = "unsigned:"
_STOP_REASONS: dict[str, StopReason] = {
    "tool_use": "tool_use",
    "pause_turn": "tool_use",  # more was to follow
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str | int = ""
    name: str = ""
    input: JsonValue = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: JsonValue = ""
    stop_reason: str | None = None


class _Usage(msgspec.Struct):
    """Accepts any types: a wrong number must not fail the reply."""

    input_tokens: JsonValue = None
    output_tokens: JsonValue = None
    cache_read_input_tokens: JsonValue = None
    cache_creation_input_tokens: JsonValue = None


class _Message(msgspec.Struct):
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Event(msgspec.Struct):
    """An event; a whole message too, from servers that do not stream."""

    type: str = ""
    index: IndexValue = None
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    content: list[_Block] | _Block | str = []
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: JsonValue = None

    @property
    def is_blank(self) -> bool:
        return self.type in ("", "error") and not self.content


_decoder = msgspec.json.Decoder(_Event)


class MessageReader:
    """A `ReplyReader` of the events of one message. `server` is named in the thoughts that have no signature."""

    def __init__(self, builder: ReplyBuilder, title: str, server: str = "") -> None:
        self.finish_reason: str | None = None
        self._has_stopped = False
        self._builder = builder
        self._title = title
        self._decoder = EventDecoder(_decoder, title, builder.redactor)
        self._server = server
        self._thoughts: set[int | None] = set()
        self._signed: set[int | None] = set()
        self._inputs: dict[int | None, JsonValue] = {}
        self._counts: dict[str, JsonValue] = {}

    @property
    def is_over(self) -> bool:
        return self._has_stopped or self._decoder.has_ended

    def read(self, data: bytes, name: str = "") -> list[ModelEvent]:
        decoded = self._decoder.decode(data, name, is_complete=self.finish_reason is not None)
        return [event for sent in decoded for event in self._event(sent, sent.type or name)]

    def _event(self, event: _Event, event_type: str) -> list[ModelEvent]:
        if event_type == "error" or says_error(event.error):
            raise error_in_stream(event.error, self._title, self._builder.redactor)
        index = index_number(event.index)
        match event_type:
            case "message_start":
                self._count(event.message.usage if event.message is not None else None)
            case "content_block_start" if event.content_block is not None:
                return self._begin(index, event.content_block)
            case "content_block_delta" if event.delta is not None:
                return self._grow(index, event.delta)
            case "content_block_stop":
                return self._end_block(index)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None:
                    self.finish_reason = event.delta.stop_reason or self.finish_reason
            case "message_stop":
                self._has_stopped = True
            case "message" | "" if event.type or event.content:
                return self._complete_message(event)
            case _:
                pass  # ping, and events that this API may get
        return []

    def end(self) -> list[ModelEvent]:
        self._decoder.log_skipped()
        reason = self.finish_reason
        if reason == "refusal":
            raise withheld(self._title, reason)
        events = [event for index in list(self._inputs) for event in self._end_block(index)]
        stop = _STOP_REASONS.get(reason or "", "stop")
        if self._builder.is_empty and stop != "length":
            raise self._decoder.empty_reply()
        return [*events, *self._builder.end(stop)]

    def _complete_message(self, event: _Event) -> list[ModelEvent]:
        """Return a whole message, from servers that do not stream."""
        self._count(event.usage)
        self.finish_reason = event.stop_reason or "end_turn"
        match event.content:
            case str():
                blocks = [_Block("text", event.content)]
            case _Block():
                blocks = [event.content]
            case _:
                blocks = event.content
        return [event for at, block in enumerate(blocks) for event in self._complete_block(at, block)]

    def _complete_block(self, index: int, block: _Block) -> list[ModelEvent]:
        events = self._begin(index, block)
        return [*events, *self._end_block(index)]

    def _end_block(self, index: int | None) -> list[ModelEvent]:
        """Return the block is complete; arguments that came with its beginning count if no others came."""
        if index in self._inputs:
            return self._builder.tool_call(index, "", "", _argument_text(self._inputs.pop(index)))
        if index not in self._thoughts:
            return []
        is_bare = self._server and index not in self._signed
        signed = self._builder.thinking("", UNSIGNED + self._server) if is_bare else []
        return [*signed, *self._builder.end_thought()]

    def _begin(self, index: int | None, block: _Block) -> list[ModelEvent]:
        match block.type:
            case "text":
                return self._builder.text(block.text) if block.text else []
            case "thinking":
                self._thoughts.add(index)
                self._signed |= {index} if block.signature else set()
                return self._builder.thinking(block.thinking, block.signature)
            case "redacted_thinking":
                self._thoughts.add(index)
                self._signed.add(index)
                return self._builder.thinking("", REDACTED + block.data)
            case "tool_use":
                if block.input and isinstance(block.input, dict | str):
                    self._inputs[index] = block.input
                return self._builder.tool_call(index, str(block.id), block.name, "")
            case _:
                return []  # of tools that run at the provider, which are never asked for

    def _grow(self, index: int | None, delta: _Delta) -> list[ModelEvent]:
        """More of a block: of the kind that the type names, if it is a known one."""
        has_type = delta.type in _DELTA_TYPES
        events: list[ModelEvent] = []
        if delta.text and (not has_type or delta.type == "text_delta"):
            events += self._builder.text(delta.text)
        if (delta.thinking or delta.signature) and (
            not has_type or delta.type in ("thinking_delta", "signature_delta")
        ):
            self._signed |= {index} if delta.signature else set()
            events += self._builder.thinking(delta.thinking, delta.signature)
        arguments = _argument_text(delta.partial_json)
        if arguments and (not has_type or delta.type == "input_json_delta"):
            self._inputs.pop(index, None)
            events += self._builder.tool_call(index, "", "", arguments)
        return events

    def _count(self, usage: _Usage | None) -> None:
        """Note the counts, which come at the start and at the end; a later one replaces the earlier."""
        if usage is None:
            return
        self._counts |= {name: count for name, count in msgspec.structs.asdict(usage).items() if count is not None}
        counts = {name: token_count(count) for name, count in self._counts.items()}
        read, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        total = counts.get("input_tokens", 0) + read + written
        self._builder.usage = Usage(total, counts.get("output_tokens", 0), read, written)


def _argument_text(arguments: JsonValue) -> str:
    if isinstance(arguments, str):
        return arguments
    return encode(arguments).decode() if arguments else ""
