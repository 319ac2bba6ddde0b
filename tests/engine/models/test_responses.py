"""OpenAI's Responses API: nothing is stored there, and encrypted reasoning goes back with the results."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.messages import (
    AssistantMessage,
    Image,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    user_text,
)
from errand.engine.models.base import ModelOptions, ModelRequest, ReplyEnd
from errand.engine.models.catalog.providers import find
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.failures import FailureKind, ProviderError
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.openai.responses_api import ResponsesApi
from errand.engine.models.openai.responses_stream import ResponseReader
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.request_adaptation import LearnedLimits
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.reply.builder import ReplyBuilder
from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject, JsonValue
from errand.text.redaction import Redactor
from tests.engine.models.providers import ONCE, stored_key
from tests.support.model_replies import final, request_for
from tests.support.model_server import ModelServer, Reply

STREAM = Path(__file__).parent / "streams" / "openai_responses_reasoning.sse"
NAME = "openai/gpt-5.4"
SECRET = "gAAAAABpF-9zbM_w=="
CALLS = (ToolCall("call_1", "shell", {"command": "ls"}), ToolCall("call_2", "shell", {"command": "pwd"}))
THOUGHT = "**Looking around**\n\nI list it.\n\n**Then**\n\nI look where I am."
REPLY = (
    Thinking(THOUGHT, f"reasoning:rs_1:{SECRET}"),
    Text("Looking."),
    *CALLS,
)


@pytest.fixture
async def connections() -> AsyncGenerator[HttpPool]:
    pool = HttpPool()
    yield pool
    await pool.close()


def model_at(server: ModelServer, connections: HttpPool) -> RecoveringModel:
    row = find("openai")
    assert row is not None
    provider = HttpModel(ModelEndpoint(row, server.url, stored_key), ResponsesApi, connections)
    return RecoveringModel(ModelSource(provider, LearnedLimits()), ONCE)


def thinking_request(*more: ModelMessage) -> ModelRequest:
    plain = request_for(NAME)
    options = ModelOptions(thinking_level="low", session_id="conversation-1")
    return ModelRequest(NAME, "Be brief.", (*plain.messages, *more), plain.tools, options)


async def test_a_recorded_reply_is_read_whole_with_its_cost(connections: HttpPool) -> None:
    async with ModelServer([Reply(raw=(STREAM.read_bytes(),))]) as server:
        message = await final(model_at(server, connections), thinking_request())
    assert (message.content, message.stop_reason, message.error) == (REPLY, "tool_use", None)
    usage = message.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (1_200, 300, 1_024)
    assert usage.cost_usd == pytest.approx((176 * 2.5 + 1_024 * 0.25 + 300 * 15) / 1e6)


async def test_reasoning_goes_back_before_the_calls_that_it_led_to(connections: HttpPool) -> None:
    reply = AssistantMessage(REPLY, "tool_use", model=NAME)
    results = (
        ToolResultMessage("call_2", "shell", (Text("/work"),)),
        ToolResultMessage("call_1", "shell", (Text("a b"), Image("image/png", "AAAA")), is_error=True),
    )
    async with ModelServer([Reply(text="Done.")]) as server:
        await final(model_at(server, connections), thinking_request(reply, *results))
    sent = server.requests[0].body
    picture: JsonObject = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}
    expected: list[JsonValue] = [
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": THOUGHT}],
            "encrypted_content": SECRET,
        },
        {"role": "assistant", "content": "Looking.", "phase": "commentary"},
        {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": '{"command":"ls"}'},
        {"type": "function_call", "call_id": "call_2", "name": "shell", "arguments": '{"command":"pwd"}'},
        {"type": "function_call_output", "call_id": "call_2", "output": "/work"},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "a b"}, picture],
        },
    ]
    assert sent["input"] == expected
    assert {name: value for name, value in sent.items() if name not in ("input", "tools")} == {
        "model": "gpt-5.4",
        "instructions": "Be brief.",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "prompt_cache_key": "conversation-1",
    }
    (tool,) = msgspec.convert(sent["tools"], tuple[JsonObject, ...])
    assert (sorted(tool), tool["strict"]) == (["description", "name", "parameters", "strict", "type"], False)


def test_reasoning_goes_neither_to_another_model_nor_without_what_it_led_to() -> None:
    reply = AssistantMessage((Thinking("hm", "reasoning:rs_1:AAAA"), Text("Hello.")), model=NAME)
    bare = AssistantMessage((Text("Half"), Thinking("hm", "reasoning:rs_2:BBBB")), "aborted", "stopped", NAME)
    foreign = AssistantMessage((Thinking("hm", "PROOF"), Text("Hello.")), model=NAME)
    assert kinds(NAME, user_text("1"), reply, user_text("2")) == ["user", "reasoning", "assistant", "user"]
    assert kinds("openai/gpt-5.5", user_text("1"), reply, user_text("2")) == ["user", "assistant", "user"]
    assert kinds(NAME, user_text("1"), bare, user_text("2")) == ["user", "assistant", "user"]
    assert kinds(NAME, user_text("1"), foreign, user_text("2")) == ["user", "assistant", "user"]


def test_what_the_user_says_in_a_row_is_one_item_after_the_results() -> None:
    reply = AssistantMessage((CALLS[0],), "tool_use", model=NAME)
    stopped = AssistantMessage((), "aborted", "Request was aborted", NAME)
    picture = UserMessage((Text("and this?"), Image("image/png", "AAAA")))
    sent = body(NAME, ModelOptions(), user_text("one"), stopped, user_text("two"), picture, reply)["input"]
    assert isinstance(sent, list)
    assert sent[0] == {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "one"},
            {"type": "input_text", "text": "two"},
            {"type": "input_text", "text": "and this?"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
        ],
    }
    assert sent[-1] == {"type": "function_call_output", "call_id": "call_1", "output": "(no result was recorded)"}


@pytest.mark.parametrize(
    ("name", "level", "reasoning"),
    [
        ("gpt-5.4", "off", {"effort": "none"}),
        ("gpt-5.4", "xhigh", {"effort": "xhigh", "summary": "auto"}),
        ("gpt-5.4", "minimal", {"effort": "low", "summary": "auto"}),
        ("gpt-5", "minimal", {"effort": "minimal", "summary": "auto"}),
        ("o3", "off", {"summary": "auto"}),
        ("o3", "xhigh", {"effort": "high", "summary": "auto"}),
        ("gpt-4.1", "high", None),
        ("gpt-5-chat-latest", "high", None),
    ],
)
def test_each_model_is_told_how_much_to_think(name: str, level: ThinkingLevel, reasoning: JsonValue) -> None:
    sent = body(f"openai/{name}", ModelOptions(thinking_level=level, max_tokens=5))
    assert (sent.get("reasoning"), "include" in sent) == (reasoning, reasoning is not None)
    assert sent["max_output_tokens"] == 16


async def test_an_account_that_gets_no_summaries_is_asked_without(connections: HttpPool) -> None:
    refused = "Your organization must be verified to generate reasoning summaries. Please go to: https://platform…"
    async with ModelServer([Reply(status=400, error=refused), Reply(text="Hi."), Reply(text="Ho.")]) as server:
        model = model_at(server, connections)
        texts = [(await final(model, thinking_request())).text for _ in range(2)]
    assert texts == ["Hi.", "Ho."]
    first, second, third = (request.body["reasoning"] for request in server.requests)
    assert (first, second, third) == ({"effort": "low", "summary": "auto"}, {"effort": "low"}, {"effort": "low"})


async def test_thoughts_of_another_account_are_left_out_when_they_are_refused(connections: HttpPool) -> None:
    refused = "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted."
    reply = AssistantMessage(REPLY[:2], model=NAME)
    async with ModelServer([Reply(status=400, error=refused), Reply(text="Hi.")]) as server:
        message = await final(model_at(server, connections), thinking_request(reply, user_text("and now?")))
    assert message.text == "Hi."
    assert [[sent_message.get("type", "said") for sent_message in request.messages] for request in server.requests] == [
        ["said", "reasoning", "said", "said"],
        ["said", "said", "said"],
    ]


@pytest.mark.parametrize(
    ("error", "failure_text", "kind", "wait"),
    [
        ({"code": "server_error", "message": "no"}, "failed (500)", FailureKind.UNAVAILABLE, None),
        (
            {"code": "rate_limit_exceeded", "message": "Please try again in 12s."},
            "limits how much",
            FailureKind.RATE_LIMITED,
            12.0,
        ),
        ({"code": "insufficient_quota", "message": "no"}, "no credit left", FailureKind.NO_CREDIT, None),
        ({"code": "context_length_exceeded", "message": "no"}, "longer than", FailureKind.TOO_LONG, None),
        ({"code": "invalid_image", "message": "no"}, "refused the request (400)", FailureKind.REJECTED, None),
        ({"code": "bio_policy", "message": "no"}, "held back the reply (bio policy)", FailureKind.CONTENT_FILTER, None),
        (None, "could not finish the reply", FailureKind.UNAVAILABLE, None),
    ],
)
def test_a_failed_response_says_why(error: JsonValue, failure_text: str, kind: FailureKind, wait: float | None) -> None:
    failed: JsonObject = {"response": {"status": "failed", "error": error, "output": []}}
    for event in ({"type": "response.failed", **failed}, {"type": "error", "error": error}):
        with pytest.raises(ProviderError) as raised:
            ResponseReader(ReplyBuilder(NAME), "Test").read(msgspec.json.encode(event))
        failure = raised.value.failure
        assert failure_text in failure.text
        assert (failure.kind, failure.retry_after_s) == (kind, wait)


def test_an_error_event_without_an_object_is_read_too() -> None:
    event: JsonObject = {"type": "error", "code": "server_is_overloaded", "message": "busy", "param": None}
    with pytest.raises(ProviderError) as raised:
        ResponseReader(ReplyBuilder(NAME), "Test").read(msgspec.json.encode(event))
    assert raised.value.failure.kind is FailureKind.UNAVAILABLE
    assert "busy" in raised.value.failure.text


def test_a_reply_that_was_cut_or_held_back_says_so() -> None:
    cut = read(said("Half"), ended("incomplete", "max_output_tokens"))
    assert (cut.text, cut.stop_reason) == ("Half", "length")
    with pytest.raises(ProviderError) as raised:
        read(said("Half"), ended("incomplete", "content_filter"))
    assert raised.value.failure.kind is FailureKind.CONTENT_FILTER


def test_a_refusal_of_the_model_is_its_text() -> None:
    refusal: JsonObject = {"type": "response.refusal.delta", "output_index": 0, "delta": "I cannot help with that."}
    assert read(refusal, ended("completed")).text == "I cannot help with that."


def test_a_reply_that_does_not_stream_is_read_too() -> None:
    response: JsonObject = {
        "object": "response",
        "status": "completed",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SECRET},
            {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "a", "arguments": '{"x":1}'},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    message = read(response)
    assert message.content == (
        Thinking("", f"reasoning:rs_1:{SECRET}"),
        Text("Hello."),
        ToolCall("call_1", "a", {"x": 1}),
    )
    assert (message.stop_reason, message.usage) == ("tool_use", Usage(3, 4))


def test_two_texts_of_a_reply_are_paragraphs() -> None:
    assert read(said("I look."), said("Found it.", 1), ended("completed")).text == "I look.\n\nFound it."


def test_encrypted_reasoning_with_the_key_in_it_is_not_kept() -> None:
    key = "sk-0123456789"
    item: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": f"gAAA{key}AAAA"}
    done: JsonObject = {"type": "response.output_item.done", "output_index": 0, "item": item}
    events = (done, said("Hello.", 1), ended("completed"))
    assert read(*events, redactor=Redactor(key)).content == (Text("Hello."),)


def read(*events: JsonObject, redactor: Redactor | None = None) -> AssistantMessage:
    reader = ResponseReader(ReplyBuilder(NAME, redactor=redactor), "Test")
    for event in events:
        reader.read(msgspec.json.encode(event))
    last = reader.end()[-1]
    assert isinstance(last, ReplyEnd)
    return last.message


def said(text: str, index: int = 0) -> JsonObject:
    return {"type": "response.output_text.delta", "output_index": index, "delta": text}


def ended(status: str, reason: str | None = None) -> JsonObject:
    details: JsonObject | None = {"reason": reason} if reason else None
    response: JsonObject = {"status": status, "output": [], "incomplete_details": details}
    return {"type": f"response.{status}", "response": response}


def body(name: str, options: ModelOptions, *messages: ModelMessage) -> JsonObject:
    row = find("openai")
    assert row is not None
    return ResponsesApi(row).body(ModelRequest(name, "", messages or (user_text("hello"),), (), options))


def kinds(name: str, *messages: ModelMessage) -> list[JsonValue]:
    sent = body(name, replace(ModelOptions(), thinking_level="low"), *messages)["input"]
    assert isinstance(sent, list)
    return [item.get("role") or item.get("type") for item in sent if isinstance(item, dict)]
