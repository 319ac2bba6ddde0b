"""A reply built again from the events of a proxy, which carry no message so far. Transport is others'."""

from typing import assert_never

from app.engine.messages import AssistantContent, AssistantMessage, Text, Thinking, ToolCall, Usage
from app.engine.models.assembly import parse_arguments
from app.engine.models.base import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    Later,
    ModelEvent,
    Remark,
    ReplyEnd,
    ReplyStart,
    Retry,
)
from app.engine.models.proxy_wire import (
    BlockEnded,
    BlockGrew,
    BlockKind,
    BlockStarted,
    Ended,
    Remarked,
    Retried,
    SharedEvent,
    Started,
    content_from_wire,
)


class BadOrder(ValueError):
    """An event that does not follow from the ones before it."""


class Rebuilt:
    """The reply so far. `take` gives the event with the message so far; it raises `BadOrder`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._content: list[AssistantContent] = []
        self._raw: dict[int, list[str]] = {}

    @property
    def partial(self) -> AssistantMessage:
        return AssistantMessage(tuple(self._content), model=self._model)

    @property
    def is_nothing(self) -> bool:
        return not self._content

    def take(self, event: SharedEvent) -> ModelEvent:
        match event:
            case Started():
                self._forget()
                return ReplyStart(self.partial)
            case Retried():
                before = self.partial
                self._forget()
                return Retry(event.attempt, event.max_attempts, event.delay_s, event.reason, before)
            case Remarked():
                return Remark(event.text, self.partial)
            case BlockStarted() | BlockGrew() | BlockEnded():
                return self._take_block(event)
            case Ended():
                return self._end(event)
            case _:
                assert_never(event)

    def _take_block(self, event: BlockStarted | BlockGrew | BlockEnded) -> ModelEvent:
        match event:
            case BlockStarted():
                self._start(event)
                return BlockStart(event.kind, event.index, self.partial)
            case BlockGrew():
                block = self._grown(event)
                return BlockDelta(_kind(block), event.index, event.delta, self.partial)
            case BlockEnded():
                block = self._ended(event)
                return BlockEnd(_kind(block), event.index, self.partial)
            case _:
                assert_never(event)

    def _forget(self) -> None:
        self._content.clear()
        self._raw.clear()

    def _start(self, event: BlockStarted) -> None:
        if event.index != len(self._content):
            raise BadOrder(f"block {event.index} where block {len(self._content)} comes next")
        match event.kind:
            case "text":
                self._content.append(Text(""))
            case "thinking":
                self._content.append(Thinking(""))
            case "tool_call":
                self._raw[event.index] = []
                self._content.append(ToolCall(event.id, event.name, {}))
            case _:
                assert_never(event.kind)

    def _grown(self, event: BlockGrew) -> AssistantContent:
        block = self._at(event.index)
        match block:
            case Text():
                self._content[event.index] = Text(block.text + event.delta)
            case Thinking():
                self._content[event.index] = Thinking(block.text + event.delta, block.signature)
            case ToolCall():
                self._raw[event.index].append(event.delta)
            case _:
                assert_never(block)
        return block

    def _ended(self, event: BlockEnded) -> AssistantContent:
        block = self._at(event.index)
        match block:
            case Text():
                pass
            case Thinking():
                self._content[event.index] = Thinking(block.text, event.signature)
            case ToolCall():
                self._content[event.index] = _call(block.id, event.name, "".join(self._raw[event.index]))
            case _:
                assert_never(block)
        return block

    def _at(self, index: int) -> AssistantContent:
        if not 0 <= index < len(self._content):
            raise BadOrder(f"block {index} has not begun")
        return self._content[index]

    def _end(self, event: Ended) -> ReplyEnd:
        content = self.partial.content if event.content is None else content_from_wire(event.content)
        used = event.usage
        usage = Usage(
            used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens, used.cost_usd
        )
        later = Later(event.later.reason, event.later.at) if event.later is not None else None
        message = AssistantMessage(content, event.stop_reason, event.error, event.model, usage)
        return ReplyEnd(message, later, event.is_too_long, passes_elsewhere=event.passes_elsewhere)


def _call(call_id: str, name: str, raw: str) -> ToolCall:
    arguments = parse_arguments(raw)
    return ToolCall(call_id, name, {}, invalid=raw) if arguments is None else ToolCall(call_id, name, arguments)


def _kind(block: AssistantContent) -> BlockKind:
    match block:
        case Text():
            return "text"
        case Thinking():
            return "thinking"
        case ToolCall():
            return "tool_call"
        case _:
            assert_never(block)
