"""Tools as text: the request for a model without tool calls, and its reply as events with a call."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from errand.engine.core.messages import TASK_COMPLETE, Text, Thinking, ToolCall
from errand.engine.models.base import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    PromptProgress,
    ReplyEnd,
    ReplyStart,
    Retry,
    ToolDefinition,
)
from errand.engine.models.catalog.providers import REACT
from errand.engine.models.react.history import system_prompt, to_text_history
from errand.engine.models.react.parser import (
    HiddenMarkup,
    InventedResult,
    ParsedCall,
    ParsedPiece,
    ReActParser,
    ShownText,
)
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import REPLY_LIMITS, ReplyLimits, encode

_EMPTY = "The model sent an empty reply: no text and no tool call. Try again, or choose another model."


class CallTextParser(Protocol):
    """Splits the text of one reply into what is shown and what is called. `has_answer`: the work ends with it."""

    has_answer: bool

    def feed(self, delta: str) -> list[ParsedPiece]: ...

    def finish(self) -> list[ParsedPiece]: ...


class TextToolsReply:
    """Decodes one reply: `take` gives the events to pass on for each event of the model. At most one call.

    `make_parser` is for the form of calls that the request asks for; `request` is as it was before tools became text.
    """

    def __init__(
        self,
        request: ModelRequest,
        limits: ReplyLimits = REPLY_LIMITS,
        make_parser: Callable[[], CallTextParser] = ReActParser,
    ) -> None:
        self._limits = limits
        self._make_parser = make_parser
        self._model = request.model
        self._has_tools = bool(request.tools)
        self._is_done_by_answer = any(map(takes_summary, request.tools))
        self._begin()

    def take(self, event: ModelEvent) -> list[ModelEvent]:
        match event:
            case ReplyStart():
                self._begin()
                return [self._assembly.start()]
            case BlockDelta(kind="text") if not self._has_tools:
                return self._assembly.text(event.delta)
            case BlockDelta(kind="text"):
                return self._show(self._pieces.feed(event.delta))
            case BlockDelta(kind="thinking"):
                return self._assembly.thinking(event.delta)
            case BlockEnd(kind="thinking"):
                return self._signature(event)
            case BlockEnd(kind="tool_call"):
                return self._native_call(event)
            case BlockStart() | BlockDelta() | BlockEnd():
                return []
            case Retry() | ModelNotice() | PromptProgress():
                return [replace(event, partial=self._assembly.message)]
            case ReplyEnd():
                return self._end(event)

    def _begin(self) -> None:
        self._assembly = ReplyBuilder(self._model, self._limits)
        self._pieces = self._make_parser()

    def _show(self, pieces: list[ParsedPiece]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for piece in pieces:
            match piece:
                case ShownText(text):
                    events += self._assembly.text(text)
                case ParsedCall(call=call):
                    # Unreadable arguments are passed on: the builder marks the call as invalid.
                    events += self._assembly.tool_call(self._next_index, "", call.name, call.raw)
                case InventedResult(text):
                    events += self._assembly.thinking(text)
                case HiddenMarkup():
                    pass
        return events

    def _signature(self, event: BlockEnd) -> list[ModelEvent]:
        block = event.partial.content[event.content_index]
        return self._assembly.thinking("", block.signature) if isinstance(block, Thinking) else []

    def _native_call(self, event: BlockEnd) -> list[ModelEvent]:
        """Return a tool call that the server parsed from the reply, although the request has no tools."""
        call = event.partial.content[event.content_index]
        assert isinstance(call, ToolCall), "the block that ends is the one at its index"
        raw = call.invalid if call.invalid is not None else encode(call.arguments).decode()
        return self._assembly.tool_call(self._next_index, call.id, call.name, raw)

    def _end(self, event: ReplyEnd) -> list[ModelEvent]:
        message, assembly = event.message, self._assembly
        events = self._show(self._pieces.finish())
        if message.stop_reason == "stop" and assembly.is_empty:
            message = replace(message, stop_reason="error", error=_EMPTY)
        if message.stop_reason in ("error", "aborted"):
            assembly.close_blocks()
            failed = replace(message, content=assembly.message.content, model=self._model)
            return [*events, replace(event, message=failed)]
        assembly.usage = message.usage
        if cut := message.cut or assembly.limit_error:
            return [*events, *assembly.cut(cut)]
        if self._is_done_by_answer and self._pieces.has_answer and not assembly.has_calls:
            text = "".join(block.text for block in assembly.message.content if isinstance(block, Text))
            events += assembly.tool_call(self._next_index, "", TASK_COMPLETE, encode({"summary": text}).decode())
        *blocks, last = assembly.end("stop" if message.stop_reason == "tool_use" else message.stop_reason)
        assert isinstance(last, ReplyEnd), "an assembly ends with its message"
        return [*events, *blocks, replace(event, message=last.message)]

    def cut(self) -> list[ModelEvent]:
        """Return the end of the reply once the decoded content reaches its limits, else nothing."""
        return self._assembly.cut(self._assembly.limit_error) if self._assembly.limit_error else []

    @property
    def _next_index(self) -> int:
        return len(self._assembly.message.content)


def takes_summary(tool: ToolDefinition) -> bool:
    """Return True if a final answer counts as a call of this tool."""
    return tool.name == TASK_COMPLETE and tool.parameters.get("required") == ["summary"]


def with_text_tools(request: ModelRequest) -> ModelRequest:
    """Return the request with its tools in the prompt and its history as text; the model's id is without `react/`."""
    return replace(
        request,
        model=request.model.removeprefix(REACT),
        system_prompt=system_prompt(request.system_prompt, request.tools),
        messages=to_text_history(request.messages),
        tools=(),
    )
