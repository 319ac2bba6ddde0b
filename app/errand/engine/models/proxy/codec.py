"""Encodes reply events for a proxy's client and decodes them there; the message so far is rebuilt."""

from datetime import UTC
from typing import assert_never

from errand.engine.core.input_limits import dollars, token_count
from errand.engine.core.messages import AssistantContent, AssistantMessage, Text, Thinking, ToolCall, Usage
from errand.engine.models.base import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    ModelEvent,
    ModelNotice,
    PromptProgress,
    ReplyEnd,
    ReplyStart,
    Retry,
    RetryLater,
)
from errand.engine.models.failures import FailureKind
from errand.engine.models.proxy.wire import (
    AttemptRetried,
    BlockEnded,
    BlockGrew,
    BlockKind,
    BlockStarted,
    NoticeSent,
    ReplyEnded,
    ReplyStarted,
    SentAssistantContent,
    SentLater,
    SentUsage,
    SharedEvent,
    content_from_wire,
    content_to_wire,
)
from errand.engine.models.recovery.table import allows
from errand.engine.models.reply.builder import parse_arguments
from errand.engine.models.reply.content import REPLY_LIMITS, ReplyContent, ReplyLimits
from errand.protocol.notices import Remark
from errand.text.notice_text import data_text
from errand.text.redaction import redact


class EventOrderError(ValueError):
    """An event that is invalid after the previous ones."""


class ProxyDecoder:
    """The reply so far. `take` returns the event with the message so far; raises `EventOrderError`, `ReplyTooLong`."""

    def __init__(self, model: str, limits: ReplyLimits = REPLY_LIMITS) -> None:
        self._model = model
        self._limits = limits
        self._content = ReplyContent(limits)

    @property
    def message(self) -> AssistantMessage:
        return AssistantMessage(self._content.blocks, model=self._model)

    @property
    def is_empty(self) -> bool:
        return not len(self._content)

    def content(self, cut: str) -> tuple[AssistantContent, ...]:
        """Return the blocks at the end of the reply, which may be cut off."""
        return self._content.end_cut(cut) if cut else self._content.blocks

    def cut(self, reason: str) -> ReplyEnd:
        """End a reply that exceeds the limits; its content so far is kept."""
        return ReplyEnd(AssistantMessage(self.content(reason), "length", None, self._model, cut=reason))

    def take(self, event: SharedEvent) -> ModelEvent:
        match event:
            case ReplyStarted():
                self._content = ReplyContent(self._limits)
                return ReplyStart(self.message)
            case AttemptRetried():
                before = self.message
                self._content = ReplyContent(self._limits)
                return Retry(event.attempt, event.max_attempts, event.delay_s, event.reason, before)
            case NoticeSent():
                return ModelNotice(Remark(text=event.text), self.message)
            case BlockStarted() | BlockGrew() | BlockEnded():
                return self._take_block(event)
            case ReplyEnded():
                return self._end(event)
            case _:
                assert_never(event)

    def _take_block(self, event: BlockStarted | BlockGrew | BlockEnded) -> ModelEvent:
        content = self._content
        match event:
            case BlockStarted():
                self._start(event)
                return BlockStart(event.kind, event.index, content.partial)
            case BlockGrew():
                kind = self._grow(event)
                return BlockDelta(kind, event.index, event.delta, content.partial)
            case BlockEnded():
                kind = self._finish(event)
                return BlockEnd(kind, event.index, content.partial)
            case _:
                assert_never(event)

    def _start(self, event: BlockStarted) -> None:
        if event.index != len(self._content):
            raise EventOrderError(f"block {event.index} where block {len(self._content)} comes next")
        if event.kind == "tool_call":
            self._content.begin_call(ToolCall(event.id, event.name, {}))
        else:
            self._content.begin(is_thinking=event.kind == "thinking")

    def _grow(self, event: BlockGrew) -> BlockKind:
        kind = self._kind_at(event.index)
        if kind == "tool_call":
            self._content.grow_call(event.index, event.delta)
        elif self._content.is_thinking is None or event.index != len(self._content) - 1:
            raise EventOrderError(f"more of block {event.index}, which has ended")
        else:
            self._content.grow(event.delta)
        return kind

    def _finish(self, event: BlockEnded) -> BlockKind:
        kind = self._kind_at(event.index)
        if event.index == len(self._content) - 1:
            self._content.close()
        match self._content.at(event.index):
            case Thinking():
                self._content.sign(event.index, event.signature)
            case ToolCall() as call:
                raw = self._content.arguments_of(event.index).joined
                self._content.replace(event.index, _call(call.id, event.name, raw))
            case _:
                pass
        return kind

    def _kind_at(self, index: int) -> BlockKind:
        match self._content.at(index):
            case Text():
                return "text"
            case Thinking():
                return "thinking"
            case ToolCall():
                return "tool_call"
            case None:
                raise EventOrderError(f"block {index} has not begun")

    def _end(self, event: ReplyEnded) -> ReplyEnd:
        content = self.content(event.cut) if event.content is None else _complete_content(event.content, self._limits)
        later = _retry_later(event.later) if event.later is not None else None
        failure = _failure(event) if event.stop_reason == "error" else None
        message = AssistantMessage(content, event.stop_reason, event.error, event.model, _usage(event.usage), event.cut)
        return ReplyEnd(message, later, failure)


def _complete_content(blocks: tuple[SentAssistantContent, ...], limits: ReplyLimits) -> tuple[AssistantContent, ...]:
    """Return the complete content of an end event, within the same limits."""
    content = ReplyContent(limits)
    for block in content_from_wire(blocks):
        content.add(block)
    return content.blocks


def _failure(end: ReplyEnded) -> FailureKind:
    """Return the failure kind, as far as the wire has it. The other side has already retried and adapted it."""
    if end.is_too_long:
        return FailureKind.TOO_LONG
    if not end.passes_elsewhere:
        return FailureKind.REJECTED
    return FailureKind.UNAVAILABLE if end.later is None else FailureKind.RATE_LIMITED


def _retry_later(sent: SentLater) -> RetryLater:
    """Return a time without a zone is UTC."""
    at = sent.at if sent.at is None or sent.at.tzinfo is not None else sent.at.replace(tzinfo=UTC)
    return RetryLater(sent.reason, at)


def _usage(sent: SentUsage) -> Usage:
    return Usage(
        token_count(sent.input_tokens),
        token_count(sent.output_tokens),
        token_count(sent.cache_read_tokens),
        token_count(sent.cache_write_tokens),
        dollars(sent.cost_usd),
        sent.estimated,
    )


def _call(call_id: str, name: str, raw: str) -> ToolCall:
    arguments = parse_arguments(raw)
    return ToolCall(call_id, name, {}, invalid=raw) if arguments is None else ToolCall(call_id, name, arguments)


class ProxyEncoder:
    """Encodes one reply. Mirrors the client's state, so that the end carries content only where it differs."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._receiver = ProxyDecoder(model)

    def encode(self, event: ModelEvent) -> SharedEvent:
        shared = self._encode(event)
        if not isinstance(shared, ReplyEnded):
            self._receiver.take(shared)
        return shared

    def _encode(self, event: ModelEvent) -> SharedEvent:
        match event:
            case ReplyStart():
                return ReplyStarted()
            case BlockStart():
                return _started(event)
            case BlockDelta():
                return BlockGrew(index=event.content_index, delta=event.delta)
            case BlockEnd():
                return _ended(event)
            case Retry():
                return AttemptRetried(
                    attempt=event.attempt, max_attempts=event.max_attempts, delay_s=event.delay_s, reason=event.reason
                )
            case ModelNotice(data=data):
                return NoticeSent(text=data_text(data))
            case ReplyEnd():
                return self._end(event)
            case PromptProgress():
                raise AssertionError("the server that shares models asks for none")
            case _:
                assert_never(event)

    def _end(self, event: ReplyEnd) -> ReplyEnded:
        message, used, later = event.message, event.message.usage, event.retry_later
        same = message.content == self._receiver.content(message.cut)
        return ReplyEnded(
            model=message.model or self._model,
            stop_reason=message.stop_reason,
            error=None if message.error is None else redact(message.error),
            cut=message.cut,
            usage=SentUsage(
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cache_read_tokens=used.cache_read_tokens,
                cache_write_tokens=used.cache_write_tokens,
                cost_usd=used.cost_usd,
                estimated=used.estimated,
            ),
            later=None if later is None else SentLater(reason=later.reason, at=later.at),
            is_too_long=event.failure is FailureKind.TOO_LONG,
            passes_elsewhere=allows("other_model", event.failure),
            content=None if same else content_to_wire(message.content),
        )


def _started(event: BlockStart) -> BlockStarted:
    block = event.partial.content[event.content_index]
    if isinstance(block, ToolCall):
        return BlockStarted(kind=event.kind, index=event.content_index, id=block.id, name=block.name)
    return BlockStarted(kind=event.kind, index=event.content_index)


def _ended(event: BlockEnd) -> BlockEnded:
    block = event.partial.content[event.content_index]
    return BlockEnded(
        index=event.content_index,
        signature=block.signature if isinstance(block, Thinking) else "",
        name=block.name if isinstance(block, ToolCall) else "",
    )
