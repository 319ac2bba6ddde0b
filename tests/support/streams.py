"""Stream functions for tests of the loop: written events, a reply for each call, or one that waits to be cancelled."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from app.engine.cancel import CancelSignal
from app.engine.messages import AssistantMessage, Text, ToolCall
from app.engine.models.base import BlockDelta, ModelEvent, ModelRequest, ReplyEnd, ReplyStart
from app.protocol.json import JsonObject


def reply(text: str) -> tuple[ModelEvent, ...]:
    partial = AssistantMessage((Text(text),))
    return (ReplyStart(AssistantMessage()), BlockDelta("text", 0, text, partial), ReplyEnd(partial))


def calling(name: str, arguments: JsonObject | None = None, invalid: str | None = None) -> tuple[ModelEvent, ...]:
    message = AssistantMessage((ToolCall("c1", name, arguments or {}, invalid),), "tool_use")
    return (ReplyStart(AssistantMessage()), ReplyEnd(message))


class WrittenStream:
    """Gives the events written for each call in turn; `requests` holds what was asked. Raises an exception it meets."""

    def __init__(self, *replies: Sequence[ModelEvent | Exception]) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = replies

    async def __call__(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        for event in self._replies[len(self.requests) - 1]:
            if isinstance(event, Exception):
                raise event
            yield event


class OpenStream:
    """Starts a reply and then waits for the cancel signal. `closed` is set when the generator has ended."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.closed = asyncio.Event()
        self.cancel: CancelSignal | None = None

    async def __call__(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        self.cancel = cancel
        try:
            yield ReplyStart(AssistantMessage((Text("so far"),)))
            self.started.set()
            await cancel.wait()
            yield ReplyEnd(AssistantMessage((Text("so far"),), "aborted", "Request was aborted"))
        finally:
            self.closed.set()
