"""Reads the objects of a chat that Ollama streams, one on each line."""

import msgspec

from errand.engine.core.input_limits import token_count
from errand.engine.core.messages import StopReason, Usage
from errand.engine.models.base import ModelEvent
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import encode
from errand.engine.models.reply.event_decoder import EventDecoder
from errand.engine.models.reply.faults import error_in_stream, says_error
from errand.protocol.base import JsonValue

_STOP_REASONS: dict[str, StopReason] = {"length": "length"}


class _Function(msgspec.Struct):
    name: str = ""
    arguments: JsonValue = None


class _Call(msgspec.Struct):
    id: str = ""
    function: _Function | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(msgspec.Struct):
    """Accepts any types of numbers: a wrong one must not fail the reply."""

    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: JsonValue = None
    eval_count: JsonValue = None
    error: JsonValue = None

    @property
    def is_blank(self) -> bool:
        return self.message is None and not self.done


_decoder = msgspec.json.Decoder(_Line)


class OllamaReader:
    """A `ReplyReader` of one stream. Each call comes whole, with arguments as an object."""

    def __init__(self, assembly: ReplyBuilder, title: str) -> None:
        self.finish_reason: str | None = None
        self._assembly = assembly
        self._title = title
        self._decoder = EventDecoder(_decoder, title, assembly.redactor)
        self._call_count = 0

    @property
    def is_over(self) -> bool:
        return self.finish_reason is not None or self._decoder.has_ended

    def read(self, data: bytes, name: str = "") -> list[ModelEvent]:
        lines = self._decoder.decode(data, name, is_complete=self.finish_reason is not None)
        return [event for line in lines for event in self._line(line)]

    def end(self) -> list[ModelEvent]:
        self._decoder.log_skipped()
        stop_reason = _STOP_REASONS.get(self.finish_reason or "", "stop")
        if self._assembly.is_empty and stop_reason != "length":
            raise self._decoder.empty_reply()
        return self._assembly.end(stop_reason)

    def _line(self, line: _Line) -> list[ModelEvent]:
        if says_error(line.error):
            raise error_in_stream(line.error, self._title, self._assembly.redactor)
        events = [] if line.message is None else self._message(line.message)
        if line.done:
            self.finish_reason = line.done_reason or "stop"
            self._assembly.usage = Usage(token_count(line.prompt_eval_count), token_count(line.eval_count))
        return events

    def _message(self, message: _Message) -> list[ModelEvent]:
        events = self._assembly.thinking(message.thinking) if message.thinking else []
        events += self._assembly.text(message.content) if message.content else []
        for call in message.tool_calls or ():
            if call.function is None:
                continue
            arguments = call.function.arguments
            text = arguments if isinstance(arguments, str) else encode(arguments or {}).decode()
            events += self._assembly.tool_call(self._call_count, call.id, call.function.name, text)
            self._call_count += 1
        return events
