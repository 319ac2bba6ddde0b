"""Thoughts and signatures that come with calls go back with them, to the same model at the same server alone."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import pytest

from errand.engine.core.messages import (
    AssistantMessage,
    ModelMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    user_text,
)
from errand.engine.models.anthropic.messages_api import MessagesApi
from errand.engine.models.base import ModelNotice, ModelOptions, ModelRequest, ReplyEnd
from errand.engine.models.catalog.providers import Provider
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.openai.responses_api import ResponsesApi
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.request_adaptation import LearnedLimits
from errand.engine.models.recovery.source import ModelSource
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.notices import ThinkingNotSent
from tests.engine.models.providers import ONCE, stored_key
from tests.support.model_replies import SHELL, collect
from tests.support.model_server import ModelServer, ReceivedRequest, Reply

OWN = Provider("lab", "Lab", "openai_compatible", own=True)
DONE = b"data: [DONE]\n\n"
FINE = Reply(text="FINE")
FORMATS = {"chat": ChatCompletions, "messages": MessagesApi, "responses": ResponsesApi}


@asynccontextmanager
async def asked(server: ModelServer, form: str = "chat") -> AsyncGenerator[RecoveringModel]:
    """A model at a server that a person added."""
    connections = HttpPool()
    provider = HttpModel(ModelEndpoint(OWN, server.url, stored_key), FORMATS[form], connections)
    yield RecoveringModel(ModelSource(provider, LearnedLimits()), ONCE)
    await connections.close()


def request(messages: Sequence[ModelMessage] = (), model: str = "lab/m") -> ModelRequest:
    return ModelRequest(model, "", (user_text("do it"), *messages), (SHELL,))


async def reply_to(model: RecoveringModel, sent: ModelRequest) -> AssistantMessage:
    end = (await collect(model, sent))[-1]
    assert isinstance(end, ReplyEnd)
    assert end.message.error is None
    return end.message


def result_of(message: AssistantMessage) -> tuple[ModelMessage, ...]:
    return (message, *(ToolResultMessage(call.id, call.name, (Text("hi"),)) for call in message.tool_calls))


def chunk(delta: JsonObject, finish: str | None = None) -> bytes:
    choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def call_piece(number: int = 0, **fields: JsonValue) -> JsonObject:
    function: JsonObject = {"name": "shell", "arguments": '{"command": "echo hi"}'}
    return {
        "tool_calls": [{"index": number, "id": f"call_{number}", "type": "function", "function": function, **fields}]
    }


def reply_of(*deltas: JsonObject) -> Reply:
    return Reply(raw=(*(chunk(delta) for delta in deltas), chunk({}, "tool_calls"), DONE))


SIGNED: JsonObject = {"google": {"thought_signature": "c2ln"}}
DETAILS = (
    {"type": "reasoning.text", "text": "I must ", "index": 0, "format": "x"},
    {"type": "reasoning.text", "text": "look", "index": 0, "format": "x"},
    {"type": "reasoning.text", "signature": "c2ln", "index": 0},
    {"type": "reasoning.encrypted", "data": "aGlkZGVu", "index": 1, "id": "rs_1"},
)
WHOLE_DETAILS = [
    {"type": "reasoning.text", "text": "I must look", "index": 0, "format": "x", "signature": "c2ln"},
    {"type": "reasoning.encrypted", "data": "aGlkZGVu", "index": 1, "id": "rs_1"},
]


@pytest.mark.parametrize(
    ("deltas", "fields"),
    [
        (({"reasoning_content": "I must "}, {"reasoning_content": "look"}), {"reasoning_content": "I must look"}),
        (({"reasoning": "I must look"},), {"reasoning": "I must look"}),
        (tuple({"reasoning_details": [detail]} for detail in DETAILS), {"reasoning_details": WHOLE_DETAILS}),
        (
            ({"reasoning_text": "hm", "reasoning_opaque": "b3BhcXVl"},),
            {"reasoning_text": "hm", "reasoning_opaque": "b3BhcXVl"},
        ),
        (
            ({"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},),
            {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
        ),
        (({"extra_content": SIGNED},), {"extra_content": SIGNED}),
        (({"content": "Looking."},), {}),
    ],
    ids=["reasoning_content", "reasoning", "reasoning_details", "opaque", "blocks", "extra_content", "nothing"],
)
async def test_what_came_with_a_call_goes_back_with_it(deltas: tuple[JsonObject, ...], fields: JsonObject) -> None:
    async with ModelServer([reply_of(*deltas, call_piece()), FINE]) as server, asked(server) as model:
        message = await reply_to(model, request())
        await reply_to(model, request(result_of(message)))
    (entry,) = [sent for sent in server.requests[1].messages if sent["role"] == "assistant"]
    assert {name: value for name, value in entry.items() if name not in ("role", "content", "tool_calls")} == fields
    assert [sorted(call) for call in calls_of(entry)] == [["function", "id", "type"]]


def calls_of(entry: JsonObject) -> list[JsonObject]:
    return msgspec.convert(entry["tool_calls"], list[JsonObject])


async def test_side_fields_without_end_are_dropped_and_the_reply_is_kept() -> None:
    detail: JsonObject = {"reasoning_details": [{"type": "reasoning.text", "text": "x" * 1_000, "index": 0}]}
    thought: JsonObject = {"reasoning": "hm"}
    deltas = (thought, *[detail] * 300, call_piece(extra_content=SIGNED))
    async with ModelServer([reply_of(*deltas), FINE]) as server, asked(server) as model:
        message = await reply_to(model, request())
        await reply_to(model, request(result_of(message)))
    (entry,) = [sent for sent in server.requests[1].messages if sent["role"] == "assistant"]
    assert (entry["reasoning"], "reasoning_details" in entry) == ("hm", False)


async def test_text_beside_the_progress_of_the_request_is_part_of_the_reply() -> None:
    body: JsonObject = {"prompt_progress": {"total": 9, "processed": 9}}
    body["choices"] = [{"index": 0, "delta": {"content": "Fine"}, "finish_reason": "stop"}]
    raw = b"data: " + json.dumps(body).encode() + b"\n\n"
    async with ModelServer([Reply(raw=(raw, DONE))]) as server, asked(server) as model:
        assert (await reply_to(model, request())).text == "Fine"


async def test_the_signature_of_each_call_goes_back_with_that_call() -> None:
    second: JsonObject = {"google": {"thought_signature": "b3RoZXI="}}
    deltas = (call_piece(0, extra_content=SIGNED), call_piece(1), call_piece(2, extra_content=second))
    async with ModelServer([reply_of(*deltas), FINE]) as server, asked(server) as model:
        message = await reply_to(model, request())
        await reply_to(model, request(result_of(message)))
    (entry,) = [sent for sent in server.requests[1].messages if sent["role"] == "assistant"]
    assert [call.get("extra_content") for call in calls_of(entry)] == [SIGNED, None, second]


async def test_it_goes_to_no_other_model_and_no_other_server() -> None:
    side: JsonObject = {"reasoning_content": "I must look", "extra_content": SIGNED}
    deltas = (side, call_piece(extra_content=SIGNED))
    async with ModelServer([reply_of(*deltas), FINE]) as server, asked(server) as model:
        message = await reply_to(model, request())
        await reply_to(model, request(result_of(message), "lab/other"))
        async with ModelServer([FINE]) as elsewhere, asked(elsewhere) as other:
            await reply_to(other, request(result_of(message)))
    for sent in (server.requests[1], elsewhere.requests[0]):
        text = json.dumps(sent.body)
        assert [name for name in ("reasoning_content", "extra_content", "I must look", "c2ln") if name in text] == []


def messages_event(kind: str, **fields: JsonValue) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


@pytest.mark.parametrize("signature", ["", "c2ln"])
async def test_thinking_blocks_go_back_to_a_server_with_anthropic_s_interface(signature: str) -> None:
    thought: JsonObject = {"type": "thinking", "thinking": "I must look"}
    if signature:
        thought["signature"] = signature
    raw = (
        messages_event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
        messages_event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "I must look"}),
        messages_event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": signature}),
        messages_event("content_block_stop", index=0),
        messages_event(
            "content_block_start", index=1, content_block={"type": "tool_use", "id": "t1", "name": "shell", "input": {}}
        ),
        messages_event("message_delta", delta={"stop_reason": "tool_use"}),
        messages_event("message_stop"),
    )
    async with ModelServer([Reply(raw=raw), FINE, FINE]) as server, asked(server, "messages") as model:
        message = await reply_to(model, request())
        await reply_to(model, request(result_of(message)))
        await reply_to(model, request(result_of(message), "lab/other"))
    own, others = (json.dumps(sent.body) for sent in server.requests[1:])
    assert json.dumps(thought) in own
    assert "I must look" not in others


@pytest.mark.parametrize("field", ["content", "summary"])
async def test_reasoning_items_without_encrypted_content_go_back_to_their_server(field: str) -> None:
    kind = "reasoning_text" if field == "content" else "summary_text"
    part: JsonObject = {"type": kind, "text": "I must look"}
    thought: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": [], field: [part]}
    call: JsonObject = {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"}
    body = json.dumps({"status": "completed", "output": [thought, call]}).encode()
    async with ModelServer([Reply(raw=(body,)), FINE, FINE]) as server, asked(server, "responses") as model:
        message = await reply_to(model, request())
        await reply_to(model, request(result_of(message)))
        await reply_to(model, request(result_of(message), "lab/other"))
    assert server.requests[1].messages[1] == thought
    assert "I must look" not in json.dumps(server.requests[2].body)


def picky(needed: str = "", unknown: str = "", port: int = 0) -> ModelServer:
    """A server that refuses a field, or requests whose replies with calls are without one."""

    def answer(received: ReceivedRequest) -> Reply:
        text = json.dumps(received.body)
        if unknown and f'"{unknown}"' in text:
            return Reply(status=400, error=f"Unrecognized request argument supplied: {unknown}")
        replies = [sent for sent in received.messages if sent["role"] == "assistant"]
        if needed and any(not sent.get(needed) for sent in replies):
            return Reply(status=400, error=f"{needed} is missing in the assistant message at index 1")
        return FINE

    return ModelServer(answer=answer, port=port)


FOREIGN = AssistantMessage((Thinking("hm"), ToolCall("call_1", "shell", {})), "tool_use", model="openai/x")


@pytest.mark.parametrize("message", [FOREIGN, replace(FOREIGN, content=FOREIGN.content[1:])], ids=["thought", "none"])
async def test_a_server_that_requires_thoughts_gets_them_for_the_calls_of_others_too(message: AssistantMessage) -> None:
    async with picky(needed="reasoning_content") as server, asked(server) as model:
        for _ in range(2):
            assert (await reply_to(model, request(result_of(message)))).text == "FINE"
    assert len(server.requests) == 3  # it is remembered


async def test_a_server_that_refuses_thoughts_gets_none() -> None:
    async with (
        ModelServer([reply_of({"reasoning_content": "I must look"}, call_piece())]) as server,
        asked(server) as model,
    ):
        message = await reply_to(model, request())
        port = int(server.url.rpartition(":")[2].removesuffix("/v1"))
    async with picky(unknown="reasoning_content", port=port) as server, asked(server) as model:
        for _ in range(2):
            assert (await reply_to(model, request(result_of(message)))).text == "FINE"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ("chat", "stream_options"),
        ("chat", "max_tokens"),
        ("responses", "include"),
        ("responses", "strict"),
        ("messages", "cache_control"),
        ("messages", "output_config"),
    ],
)
async def test_an_option_that_a_server_refuses_is_left_out_from_then_on(form: str, field: str) -> None:
    quoted = f"'{field}'" if field in ("include", "strict") else field
    options = ModelOptions(thinking_level="high", max_tokens=1000)

    def answer(received: ReceivedRequest) -> Reply:
        if f'"{field}"' in json.dumps(received.body):
            return Reply(status=400, error=f"Unknown parameter: {quoted}.")
        return FINE

    async with ModelServer(answer=answer) as server, asked(server, form) as model:
        for _ in range(2):
            assert (await reply_to(model, replace(request(), options=options))).text == "FINE"
    assert len(server.requests) == 3


async def test_the_limit_of_a_reply_is_sent_under_the_name_that_a_server_knows() -> None:
    def answer(received: ReceivedRequest) -> Reply:
        if "max_tokens" in received.body:
            error = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return Reply(status=400, error=error)
        return FINE

    async with ModelServer(answer=answer) as server, asked(server) as model:
        await reply_to(model, replace(request(), options=ModelOptions(max_tokens=1000)))
    assert server.requests[1].body["max_completion_tokens"] == 1000


async def test_a_thinking_level_that_a_server_refuses_is_left_out_with_a_notice() -> None:
    async with picky(unknown="reasoning_effort") as server, asked(server) as model:
        sent = replace(request(model="lab/gpt-oss"), options=ModelOptions(thinking_level="high"))
        events = await collect(model, sent)
    notices = [event.data for event in events if isinstance(event, ModelNotice)]
    assert notices == [ThinkingNotSent(model="lab/gpt-oss", level="high", why="no_way")]


async def test_a_refusal_that_stays_ends_the_reply() -> None:
    refused = Reply(status=400, error="Unknown parameter: 'stream_options', 'tool_choice'.")
    async with ModelServer(answer=lambda received: refused) as server, asked(server) as model:
        end = (await collect(model, request()))[-1]
    assert isinstance(end, ReplyEnd)
    assert "stream_options" in (end.message.error or "")
    assert len(server.requests) == 3
