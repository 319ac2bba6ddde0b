"""Anthropic through the library: signed reasoning is sent back, prompts are cached, cached tokens are counted."""

import gc
from collections.abc import AsyncGenerator

import aiohttp
import pytest

from app.engine.core.messages import Text, Thinking, ToolCall, ToolResultMessage
from app.engine.models.base import ChatModel, ModelOptions, ModelRequest
from app.engine.models.catalog.providers import find
from app.engine.models.endpoint import ModelEndpoint
from app.engine.models.litellm.library_thread import LibraryThread
from app.engine.models.litellm.model import LiteLLMModel
from app.engine.models.recovery.driver import RecoveringModel
from app.engine.models.recovery.source import ModelSource
from tests.engine.models.providers import ONCE, stored_key
from tests.support.model_replies import final, request_for
from tests.support.model_server import ModelServer
from tests.support.provider_servers import AnthropicServer

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning")
NAME = "anthropic/claude-sonnet-4-5"


@pytest.fixture
async def server() -> AsyncGenerator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def model(server: AnthropicServer) -> AsyncGenerator[ChatModel]:
    row = find("anthropic")
    assert row is not None
    thread = LibraryThread()
    yield RecoveringModel(ModelSource(LiteLLMModel(ModelEndpoint(row, server.url, stored_key), thread)), ONCE)
    await thread.close()


def thinking_request() -> ModelRequest:
    plain = request_for(NAME)
    return ModelRequest(NAME, plain.system_prompt, plain.messages, plain.tools, ModelOptions(thinking_level="low"))


async def test_signed_reply_is_complete_and_has_its_cost(model: ChatModel) -> None:
    message = await final(model, thinking_request())
    assert message.content == (
        Thinking("hm", "PROOF=="),
        Text("Listing."),
        ToolCall("toolu_1", "shell", {"command": "ls"}),
    )
    usage = message.usage
    assert (usage.input_tokens, usage.output_tokens) == (105, 20)
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (90, 5)
    assert usage.cost_usd == pytest.approx((10 * 3 + 90 * 0.3 + 5 * 3.75 + 20 * 15) / 1e6)


async def test_thinking_budget_does_not_reduce_the_tokens_for_the_answer(
    server: AnthropicServer, model: ChatModel
) -> None:
    await final(model, thinking_request())
    body = server.bodies[0]
    assert (body["max_tokens"], body["thinking"]) == (64_000, {"type": "enabled", "budget_tokens": 1024})


async def test_closing_leaves_no_connection_of_the_library_open(server: AnthropicServer) -> None:
    row = find("anthropic")
    assert row is not None
    for _ in range(2):  # the library is used again after it was closed
        thread = LibraryThread()
        provider = LiteLLMModel(ModelEndpoint(row, server.url, stored_key), thread)
        model = RecoveringModel(ModelSource(provider), ONCE)
        assert (await final(model, thinking_request())).error is None
        await thread.close()
    sessions = [thing for thing in gc.get_objects() if isinstance(thing, aiohttp.ClientSession)]
    assert [session for session in sessions if not session.closed] == []


async def test_next_turn_returns_the_signature_and_marks_the_prompt_for_caching(
    server: AnthropicServer, model: ChatModel
) -> None:
    first = thinking_request()
    reply = await final(model, first)
    result = ToolResultMessage("toolu_1", "shell", (Text("a b"),))
    await final(model, ModelRequest(NAME, "Be brief.", (*first.messages, reply, result), first.tools, first.options))
    body = server.bodies[1]
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    messages, tools = body["messages"], body["tools"]
    assert isinstance(messages, list)
    assert isinstance(tools, list)
    assert [tool.get("cache_control") for tool in tools if isinstance(tool, dict)] == [mark]
    assert messages[0] == {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": mark}]}
    assert messages[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "PROOF=="},
                {"type": "text", "text": "Listing."},
                {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a b", "cache_control": mark},
            ],
        },
    ]


async def test_refusal_is_quoted_as_text_and_not_as_raw_bytes() -> None:
    row = find("anthropic")
    assert row is not None
    thread = LibraryThread()
    async with ModelServer() as server:  # the server has no such path
        provider = LiteLLMModel(ModelEndpoint(row, server.url, stored_key), thread)
        model = RecoveringModel(ModelSource(provider), ONCE)
        message = await final(model, request_for(NAME))
    await thread.close()
    said = "Anthropic does not know this model or address (404): 404: Not Found. "
    assert message.error == f"{said}Check the model's name and the API base."
