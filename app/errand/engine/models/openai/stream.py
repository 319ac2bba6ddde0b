"""Reads the chunks of a streamed chat completion."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from errand.engine.core.input_limits import dollars, token_count
from errand.engine.core.json_input.foreign_json import object_or_empty
from errand.engine.core.messages import StopReason, Usage
from errand.engine.models.base import ModelEvent, PromptProgress
from errand.engine.models.failures import AttemptFailure, FailureKind, ProviderError
from errand.engine.models.openai.side_fields import (
    CALL_FIELDS,
    OTHER_FIELDS,
    THOUGHT_FIELDS,
    THOUGHT_LISTS,
    SideFieldCollector,
)
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import encode
from errand.engine.models.reply.event_decoder import EventDecoder, IndexValue, index_number
from errand.engine.models.reply.faults import error_in_stream, says_error, withheld
from errand.protocol.base import JsonObject, JsonValue

_Piece: TypeAlias = tuple[Literal["text", "thinking"], str]


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: JsonValue = None


class _Call(_Function):
    """A piece of a call; some servers put the fields of its function beside the others.

    The names of the last ones are those of `CALL_FIELDS`.
    """

    index: IndexValue = None
    id: str | int | None = None
    function: _Function | None = None
    extra_content: JsonValue = None
    thought_signature: JsonValue = None
    provider_specific_fields: JsonValue = None


class _Delta(msgspec.Struct):
    """Accepts any form of text: a string, parts, or parts within parts (Mistral's thoughts).

    The names of the last ones are those of `THOUGHT_FIELDS` and `OTHER_FIELDS`.
    """

    content: JsonValue = None
    refusal: JsonValue = None
    tool_calls: list[_Call] | _Call | None = None
    function_call: _Function | None = None  # of the API before tools
    reasoning_content: JsonValue = None
    reasoning: JsonValue = None
    reasoning_text: JsonValue = None
    thinking: JsonValue = None
    reasoning_details: JsonValue = None
    thinking_blocks: JsonValue = None
    reasoning_opaque: JsonValue = None
    reasoning_signature: JsonValue = None
    encrypted_content: JsonValue = None
    extra_content: JsonValue = None
    thought_signature: JsonValue = None
    provider_specific_fields: JsonValue = None


class _Choice(msgspec.Struct):
    index: IndexValue = None
    delta: _Delta | str | None = None
    message: _Delta | str | None = None  # a complete reply, from servers that do not stream
    text: str | None = None  # of servers that complete texts
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
        details = object_or_empty(self.prompt_tokens_details)
        return Usage(
            token_count(self.prompt_tokens),
            token_count(self.completion_tokens) + self._separate_reasoning(),
            _first(details.get("cached_tokens"), self.prompt_cache_hit_tokens, self.cache_read_input_tokens),
            _first(self.cache_creation_input_tokens, details.get("cache_write_tokens")),
            dollars(self.cost),
        )

    def _separate_reasoning(self) -> int:
        """Reasoning tokens that are not part of the completion tokens (xAI): the total is the sum only with them."""
        details = self.completion_tokens_details
        reasoning = token_count(details.get("reasoning_tokens")) if isinstance(details, dict) else 0
        others = token_count(self.prompt_tokens) + token_count(self.completion_tokens)
        return reasoning if token_count(self.total_tokens) == others + reasoning else 0


def _first(*values: JsonValue) -> int:
    """Return the first of several fields for one count that has a value."""
    return next((count for value in values if (count := token_count(value))), 0)


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | _Choice | None = None
    usage: _Usage | None = None
    error: JsonValue = None
    prompt_progress: JsonValue = None  # llama.cpp

    @property
    def is_blank(self) -> bool:
        return not self.choices and self.usage is None


_decoder = msgspec.json.Decoder(_Chunk)
# In the order of the struct.
_SIDE_FIELDS = (*THOUGHT_FIELDS, *OTHER_FIELDS)
_NO_SIDE_FIELDS = (None,) * len(_SIDE_FIELDS)

# Finish reasons in lower case, also those of servers that pass on what another API said.
_STOP_REASONS: dict[str, StopReason] = {
    "tool_calls": "tool_use",
    "tool_call": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "pause_turn": "tool_use",  # more was to follow
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
}
_TEXT_FIELDS = ("thinking", "reasoning", "text", "content", "value", "summary", "refusal")
_NOT_FINISHED = frozenset({"", "null", "none", "not_finished", "finish_reason_unspecified"})
_WITHHELD = frozenset(
    {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "sensitive"}
)
_FAILED = frozenset(
    {"error", "malformed_function_call", "network_error", "engine_error", "insufficient_system_resource", "abort"}
)


class ChunkReader:
    """A `ReplyReader` of the chunks of one stream.

    What the server named `server` sends beside the reply is kept, to be sent back; nothing is kept without a name.
    """

    def __init__(self, assembly: ReplyBuilder, title: str, server: str = "") -> None:
        self.finish_reason: str | None = None
        self._assembly = assembly
        self._title = title
        self._decoder = EventDecoder(_decoder, title, assembly.redactor)
        self._side = SideFieldCollector(server)
        # The choices whose text and whose calls are read: the first that have any.
        self._text_choice: int | None = None
        self._call_choice: int | None = None
        self._has_thought_text = False

    @property
    def is_over(self) -> bool:
        return self._decoder.has_ended

    def read(self, data: bytes, name: str = "") -> list[ModelEvent]:
        chunks = self._decoder.decode(data, name, is_complete=self.finish_reason is not None)
        return [event for chunk in chunks for event in self._chunk(chunk)]

    def end(self) -> list[ModelEvent]:
        self._decoder.log_skipped()
        reason = self.finish_reason
        if reason in _WITHHELD:
            raise withheld(self._title, reason.replace("_", " "))
        if reason in _FAILED:
            text = f"{self._title} could not finish the reply ({reason})."
            raise ProviderError(AttemptFailure(text, "reply failed", FailureKind.UNAVAILABLE))
        stop_reason = _STOP_REASONS.get(reason or "stop", "stop")
        if self._assembly.is_empty and stop_reason != "length":
            raise self._decoder.empty_reply()
        return self._assembly.end(stop_reason, self._side.signature if self._assembly.has_calls else "")

    def _chunk(self, chunk: _Chunk) -> list[ModelEvent]:
        if says_error(chunk.error):
            raise error_in_stream(chunk.error, self._title, self._assembly.redactor)
        if chunk.usage is not None:
            self._assembly.usage = chunk.usage.to_usage()
        choices = [chunk.choices] if isinstance(chunk.choices, _Choice) else chunk.choices or []
        # A whole message after its pieces would repeat them.
        takes_message = any(choice.message is not None for choice in choices) and self._assembly.is_empty
        progress = [] if chunk.prompt_progress is None else self._progress(chunk.prompt_progress)
        return [*progress, *(event for choice in choices for event in self._read_choice(choice, takes_message))]

    def _progress(self, progress: JsonValue) -> list[ModelEvent]:
        """Return how much of the request is read, until the reply begins."""
        if not self._assembly.is_empty:
            return []
        fields = object_or_empty(progress)
        total, processed = token_count(fields.get("total")), token_count(fields.get("processed"))
        return [PromptProgress(min(processed, total), total, self._assembly.message)] if total else []

    def _read_choice(self, choice: _Choice, takes_message: bool) -> list[ModelEvent]:
        """Some servers send the text in one choice and the calls in another, although one choice is asked for."""
        if choice.finish_reason is not None or choice.message is not None:
            self._finish(choice)
        number = index_number(choice.index) or 0
        delta = choice.delta or (choice.message if takes_message else None) or choice.text
        delta = delta if isinstance(delta, _Delta) else _Delta(content=delta)
        texts = self._texts(delta, number)
        has_calls = delta.tool_calls is not None or delta.function_call is not None
        return [*texts, *self._calls(delta, number)] if has_calls else texts

    def _finish(self, choice: _Choice) -> None:
        reason = (choice.finish_reason or "").lower()
        if reason not in _NOT_FINISHED or (choice.delta is None and choice.message is not None):
            self.finish_reason = reason or "stop"

    def _texts(self, delta: _Delta, choice: int) -> list[ModelEvent]:
        has_side_fields = msgspec.structs.astuple(delta)[-len(_SIDE_FIELDS) :] != _NO_SIDE_FIELDS
        if isinstance(delta.content, str) and not has_side_fields and delta.refusal is None:  # nearly all pieces
            return self._assembly.text(delta.content) if self._is_read(choice, delta.content) else []
        side = _side_fields(delta, _SIDE_FIELDS) if has_side_fields else {}
        pieces = [*_pieces(self._thought_in(side), "thinking"), *_pieces(delta.content), *_pieces(delta.refusal)]
        self._side.take(side)
        events: list[ModelEvent] = []
        for kind, piece in pieces if self._is_read(choice, pieces) else []:
            events += self._assembly.thinking(piece) if kind == "thinking" else self._assembly.text(piece)
        return events

    def _thought_in(self, side: JsonObject) -> JsonValue:
        """More of the thoughts, from the first field that has any: servers send the same in several.

        Lists repeat what came as a text.
        """
        name = next((name for name in THOUGHT_FIELDS if name in side), "")
        if name in THOUGHT_LISTS:
            return None if self._has_thought_text else side[name]
        self._has_thought_text = self._has_thought_text or bool(name)
        return side.get(name)

    def _is_read(self, choice: int, content: str | list[_Piece]) -> bool:
        """Return True for content of the first choice that has any."""
        if content and self._text_choice is None:
            self._text_choice = choice
        return bool(content) and choice == self._text_choice

    def _calls(self, delta: _Delta, choice: int) -> list[ModelEvent]:
        calls = [delta.tool_calls] if isinstance(delta.tool_calls, _Call) else delta.tool_calls or []
        if delta.function_call is not None:
            calls = [*calls, _Call(function=delta.function_call)]
        calls = [call for call in calls if _says_something(call)]
        if calls and self._call_choice is None:
            self._call_choice = choice
        events: list[ModelEvent] = []
        for call in calls if choice == self._call_choice else []:
            function = call.function or call
            arguments = _argument_text(function.arguments)
            events += self._assembly.tool_call(
                index_number(call.index), str(call.id or ""), function.name or "", arguments
            )
            if self._assembly.last_call is not None:
                self._side.take_call(self._assembly.last_call, _side_fields(call, CALL_FIELDS))
        return events


def _side_fields(sent: _Delta | _Call, names: tuple[str, ...]) -> JsonObject:
    fields = msgspec.structs.asdict(sent)
    return {name: fields[name] for name in names if fields[name]}


def _says_something(call: _Call) -> bool:
    function = call.function or call
    return bool(call.id or function.name or function.arguments)


def _argument_text(arguments: JsonValue) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else encode(arguments).decode()


def _pieces(content: JsonValue, kind: Literal["text", "thinking"] = "text") -> Iterator[_Piece]:
    """Yield the texts in what a server sends as content, in order; what has no text is passed over."""
    match content:
        case str() if content:
            yield kind, content
        case list():
            for part in content:
                yield from _pieces(part, kind)
        case dict():
            name, inner = next(((name, content[name]) for name in _TEXT_FIELDS if content.get(name)), ("", None))
            is_thought = any(str(label).startswith(("think", "reason")) for label in (name, content.get("type")))
            yield from _pieces(inner, "thinking" if is_thought else kind)
        case _:
            pass
