"""The scripted model of the conformance scenarios: one prepared reply for each model call."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Literal

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import (
    AssistantContent,
    AssistantMessage,
    ModelMessage,
    StopReason,
    Text,
    Thinking,
    ToolCall,
)
from errand.engine.models.base import BlockDelta, BlockEnd, BlockStart, ModelEvent, ModelRequest, ReplyEnd, ReplyStart
from tests.conformance.actions import let_others_run
from tests.conformance.scenario import Action, BlockSpec, CallSpec, Chunk, ReplySpec, compact

Act = Callable[[Action], Awaitable[None]]


class ScriptedFailure(Exception):
    """Raised by `throw` and `raise` of a scenario."""


class ScriptedProvider:
    """`stream` is a stream function; `calls` has the messages of each model call."""

    def __init__(self, replies: list[ReplySpec], act: Act) -> None:
        self.calls: list[tuple[ModelMessage, ...]] = []
        self._replies = replies
        self._act = act

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        number = len(self.calls)
        self.calls.append(request.messages)
        spec = self._replies[number] if number < len(self._replies) else ReplySpec(stop="error", error="no reply left")
        if spec.throw is not None:
            raise ScriptedFailure(spec.throw)
        # The recorded provider does not wait for its events to be consumed: it acts before they are handled.
        sent: asyncio.Queue[ModelEvent] = asyncio.Queue()
        sending = asyncio.create_task(_send(_Reply(spec, cancel, self._act), sent))
        try:
            async for event in _taken(sent):
                # A final event alone means a provider that sends no start.
                if not spec.no_start or isinstance(event, ReplyEnd):
                    yield event
        finally:
            sending.cancel()
            await asyncio.wait([sending])


async def _send(reply: "_Reply", sent: asyncio.Queue[ModelEvent]) -> None:
    async for event in reply.events():
        sent.put_nowait(event)


async def _taken(sent: asyncio.Queue[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
    ended = False
    while not ended:
        event = await sent.get()
        ended = isinstance(event, ReplyEnd)
        yield event


class _Aborted(Exception):
    pass


class _Reply:
    """An unfinished reply; `_content` is its content so far."""

    def __init__(self, spec: ReplySpec, cancel: CancelSignal, act: Act) -> None:
        self._spec = spec
        self._cancel = cancel
        self._act = act
        self._content: list[AssistantContent] = []

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        try:
            await self._pause()
            yield ReplyStart(self._message())
            for block in self._spec.blocks:
                async for event in self._block(block):
                    yield event
            await self._pause()
        except _Aborted:
            yield ReplyEnd(self._message("aborted", "Request was aborted"))
        else:
            yield ReplyEnd(self._message(self._stop(), self._spec.error))

    async def _block(self, block: BlockSpec) -> AsyncGenerator[ModelEvent, None]:
        events: AsyncGenerator[ModelEvent, None] | None = None
        if block.text is not None:
            events = self._growing("text", block.text)
        elif block.thinking is not None:
            events = self._growing("thinking", block.thinking)
        if events is not None:
            async for event in events:
                yield event
        elif block.tool_call is not None:
            for event in self._call(block.tool_call):
                yield event
        elif block.action is not None:
            await self._do(block.action)

    async def _growing(
        self, kind: Literal["text", "thinking"], chunks: list[Chunk]
    ) -> AsyncGenerator[ModelEvent, None]:
        block = Text if kind == "text" else Thinking
        index, text = len(self._content), ""
        self._content.append(block(text))
        yield BlockStart(kind, index, self._message())
        for chunk in chunks:
            if isinstance(chunk, Action):
                await self._do(chunk)
                continue
            await self._pause()
            text += chunk
            self._content[index] = block(text)
            yield BlockDelta(kind, index, chunk, self._message())
        yield BlockEnd(kind, index, self._message())

    def _call(self, call: CallSpec) -> Iterable[ModelEvent]:
        index = len(self._content)
        self._content.append(ToolCall(call.id, call.name, call.args))
        yield BlockStart("tool_call", index, self._message())
        yield BlockDelta("tool_call", index, compact(call.args), self._message())
        yield BlockEnd("tool_call", index, self._message())

    async def _do(self, action: Action) -> None:
        await self._act(action)
        await self._pause()

    async def _pause(self) -> None:
        await let_others_run()
        if self._cancel.is_set:
            raise _Aborted

    def _stop(self) -> StopReason:
        if self._spec.stop is not None:
            return "tool_use" if self._spec.stop == "toolUse" else self._spec.stop
        return "tool_use" if self._message().tool_calls else "stop"

    def _message(self, stop: StopReason = "stop", error: str | None = None) -> AssistantMessage:
        return AssistantMessage(tuple(self._content), stop, error)
