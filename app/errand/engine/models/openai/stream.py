"""Reads the chunks of a streamed chat completion."""

from typing import Literal

import msgspec

from errand.engine.core.input_limits import dollars, token_count
from errand.engine.core.messages import StopReason, Usage
from errand.engine.models.base import ModelEvent
from errand.engine.models.failures import (
    AttemptFailure,
    FailureKind,
    ProviderError,
)
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.faults import decode_event, empty_reply, error_in_stream, withheld
from errand.protocol.base import JsonObject, JsonValue

_DONE = b"[DONE]"


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | JsonObject | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(msgspec.Struct):
    """Mistral sends content in parts: text, or thinking that consists of text parts."""

    type: str = "text"
    text: str = ""
    thinking: "list[_Part] | str" = ""


class _Delta(msgspec.Struct):
    content: str | list[_Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None  # a complete reply, from servers that do not stream
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    """Accepts any types: a wrong number must not fail the reply."""

    prompt_tokens: JsonValue = None
    completion_tokens: JsonValue = None
    total_tokens: JsonValue = None
    prompt_tokens_details: JsonValue = None
    completion_tokens_details: JsonValue = None
    prompt_cache_hit_tokens: JsonValue = None  # DeepSeek
    cache_read_input_tokens: JsonValue = None  # litellm, for Anthropic
    cache_creation_input_tokens: JsonValue = None
    cost: JsonValue = None  # OpenRouter

    def to_usage(self) -> Usage:
        given = self.prompt_tokens_details
        details = given if isinstance(given, dict) else {}
        return Usage(
            token_count(self.prompt_tokens),
            token_count(self.completion_tokens) + self._reasoning_beside(),
            _first(details.get("cached_tokens"), self.prompt_cache_hit_tokens, self.cache_read_input_tokens),
            _first(self.cache_creation_input_tokens, details.get("cache_write_tokens")),
            dollars(self.cost),
        )

    def _reasoning_beside(self) -> int:
        """Reasoning tokens that are not part of the completion tokens (xAI): the total is the sum only with them."""
        given = self.completion_tokens_details
        reasoning = token_count(given.get("reasoning_tokens")) if isinstance(given, dict) else 0
        others = token_count(self.prompt_tokens) + token_count(self.completion_tokens)
        return reasoning if token_count(self.total_tokens) == others + reasoning else 0


def _first(*values: JsonValue) -> int:
    """The first of several fields for one count that has a value."""
    return next((count for value in values if (count := token_count(value))), 0)


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: JsonValue = None


_decoder = msgspec.json.Decoder(_Chunk)

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "length",
}


class ChunkReader:
    """A `ReplyReader` of the chunks of one stream."""

    def __init__(self, assembly: ReplyBuilder, title: str) -> None:
        self.finish_reason: str | None = None
        self.is_over = False
        self._assembly = assembly
        self._title = title

    def read(self, data: bytes) -> list[ModelEvent]:
        if data == _DONE:
            self.is_over = True
            return []
        chunk = decode_event(data, _decoder, self._title, self._assembly.redactor)
        if chunk.error:
            raise error_in_stream(chunk.error, _status_of(chunk.error), self._title, self._assembly.redactor)
        if chunk.usage is not None:
            self._assembly.usage = chunk.usage.to_usage()
        events: list[ModelEvent] = []
        for choice in (chunk.choices or ())[:1]:
            delta = choice.delta or choice.message
            if delta is not None:
                events += self._delta(delta)
            if choice.finish_reason:
                self.finish_reason = choice.finish_reason
        return events

    def end(self) -> list[ModelEvent]:
        reason = self.finish_reason
        if reason == "content_filter":
            raise withheld(self._title, "content filter")
        if reason in ("error", "malformed_function_call"):
            text = f"{self._title} could not finish the reply ({reason})."
            raise ProviderError(AttemptFailure(text, "reply failed", FailureKind.UNAVAILABLE))
        if self._assembly.is_empty and reason != "length":
            raise empty_reply(self._title)
        return self._assembly.end(_STOP_REASONS.get(reason or "stop", "stop"))

    def _delta(self, delta: _Delta) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if reasoning := delta.reasoning_content or delta.reasoning:
            events += self._assembly.thinking(reasoning)
        if delta.content:
            events += self._content(delta.content)
        if delta.refusal:
            events += self._assembly.text(delta.refusal)
        for call in delta.tool_calls or ():
            function = call.function or _Function()
            arguments = function.arguments or ""
            if isinstance(arguments, dict):
                arguments = msgspec.json.encode(arguments).decode()
            events += self._assembly.tool_call(call.index, call.id or "", function.name or "", arguments)
        return events

    def _content(self, content: str | list[_Part]) -> list[ModelEvent]:
        if isinstance(content, str):
            return self._assembly.text(content)
        events: list[ModelEvent] = []
        for part in content:
            kind: Literal["text", "thinking"] = "thinking" if part.type == "thinking" else "text"
            text = part.text
            if isinstance(part.thinking, str):
                text = text or part.thinking
            else:
                text = text or "".join(inner.text for inner in part.thinking)
            events += self._assembly.thinking(text) if kind == "thinking" else self._assembly.text(text)
        return events


def _status_of(error: JsonValue) -> int:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500
