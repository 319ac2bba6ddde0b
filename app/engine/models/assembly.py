"""Builds a reply from deltas: the events of one stream and the frozen message so far that each carries.

Reading a provider's format is left to the callers.
"""

import uuid
from dataclasses import replace
from typing import Literal

import msgspec

from app.engine.messages import AssistantContent, AssistantMessage, StopReason, Text, Thinking, ToolCall, Usage
from app.engine.models.base import BlockDelta, BlockEnd, BlockStart, ModelEvent, ReplyEnd, ReplyStart
from app.engine.models.failure import ABORTED
from app.engine.models.think_tags import ThinkTags
from app.protocol.json import JsonObject, JsonValue

Kind = Literal["text", "thinking", "tool_call"]


class _CallDraft:
    """A tool call under way: where it stands in the content, and its raw arguments in pieces."""

    __slots__ = ("content_index", "given_id", "id", "index", "name", "pieces")

    def __init__(self, content_index: int, index: int | None, given_id: str, name: str) -> None:
        self.content_index = content_index
        self.index = index
        self.given_id = given_id
        self.id = given_id or f"call_{uuid.uuid4().hex[:24]}"
        self.name = name
        self.pieces: list[str] = []

    @property
    def raw(self) -> str:
        return "".join(self.pieces)

    def call(self) -> ToolCall:
        """The call as it stands when no more comes."""
        arguments = parse_arguments(self.raw)
        if arguments is None:
            return ToolCall(self.id, self.name, {}, invalid=self.raw)
        return ToolCall(self.id, self.name, arguments)


def parse_arguments(raw: str) -> JsonObject | None:
    """A call's arguments, or None where they are no JSON object. Empty and `null` stand for no arguments."""
    if not raw.strip():
        return {}
    try:
        value: JsonValue = msgspec.json.decode(raw)
    except (ValueError, RecursionError):  # not JSON, lone surrogates, nested too deep
        return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


class Assembly:
    """One reply under way. Every method returns the events to pass on, in order."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.usage = Usage()
        self._content: list[AssistantContent] = []
        self._open: Literal["text", "thinking"] | None = None
        self._calls: list[_CallDraft] = []
        self._tags = ThinkTags()

    @property
    def partial(self) -> AssistantMessage:
        return AssistantMessage(tuple(self._content), model=self.model)

    @property
    def is_nothing(self) -> bool:
        """No text, no thinking, no call so far."""
        return not self._content and not self._tags.holds_text

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def start(self) -> ReplyStart:
        return ReplyStart(self.partial)

    def text(self, delta: str) -> list[ModelEvent]:
        """More text, in which `<think>` tags may stand."""
        events: list[ModelEvent] = []
        for kind, piece in self._tags.feed(delta):
            events += self._grow(kind, piece)
        return events

    def thinking(self, delta: str, signature: str = "") -> list[ModelEvent]:
        """More reasoning that came in a field of its own."""
        return self._grow("thinking", delta, signature)

    def tool_call(self, index: int | None, call_id: str, name: str, arguments: str) -> list[ModelEvent]:
        """A piece of a tool call; `call_id` and `name` may be empty in all pieces but the first."""
        events: list[ModelEvent] = []
        draft = self._find(index, call_id, name)
        if draft is None:
            events += self._flush_tags()
            events += self._close_block()
            draft = self._new_call(index, call_id, name)
            events.append(BlockStart("tool_call", draft.content_index, self.partial))
        elif name and not draft.name:
            draft.name = name
            self._content[draft.content_index] = ToolCall(draft.id, name, {})
        if arguments:
            draft.pieces.append(arguments)
            events.append(BlockDelta("tool_call", draft.content_index, arguments, self.partial))
        return events

    def end(self, stop_reason: StopReason) -> list[ModelEvent]:
        """The reply is whole."""
        if self._calls and stop_reason == "stop":
            stop_reason = "tool_use"
        events = self.close_blocks()
        return [*events, ReplyEnd(replace(self.partial, stop_reason=stop_reason, usage=self.usage))]

    def abort(self) -> ReplyEnd:
        """The reply was stopped by us; what came so far is kept."""
        self.close_blocks()
        return ReplyEnd(replace(self.partial, stop_reason="aborted", error=ABORTED, usage=self.usage))

    def close_blocks(self) -> list[ModelEvent]:
        """End every open block; tool calls get their arguments now."""
        events = self._flush_tags()
        events += self._close_block()
        for draft in self._calls:
            self._content[draft.content_index] = draft.call()
        partial = self.partial
        return [*events, *(BlockEnd("tool_call", draft.content_index, partial) for draft in self._calls)]

    def _flush_tags(self) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for kind, piece in self._tags.finish():
            events += self._grow(kind, piece)
        return events

    def _grow(self, kind: Literal["text", "thinking"], delta: str, signature: str = "") -> list[ModelEvent]:
        if not delta and not signature:
            return []
        events: list[ModelEvent] = []
        content = self._content
        if self._open != kind:
            events += self._close_block()
            content.append(Text("") if kind == "text" else Thinking(""))
            self._open = kind
            events.append(BlockStart(kind, len(content) - 1, self.partial))
        last = content[-1]
        if isinstance(last, Text):
            content[-1] = Text(last.text + delta)
        elif isinstance(last, Thinking):
            content[-1] = Thinking(last.text + delta, last.signature + signature)
        events.append(BlockDelta(kind, len(content) - 1, delta, self.partial))
        return events

    def _close_block(self) -> list[ModelEvent]:
        if self._open is None:
            return []
        kind, self._open = self._open, None
        return [BlockEnd(kind, len(self._content) - 1, self.partial)]

    def _new_call(self, index: int | None, call_id: str, name: str) -> _CallDraft:
        taken = any(draft.id == call_id for draft in self._calls)
        draft = _CallDraft(len(self._content), index, call_id, name)
        if taken:  # two calls under one id could not be told apart by their results
            draft.id = f"call_{uuid.uuid4().hex[:24]}"
        self._content.append(ToolCall(draft.id, name, {}))
        self._calls.append(draft)
        return draft

    def _find(self, index: int | None, call_id: str, name: str) -> _CallDraft | None:
        """The call a piece belongs to; None when it begins a new one."""
        if call_id:
            same = [draft for draft in self._calls if draft.given_id == call_id]
            here = [draft for draft in same if index is None or draft.index == index]
            # One id under two indexes is two calls where the second has a name of its own.
            return here[-1] if here else same[-1] if same and not name else None
        found = [draft for draft in self._calls if index is None or draft.index == index]
        if not found:
            return None
        last = found[-1]
        if name and last.name and last.raw and parse_arguments(last.raw) is not None:
            return None  # a server that sends no ids began its next call
        return last
