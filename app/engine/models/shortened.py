"""The events of a reply as a proxy's client gets them: without the message so far, which it builds again itself."""

from typing import assert_never

from app.engine.messages import Thinking, ToolCall
from app.engine.models.base import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    ModelEvent,
    Remark,
    ReplyEnd,
    ReplyStart,
    Retry,
)
from app.engine.models.proxy_wire import (
    BlockEnded,
    BlockGrew,
    BlockStarted,
    Ended,
    Remarked,
    Retried,
    SentLater,
    SentUsage,
    SharedEvent,
    Started,
    content_to_wire,
)
from app.engine.models.rebuilt import Rebuilt
from app.redaction import redact


class Shortened:
    """One reply on its way. It follows what the client will have, so that the end says only what is different."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._there = Rebuilt(model)

    def of(self, event: ModelEvent) -> SharedEvent:
        shared = self._of(event)
        if not isinstance(shared, Ended):
            self._there.take(shared)
        return shared

    def _of(self, event: ModelEvent) -> SharedEvent:
        match event:
            case ReplyStart():
                return Started()
            case BlockStart():
                return _started(event)
            case BlockDelta():
                return BlockGrew(index=event.content_index, delta=event.delta)
            case BlockEnd():
                return _ended(event)
            case Retry():
                return Retried(
                    attempt=event.attempt, max_attempts=event.max_attempts, delay_s=event.delay_s, reason=event.reason
                )
            case Remark():
                return Remarked(text=event.text)
            case ReplyEnd():
                return self._end(event)
            case _:
                assert_never(event)

    def _end(self, event: ReplyEnd) -> Ended:
        message, used = event.message, event.message.usage
        same = message.content == self._there.content(message.cut)
        return Ended(
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
            later=None if event.later is None else SentLater(reason=event.later.reason, at=event.later.at),
            is_too_long=event.is_too_long,
            passes_elsewhere=event.passes_elsewhere,
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
