"""Asking models in tests: a request, and its events or its final message."""

from contextlib import aclosing

from app.engine.cancel import CancelSignal
from app.engine.messages import AssistantMessage, user_text
from app.engine.models.base import ChatModel, ModelEvent, ModelRequest, ReplyEnd, ToolDefinition

SHELL = ToolDefinition(
    "shell", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}, "required": []}
)


def request_for(model: str, text: str = "hello") -> ModelRequest:
    return ModelRequest(model, "You are helpful.", (user_text(text),), (SHELL,))


async def collect(model: ChatModel, request: ModelRequest, cancel: CancelSignal | None = None) -> list[ModelEvent]:
    async with aclosing(model.stream(request, cancel or CancelSignal())) as events:
        return [event async for event in events]


async def final(model: ChatModel, request: ModelRequest, cancel: CancelSignal | None = None) -> AssistantMessage:
    last = (await collect(model, request, cancel))[-1]
    assert isinstance(last, ReplyEnd)
    return last.message
