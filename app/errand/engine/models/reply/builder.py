"""Builds a reply from deltas and separates `<think>` tags; returns the events to pass on."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, TypeAlias

from errand.engine.core.json_input.lenient_json import read_object, read_strict_object
from errand.engine.core.messages import AssistantMessage, StopReason, Thinking, ToolCall, Usage
from errand.engine.models.base import BlockDelta, BlockEnd, BlockStart, ModelEvent, ReplyEnd, ReplyStart
from errand.engine.models.failures import ABORTED
from errand.engine.models.reply.content import REPLY_LIMITS, GrowingText, ReplyContent, ReplyLimits, ReplyTooLong
from errand.engine.models.reply.split_characters import SplitCharacters, joined
from errand.protocol.base import JsonObject
from errand.text.redaction import RedactedStream, Redactor

_OPEN = "<think>"
_CLOSE = "</think>"
# Whitespace held back before a possible tag; a reply with more leading whitespace starts with text.
_MAX_LEADING_BLANKS = 1_000
_STRIDE = 4_096  # of a large delta, to bound the text copied for each tag

TaggedText: TypeAlias = tuple[Literal["text", "thinking"], str]

DraftKind = Literal["text", "thinking", "tool_call"]

# Maximum number of checks whether a call's arguments are complete: a server that repeats the name with each piece would
# cause one for each piece.
_MAX_PARSE_ATTEMPTS = 64
# A delta is searched for keys in parts, so that text beyond the limits of a reply is not searched.
_PART = 65_536
_MAX_FIELD_LENGTH = 262_144


class ThinkTagSplitter:
    """Feed it text deltas; it returns pieces with their kind. `finish` returns the held text."""

    def __init__(self) -> None:
        self._state: Literal["before", "inside", "text"] = "before"
        self._buffer = ""
        self._started = False  # part of the current thinking block was returned
        self._is_after_thinking = False  # after a thinking block: whitespace that follows it is not text

    @property
    def holds_text(self) -> bool:
        return bool(self._buffer.strip())

    def feed(self, delta: str) -> list[TaggedText]:
        pieces: list[TaggedText] = []
        for at in range(0, len(delta), _STRIDE):
            if self._state == "text":
                return [*pieces, ("text", delta[at:])]
            self._buffer += delta[at : at + _STRIDE]
            while self._buffer and self._step(pieces):
                pass
        return pieces

    def finish(self) -> list[TaggedText]:
        held, self._buffer = self._buffer, ""
        kind: Literal["text", "thinking"] = "thinking" if self._state == "inside" else "text"
        self._state = "text"
        return [(kind, held)] if held.strip() else []

    def _step(self, pieces: list[TaggedText]) -> bool:
        """Consume the part of the held text whose kind is known; False if more text is needed."""
        if self._state == "text":
            pieces.append(("text", self._buffer))
            self._buffer = ""
            return False
        return self._before_thinking(pieces) if self._state == "before" else self._inside_thinking(pieces)

    def _before_thinking(self, pieces: list[TaggedText]) -> bool:
        word = self._buffer.lstrip()
        if word.startswith(_OPEN):
            self._state, self._started, self._buffer = "inside", False, word[len(_OPEN) :]
            return True
        if _OPEN.startswith(word) and len(self._buffer) <= _MAX_LEADING_BLANKS:
            return False
        self._state = "text"
        if self._is_after_thinking:
            self._buffer = word
        return True

    def _inside_thinking(self, pieces: list[TaggedText]) -> bool:
        thought, tag, rest = self._buffer.partition(_CLOSE)
        if not tag:
            keep = _overlap(thought)
            thought, rest = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if not self._started:
            thought = thought.lstrip()
        if thought:
            self._started = True
            pieces.append(("thinking", thought))
        self._buffer = rest
        if not tag:
            return False
        self._state, self._is_after_thinking = "before", True
        return True


def _overlap(text: str) -> int:
    """Return the number of characters at the end of `text` that may be the beginning of the closing tag."""
    for size in range(min(len(_CLOSE) - 1, len(text)), 0, -1):
        if _CLOSE.startswith(text[-size:]):
            return size
    return 0


class _CallDraft:
    """An unfinished tool call: its index in the content, and its raw arguments in pieces."""

    __slots__ = (
        "arguments",
        "content_index",
        "id",
        "index",
        "name",
        "parse_attempts",
        "redacted",
        "server_id",
        "split",
    )

    def __init__(self, index: int | None, server_id: str, name: str, redactor: Redactor) -> None:
        self.redacted = RedactedStream(redactor)
        self.split = SplitCharacters(keeps_halves=True)
        self.content_index = 0
        self.index = index
        self.server_id = server_id
        self.id = server_id or f"call_{uuid.uuid4().hex[:24]}"
        self.name = name
        self.arguments = GrowingText()
        self.parse_attempts = 0

    def call(self) -> ToolCall:
        """Return the call with the arguments received so far."""
        raw = self.arguments.joined
        arguments = parse_arguments(raw)
        if arguments is None:
            return ToolCall(self.id, self.name, {}, invalid=raw)
        return ToolCall(self.id, self.name, arguments)

    def repeats(self, arguments: str) -> bool:
        """Return True if a piece has the arguments of this call once more, as some servers end a call."""
        return read_strict_object(arguments) == read_strict_object(self.arguments.joined)

    def is_complete(self) -> bool:
        """Return True if the arguments are a complete JSON object."""
        self.parse_attempts += 1
        may_parse = self.parse_attempts <= _MAX_PARSE_ATTEMPTS and self.arguments.length > 0
        return may_parse and read_strict_object(self.arguments.joined) is not None


class _CallDrafts:
    """The tool calls of a reply. Tells which call a piece belongs to: servers differ in what they repeat."""

    def __init__(self) -> None:
        self.all: list[_CallDraft] = []

    def find(self, index: int | None, call_id: str, name: str, arguments: str) -> _CallDraft | None:
        """Return the call that a piece belongs to; None if it starts a new one."""
        if call_id:
            same = [draft for draft in self.all if draft.server_id == call_id]
            here = [draft for draft in same if index is None or draft.index == index]
            # The same id under two indexes means two calls if the second has a name.
            return here[-1] if here else same[-1] if same and not name else None
        candidates = [draft for draft in self.all if index is None or draft.index == index]
        if not candidates:
            return None
        last = candidates[-1]
        if name and last.name and last.is_complete():
            if index is not None and name == last.name and last.repeats(arguments):
                return last
            return None  # the next call of a server that sends no ids
        return last

    def add(self, index: int | None, call_id: str, name: str, redactor: Redactor) -> _CallDraft:
        draft = _CallDraft(index, call_id, name, redactor)
        if any(draft_before.id == call_id for draft_before in self.all):
            # Two calls under one id could not be told apart by their results.
            draft.id = f"call_{uuid.uuid4().hex[:24]}"
        self.all.append(draft)
        return draft


def parse_arguments(raw: str) -> JsonObject | None:
    """Return a call's arguments, or None if the text does not mean one JSON object beyond doubt.

    Empty text and `null` mean no arguments.
    """
    return read_object(raw) if raw.strip() else {}


class ReplyBuilder:
    """An unfinished reply. Every method returns the events to pass on, in order.

    At a limit, which `limit_error` names, it stops growing: call `check` after passing the events on. Keys that the
    server quotes are redacted: text that may be the beginning of a key is held back.
    """

    def __init__(self, model: str, limits: ReplyLimits = REPLY_LIMITS, redactor: Redactor | None = None) -> None:
        self.redactor = redactor or Redactor()
        self.model = model
        self.usage = Usage()
        self._content = ReplyContent(limits)
        self._calls = _CallDrafts()
        self._tags = ThinkTagSplitter()
        self._text = RedactedStream(self.redactor)
        self._thinking = RedactedStream(self.redactor)
        self._split_text = SplitCharacters()
        self._split_thinking = SplitCharacters()
        self.limit_error = ""
        # The position of the call whose piece came last.
        self.last_call: int | None = None

    def check(self) -> None:
        """Check the limits. Raises `ReplyTooLong` once the reply has reached them."""
        if self.limit_error:
            raise ReplyTooLong(self.limit_error)

    @property
    def message(self) -> AssistantMessage:
        """The message so far."""
        return AssistantMessage(self._content.blocks, model=self.model)

    @property
    def is_empty(self) -> bool:
        """True without text, thinking or calls."""
        holds = self._tags.holds_text or self._text.holds_text or self._thinking.holds_text
        return not len(self._content) and not holds

    @property
    def has_calls(self) -> bool:
        return bool(self._calls.all)

    def start(self) -> ReplyStart:
        return ReplyStart(self.message)

    def text(self, delta: str) -> list[ModelEvent]:
        """Add text, which may contain `<think>` tags."""
        return self._within_limits(self._text_piece(delta))

    def thinking(self, delta: str, signature: str = "") -> list[ModelEvent]:
        """Add reasoning from a separate field. A signature that holds a key, or is endless, is left out."""
        return self._within_limits(self._thinking_piece(delta, self._untouched(signature)))

    def end_thought(self) -> list[ModelEvent]:
        """Return the thought that was streamed is complete: a next one is another block."""
        events = self._within_limits(self._flush_thinking())
        return [*events, *self._close_block()] if self._content.is_thinking else events

    def tool_call(self, index: int | None, call_id: str, name: str, arguments: str) -> list[ModelEvent]:
        """Add a piece of a tool call; `call_id` and `name` may be empty in all pieces but the first."""
        return self._within_limits(self._call_piece(index, self._redacted(call_id), self._redacted(name), arguments))

    def end(self, stop_reason: StopReason, signature: str = "") -> list[ModelEvent]:
        """Return the reply is complete; `signature` is that of its first thought, which may be without text."""
        if self._calls.all and stop_reason == "stop":
            stop_reason = "tool_use"
        events = self.close_blocks()
        if signature and self._untouched(signature):
            self._within_limits(self._sign(signature))
        return [*events, ReplyEnd(replace(self.message, stop_reason=stop_reason, usage=self.usage))]

    def cut(self, reason: str) -> list[ModelEvent]:
        """Return the reply was ended because it exceeded a limit; its content so far is kept."""
        events = self.close_blocks()
        content = self._content.end_cut(reason)
        return [*events, ReplyEnd(AssistantMessage(content, "length", None, self.model, self.usage, reason))]

    def abort(self) -> ReplyEnd:
        """Return the reply was stopped; its content so far is kept."""
        self.close_blocks()
        return ReplyEnd(replace(self.message, stop_reason="aborted", error=ABORTED, usage=self.usage))

    def close_blocks(self) -> list[ModelEvent]:
        """End every open block and parse the arguments of tool calls."""
        events = [*self._within_limits(self._flush()), *self._close_block()]
        for draft in self._calls.all:
            rest = draft.redacted.feed(draft.split.finish()) + draft.redacted.finish()
            events += self._within_limits(self._grow_call(draft, rest))
        for draft in self._calls.all:
            self._content.replace(draft.content_index, draft.call())
        partial = self._content.partial
        return [*events, *(BlockEnd("tool_call", draft.content_index, partial) for draft in self._calls.all)]

    def _sign(self, signature: str) -> Iterator[ModelEvent]:
        blocks = self._content.blocks
        index = next((at for at, block in enumerate(blocks) if isinstance(block, Thinking)), None)
        if index is None:
            self._content.add(Thinking("", signature))
        else:
            self._content.sign(index, signature)
        yield from ()

    def _within_limits(self, events: Iterator[ModelEvent]) -> list[ModelEvent]:
        """Return the events up to the limits; content beyond them has no event."""
        passed: list[ModelEvent] = []
        try:
            self.check()
            for event in events:
                passed.append(event)
        except ReplyTooLong as error:
            self.limit_error = str(error)
        return passed

    def _redacted(self, field: str) -> str:
        return self.redactor.hide(joined(field[:_MAX_FIELD_LENGTH]))

    def _untouched(self, signature: str) -> str:
        """Return a changed signature would be refused when it is sent back."""
        return signature if self._redacted(signature) == signature else ""

    def _text_piece(self, delta: str) -> Iterator[ModelEvent]:
        yield from self._flush_thinking()
        for part in _parts(delta):
            for kind, piece in self._tags.feed(self._text.feed(self._split_text.feed(part))):
                yield from self._grow(kind, piece)

    def _thinking_piece(self, delta: str, signature: str) -> Iterator[ModelEvent]:
        yield from self._flush_text()
        first = signature
        for part in _parts(delta):
            yield from self._grow("thinking", self._thinking.feed(self._split_thinking.feed(part)), first)
            first = ""

    def _call_piece(self, index: int | None, call_id: str, name: str, arguments: str) -> Iterator[ModelEvent]:
        draft = self._calls.find(index, call_id, name, arguments)
        if draft is None:
            yield from self._flush()
            yield from self._close_block()
            draft = self._calls.add(index, call_id, name, self.redactor)
            draft.content_index = self._content.begin_call(ToolCall(draft.id, name, {}))
            draft.arguments = self._content.arguments_of(draft.content_index)
            yield BlockStart("tool_call", draft.content_index, self._content.partial)
        elif name and not draft.name:
            draft.name = name
            self._content.replace(draft.content_index, ToolCall(draft.id, name, {}))
        self.last_call = self._calls.all.index(draft)
        for part in _parts(arguments):
            yield from self._grow_call(draft, draft.redacted.feed(draft.split.feed(part)))

    def _grow_call(self, draft: _CallDraft, arguments: str) -> Iterator[ModelEvent]:
        if arguments:
            self._content.grow_call(draft.content_index, arguments)
            yield BlockDelta("tool_call", draft.content_index, arguments, self._content.partial)

    def _flush(self) -> Iterator[ModelEvent]:
        """Yield the held text and thinking, which end here."""
        yield from self._flush_thinking()
        yield from self._flush_text()
        for kind, piece in self._tags.finish():
            yield from self._grow(kind, piece)

    def _flush_text(self) -> Iterator[ModelEvent]:
        if self._text.holds_text or self._split_text.holds_text:
            text = self._text.feed(self._split_text.finish()) + self._text.finish()
            for kind, piece in self._tags.feed(text):
                yield from self._grow(kind, piece)

    def _flush_thinking(self) -> Iterator[ModelEvent]:
        if self._thinking.holds_text or self._split_thinking.holds_text:
            rest = self._thinking.feed(self._split_thinking.finish()) + self._thinking.finish()
            yield from self._grow("thinking", rest)

    def _grow(self, kind: Literal["text", "thinking"], delta: str, signature: str = "") -> Iterator[ModelEvent]:
        if not delta and not signature:
            return
        content, is_thinking = self._content, kind == "thinking"
        if content.is_thinking is not is_thinking:
            yield from self._close_block()
            index = content.begin(is_thinking=is_thinking)
            yield BlockStart(kind, index, content.partial)
        content.grow(delta, signature)
        yield BlockDelta(kind, len(content) - 1, delta, content.partial)

    def _close_block(self) -> Iterator[ModelEvent]:
        kind: Literal["text", "thinking"] = "thinking" if self._content.is_thinking else "text"
        index = self._content.close()
        if index is not None:
            yield BlockEnd(kind, index, self._content.partial)


def _parts(text: str) -> Iterator[str]:
    """Return the text in parts, at least one."""
    return (text[at : at + _PART] for at in range(0, max(1, len(text)), _PART))
