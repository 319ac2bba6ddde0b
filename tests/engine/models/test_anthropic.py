"""Anthropic: signed reasoning is sent back, prompts are cached, cached tokens are counted."""

from collections.abc import AsyncGenerator

import msgspec
import pytest

from errand.engine.core.messages import (
    AssistantMessage,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    user_text,
)
from errand.engine.models.anthropic.messages_api import MessagesApi
from errand.engine.models.anthropic.stream import MessageReader
from errand.engine.models.base import ChatModel, ModelOptions, ModelRequest, ReplyEnd
from errand.engine.models.catalog.providers import find
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.failures import FailureKind, ProviderError
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.reply.builder import ReplyBuilder
from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject, JsonValue
from tests.engine.models.providers import ONCE, stored_key
from tests.support.model_replies import final, request_for
from tests.support.provider_servers import AnthropicServer

ADAPTIVE: JsonObject = {"type": "adaptive", "display": "summarized"}
NAME = "anthropic/claude-sonnet-4-5"


@pytest.fixture
async def server() -> AsyncGenerator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def model(server: AnthropicServer) -> AsyncGenerator[ChatModel]:
    row = find("anthropic")
    assert row is not None
    connections = HttpPool()
    provider = HttpModel(ModelEndpoint(row, server.url, stored_key), MessagesApi, connections)
    yield RecoveringModel(ModelSource(provider), ONCE)
    await connections.close()


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


async def test_next_turn_returns_the_signature_and_marks_the_prompt_for_caching(
    server: AnthropicServer, model: ChatModel
) -> None:
    first = thinking_request()
    reply = await final(model, first)
    result = ToolResultMessage("toolu_1", "shell", (Text("a b"),))
    await final(model, ModelRequest(NAME, "Be brief.", (*first.messages, reply, result), first.tools, first.options))
    body = server.bodies[1]
    mark = {"type": "ephemeral"}
    result_content = [{"type": "text", "text": "a b"}]
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
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": result_content, "cache_control": mark},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("model", "level", "fields"),
    [
        ("claude-sonnet-4-5", "off", {}),
        ("claude-sonnet-4-5", "xhigh", {"thinking": {"type": "enabled", "budget_tokens": 8192}}),
        ("claude-sonnet-4-6", "minimal", {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}),
        ("claude-sonnet-4-6", "xhigh", {"thinking": ADAPTIVE, "output_config": {"effort": "high"}}),
        ("claude-sonnet-5-5", "xhigh", {"thinking": ADAPTIVE, "output_config": {"effort": "xhigh"}}),
        ("claude-sonnet-5-5", "off", {}),
        ("claude-of-tomorrow", "medium", {"thinking": ADAPTIVE, "output_config": {"effort": "medium"}}),
    ],
)
def test_each_model_is_told_how_much_to_think_in_its_own_way(
    model: str, level: ThinkingLevel, fields: JsonObject
) -> None:
    sent = body(f"anthropic/{model}", ModelOptions(thinking_level=level, temperature=0.5))
    assert {name: sent[name] for name in ("thinking", "output_config") if name in sent} == fields
    always = model == "claude-sonnet-5-5"
    assert ("temperature" in sent) is (level == "off" and not always)


def test_a_small_limit_of_tokens_leaves_no_room_for_thinking() -> None:
    small = body(NAME, ModelOptions(thinking_level="high", max_tokens=1_000))
    more = body(NAME, ModelOptions(thinking_level="high", max_tokens=3_000))
    assert (small["max_tokens"], "thinking" in small) == (1_000, False)
    assert more["thinking"] == {"type": "enabled", "budget_tokens": 2_999}


def test_an_older_model_does_not_think_in_the_middle_of_the_work_of_another() -> None:
    call = ToolCall("toolu_1", "shell", {})
    result = ToolResultMessage("toolu_1", "shell", (Text("a b"),))
    options = ModelOptions(thinking_level="low")
    other = AssistantMessage((Thinking("hm", "PROOF"), call), "tool_use", model="openai/gpt-5.4")
    own = AssistantMessage((Thinking("hm", "PROOF"), call), "tool_use", model=NAME)
    assert "thinking" not in body(NAME, options, user_text("go"), other, result)
    assert "thinking" in body(NAME, options, user_text("go"), own, result)
    assert "thinking" in body(NAME, options, user_text("go"), other, result, user_text("and now?"))


def test_an_encrypted_thought_is_kept_apart_and_sent_back_as_it_came() -> None:
    builder = ReplyBuilder(NAME)
    reader = MessageReader(builder, "Test")
    for event in (
        begun(0, {"type": "thinking", "thinking": ""}),
        grown(0, {"type": "thinking_delta", "thinking": "hm"}),
        grown(0, {"type": "signature_delta", "signature": "PROOF"}),
        {"type": "content_block_stop", "index": 0},
        begun(1, {"type": "redacted_thinking", "data": "EmwKAhgB"}),
        {"type": "content_block_stop", "index": 1},
        begun(2, {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {}}),
        {"type": "content_block_stop", "index": 2},
    ):
        reader.read(msgspec.json.encode(event))
    last = reader.end()[-1]
    assert isinstance(last, ReplyEnd)
    result = ToolResultMessage("toolu_1", "shell", ())
    sent = body(NAME, ModelOptions(thinking_level="low"), user_text("go"), last.message, result)["messages"]
    assert isinstance(sent, list)
    assert sent[1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "PROOF"},
            {"type": "redacted_thinking", "data": "EmwKAhgB"},
            {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {}},
        ],
    }


def test_a_reply_that_does_not_stream_is_read_too() -> None:
    builder = ReplyBuilder(NAME)
    reader = MessageReader(builder, "Test")
    content: JsonValue = [
        {"type": "text", "text": "Hello."},
        {"type": "tool_use", "id": "t", "name": "a", "input": {"x": 1}},
    ]
    usage: JsonObject = {"input_tokens": 3, "output_tokens": 4}
    reader.read(msgspec.json.encode({"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}))
    last = reader.end()[-1]
    assert isinstance(last, ReplyEnd)
    assert last.message.content == (Text("Hello."), ToolCall("t", "a", {"x": 1}))
    assert (last.message.stop_reason, last.message.usage) == ("tool_use", Usage(3, 4))


@pytest.mark.parametrize(
    ("error", "failure_text", "kind"),
    [
        ("overloaded_error", "failed (529)", FailureKind.UNAVAILABLE),
        ("rate_limit_error", "limits how much", FailureKind.RATE_LIMITED),
        ("authentication_error", "refused the key", FailureKind.NOT_AUTHORISED),
        ("something_new", "failed (500)", FailureKind.UNAVAILABLE),
    ],
)
def test_an_error_in_the_stream_says_what_its_status_would_have_said(
    error: str, failure_text: str, kind: FailureKind
) -> None:
    reader = MessageReader(ReplyBuilder(NAME), "Test")
    with pytest.raises(ProviderError) as raised:
        reader.read(msgspec.json.encode({"type": "error", "error": {"type": error, "message": "no"}}))
    assert failure_text in raised.value.failure.text
    assert raised.value.failure.kind is kind


def test_a_refusal_ends_the_reply_as_withheld() -> None:
    reader = MessageReader(ReplyBuilder(NAME), "Test")
    reader.read(msgspec.json.encode({"type": "message_delta", "delta": {"stop_reason": "refusal"}}))
    with pytest.raises(ProviderError) as raised:
        reader.end()
    assert raised.value.failure.kind is FailureKind.CONTENT_FILTER


async def test_a_wrong_address_is_named(server: AnthropicServer) -> None:
    row = find("anthropic")
    assert row is not None
    connections = HttpPool()
    endpoint = ModelEndpoint(row, f"{server.url}/wrong", stored_key)
    model = RecoveringModel(ModelSource(HttpModel(endpoint, MessagesApi, connections)), ONCE)
    message = await final(model, request_for(NAME))
    await connections.close()
    explanation = "Anthropic does not know this model or address (404): 404: Not Found. "
    assert message.error == f"{explanation}Check the model's name and the base URL."


def body(name: str, options: ModelOptions, *messages: ModelMessage) -> JsonObject:
    row = find("anthropic")
    assert row is not None
    return MessagesApi(row).body(ModelRequest(name, "", messages or (user_text("hello"),), (), options))


def begun(index: int, block: JsonObject) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index: int, delta: JsonObject) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": delta}
