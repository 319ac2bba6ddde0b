"""Decodes a reply that is one call as JSON into events with that call, or with the text of an answer."""

from dataclasses import replace

from errand.engine.core.json_input.lenient_json import read_object
from errand.engine.core.messages import TASK_COMPLETE, UNREADABLE_CALL, Thinking
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
)
from errand.engine.models.json_calls.request import ANSWER
from errand.engine.models.reply.builder import ReplyBuilder
from errand.engine.models.reply.content import REPLY_LIMITS, ReplyLimits, encode

_EMPTY = "The model sent an empty reply: no text and no tool call. Try again, or choose another model."


class JsonCallReply:
    """Decodes one reply: `take` gives the events to pass on for each event of the model. At most one call.

    `request` is the one before its tools were written into the prompt.
    """

    def __init__(self, request: ModelRequest, limits: ReplyLimits = REPLY_LIMITS) -> None:
        self._limits = limits
        self._model = request.model
        self._can_complete = any(tool.name == TASK_COMPLETE for tool in request.tools)
        self._begin()

    def take(self, event: ModelEvent) -> list[ModelEvent]:
        match event:
            case ReplyStart():
                self._begin()
                return [self._assembly.start()]
            case BlockDelta(kind="text"):
                self._written.append(event.delta)
                return []
            case BlockDelta(kind="thinking"):
                return self._assembly.thinking(event.delta)
            case BlockEnd(kind="thinking"):
                block = event.partial.content[event.content_index]
                return self._assembly.thinking("", block.signature) if isinstance(block, Thinking) else []
            case BlockStart() | BlockDelta() | BlockEnd():
                return []
            case Retry() | ModelNotice() | PromptProgress():
                return [replace(event, partial=self._assembly.message)]
            case ReplyEnd():
                return self._end(event)

    def cut(self) -> list[ModelEvent]:
        """Return the end of the reply once the decoded content reaches its limits, else nothing."""
        return self._assembly.cut(self._assembly.limit_error) if self._assembly.limit_error else []

    def _begin(self) -> None:
        self._assembly = ReplyBuilder(self._model, self._limits)
        self._written: list[str] = []

    def _end(self, event: ReplyEnd) -> list[ModelEvent]:
        message, assembly = event.message, self._assembly
        written = "".join(self._written).strip()
        if message.stop_reason in ("error", "aborted"):
            assembly.close_blocks()
            return [replace(event, message=replace(message, content=assembly.message.content, model=self._model))]
        assembly.usage = message.usage
        if message.cut:
            return assembly.cut(message.cut)
        events = self._call(written)
        if message.stop_reason == "stop" and assembly.is_empty:
            failed = replace(message, content=(), stop_reason="error", error=_EMPTY, model=self._model)
            return [*events, replace(event, message=failed)]
        *blocks, last = assembly.end("stop" if message.stop_reason == "tool_use" else message.stop_reason)
        assert isinstance(last, ReplyEnd), "an assembly ends with its message"
        return [*events, *blocks, replace(event, message=last.message)]

    def _call(self, written: str) -> list[ModelEvent]:
        """Return the events of the call; of its text, for an answer or for what is no call."""
        call = read_object(written)
        name = call.get("name") if call is not None else None
        if call is None or not isinstance(name, str):
            is_broken_call = written.startswith("{")
            return self._add_call(UNREADABLE_CALL, written) if is_broken_call else self._assembly.text(written)
        arguments = call.get("arguments", {})
        if name != ANSWER:
            return self._add_call(name, encode(arguments).decode())
        text = arguments.get("text") if isinstance(arguments, dict) else arguments
        text = text if isinstance(text, str) else encode(text).decode()
        events = self._assembly.text(text)
        return (
            [*events, *self._add_call(TASK_COMPLETE, encode({"summary": text}).decode())]
            if self._can_complete
            else events
        )

    def _add_call(self, name: str, raw: str) -> list[ModelEvent]:
        return self._assembly.tool_call(len(self._assembly.message.content), "", name, raw)
