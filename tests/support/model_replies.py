"""Model calls in tests: a request, and its events or its final message."""

from contextlib import aclosing

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, user_text
from errand.engine.models.base import ChatModel, ModelEvent, ModelRequest, ReplyEnd, ToolDefinition
from errand.protocol.blocks import ToolResultBlock
from errand.protocol.conversations import Node
from tests.support.model_server import Call, ModelServer, Reply

SHELL = ToolDefinition(
    "shell", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}, "required": []}
)

# A reply may hold no text that is the same again and again.
LONG_TEXT = "".join(f"{number:06}" for number in range(20_000))

DONE = Reply(calls=(Call("task_complete", {"summary": "all done"}),))


def request_for(model: str, text: str = "hello") -> ModelRequest:
    return ModelRequest(model, "You are helpful.", (user_text(text),), (SHELL,))


async def collect(model: ChatModel, request: ModelRequest, cancel: CancelSignal | None = None) -> list[ModelEvent]:
    async with aclosing(model.stream(request, cancel or CancelSignal())) as events:
        return [event async for event in events]


async def final(model: ChatModel, request: ModelRequest, cancel: CancelSignal | None = None) -> AssistantMessage:
    last = (await collect(model, request, cancel))[-1]
    assert isinstance(last, ReplyEnd)
    return last.message


def shell(command: str) -> Reply:
    return Reply(text="Running.", calls=(Call("shell", {"command": command}),))


def results(nodes: list[Node]) -> list[ToolResultBlock]:
    return [block for node in nodes for block in node.blocks if isinstance(block, ToolResultBlock)]


def speak_to(monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> None:
    """Make engines that start from now on use this server as OpenAI, with a key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
