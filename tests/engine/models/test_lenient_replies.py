"""Servers that are a little off: what stands beside text, calls and errors never costs a reply that has come."""

import json
import logging
from pathlib import Path

import pytest

from errand.engine.core.messages import AssistantMessage, Text, Thinking, ToolCall
from errand.protocol.base import JsonObject, JsonValue
from tests.engine.models.providers import ONCE, OpenProvider, anthropic, fast, responses
from tests.support.model_replies import final, request_for
from tests.support.model_server import Reply

SHELL = (ToolCall("call_1", "shell", {"command": "ls"}),)


def event(value: JsonValue, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: JsonValue = None, finish: JsonValue = None, **fields: JsonValue) -> bytes:
    choice: JsonObject = {"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}
    return event({"choices": [choice], **fields})


SAY, STOP, DONE = chunk({"content": "whole answer"}), chunk(None, "stop"), b"data: [DONE]\n\n"


def beside(**fields: JsonValue) -> tuple[bytes, ...]:
    return chunk({"content": "whole answer", **fields}), STOP, DONE


def call(**fields: JsonValue) -> tuple[bytes, ...]:
    piece: JsonObject = {"index": 0, "id": "call_1", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
    return chunk({"tool_calls": [piece | fields]}), chunk(None, "tool_calls"), DONE


async def reply_to(open_provider: OpenProvider, folder: Path, *raw: bytes) -> AssistantMessage:
    """The reply after one request: further ones would fail."""
    async with open_provider([Reply(raw=raw)], folder, ONCE) as provider:
        return await final(provider.model, request_for(provider.model_id))


def in_pieces(raw: tuple[bytes, ...], length: int) -> tuple[bytes, ...]:
    body = b"".join(raw)
    return tuple(body[at : at + length] for at in range(0, len(body), length)) if length else raw


TEXTS: dict[str, tuple[bytes, ...]] = {
    "end mark with blanks": (SAY, STOP, b"data: [DONE] \t\n\n"),
    "end mark in quotes": (SAY, STOP, b'data: "[DONE]"\n\n'),
    "end mark in the last event": (SAY, STOP.rstrip(b"\n") + b"\ndata: [DONE]\n\n"),
    "no end mark and a damaged count": (SAY, STOP, b'data: {"usage": {"prompt_tokens": 1'),
    "empty data lines": (b"data:\n\n", SAY, b"data: \r\n\r\n", STOP, DONE),
    "words as keep-alives": (b"event: ping\ndata: ping\n\n", SAY, b"data: : PROCESSING\n\n", STOP, DONE),
    "objects as keep-alives": (event({"status": "queued", "message": "position 3"}), SAY, event(None), STOP, DONE),
    "numbers as keep-alives": (SAY, event(17), event([1, 2]), STOP, DONE),
    "events without empty lines": (b"".join(part.replace(b"\n\n", b"\n") for part in (SAY, STOP, DONE)),),
    "lines of JSON": tuple(part.removeprefix(b"data: ").replace(b"\n\n", b"\n") for part in (SAY, STOP)),
    "list of chunks": (b"[" + SAY[6:].strip() + b"," + STOP[6:].strip() + b"]",),
    "blanks before the data": tuple(part.replace(b"data:", b" Data :") for part in (SAY, STOP, DONE)),
    "a prefix twice": tuple(part.replace(b"data: ", b"data: data: ") for part in (SAY, STOP, DONE)),
    "JSON in a JSON text": (b"data: " + json.dumps(SAY[6:].decode().strip()).encode() + b"\n\n", STOP, DONE),
    "byte order mark": (b"\xef\xbb\xbf" + SAY, b"data: \xef\xbb\xbf" + STOP[6:], DONE),
    "carriage returns": tuple(part.replace(b"\n", b"\r") for part in (SAY, STOP, DONE)),
    "NaN": (SAY.replace(b'"finish_reason"', b'"logprobs": NaN, "finish_reason"'), STOP, DONE),
    "an endless number": (
        chunk({"content": "whole answer"}, created=1).replace(b": 1}", b": 1" + b"0" * 5000 + b"}"),
        STOP,
        DONE,
    ),
    "counts as a list": (SAY, chunk(None, "stop", usage=[]), DONE),
    "counts as texts": (SAY, chunk(None, "stop", usage={"prompt_tokens": "many", "cost": {}}), DONE),
    "no choices": (event({"id": 1}), SAY, event({"choices": None}), event({"choices": []}), STOP, DONE),
    "choices as an object": (event({"choices": {}}), SAY, STOP, DONE),
    "a null among choices": (event({"choices": [None]}), SAY, STOP, DONE),
    "finish reason as a number": (chunk({"content": "whole answer"}, 0), STOP, DONE),
    "finish reason as null in a text": (
        chunk({"content": "whole "}, "null"),
        chunk({"content": "answer"}, ""),
        STOP,
        DONE,
    ),
    "finish reason of another API": (SAY, chunk(None, "end_turn"), DONE),
    "refusal": beside(refusal=False),
    "reasoning": beside(reasoning=0),
    "role": beside(role=7, name=None, annotations="none"),
    "no calls": beside(tool_calls={}, function_call=None),
    "a null among calls": beside(tool_calls=[None, "none"]),
    "content parts": (
        chunk({"content": [None, {"type": "text", "text": None}, "whole ", {"text": "answer"}]}),
        STOP,
        DONE,
    ),
    "one content part": (chunk({"content": {"type": "text", "text": "whole answer"}}), STOP, DONE),
    "text within a part": (chunk({"content": [{"type": "text", "text": {"value": "whole answer"}}]}), STOP, DONE),
    "a delta that is a text": (chunk("whole answer"), STOP, DONE),
    "a whole message": (
        json.dumps({"choices": [{"message": {"content": "whole answer"}, "finish_reason": 1}]}).encode(),
    ),
    "a whole message after its pieces": (
        SAY,
        event({"choices": [{"message": {"content": "whole answer"}, "finish_reason": "stop"}]}),
        DONE,
    ),
    "an empty error": (chunk({"content": "whole answer"}, error={"code": 0, "message": ""}), STOP, DONE),
    "an error that is a success": (SAY, event({"base_resp": {"status_code": 0, "status_msg": "success"}}), STOP, DONE),
}


@pytest.mark.parametrize("length", [0, 1, 7], ids=["whole", "by the byte", "by seven"])
@pytest.mark.parametrize("raw", TEXTS.values(), ids=TEXTS.keys())
async def test_a_chat_completion_is_read_whatever_stands_beside_it(
    tmp_path: Path, raw: tuple[bytes, ...], length: int
) -> None:
    message = await reply_to(fast, tmp_path, *in_pieces(raw, length))
    assert (message.text, message.stop_reason, message.error) == ("whole answer", "stop", None)


async def test_a_connection_that_breaks_after_the_end_of_the_answer_costs_nothing(tmp_path: Path) -> None:
    async with fast([Reply(text="whole answer", piece_length=20, cut_after=3)], tmp_path, ONCE) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert (message.text, message.stop_reason, message.error) == ("whole answer", "stop", None)


async def test_any_status_of_a_success_is_one(tmp_path: Path) -> None:
    body = json.dumps({"choices": [{"message": {"content": "whole answer"}, "finish_reason": "stop"}]})
    async with fast([Reply(status=201, body=body)], tmp_path, ONCE) as provider:
        assert (await final(provider.model, request_for(provider.model_id))).text == "whole answer"


CALLS: dict[str, tuple[bytes, ...]] = {
    "as OpenAI sends it": call(),
    "index as a text": call(index="0"),
    "index of another type": call(index={"at": 0}),
    "no type": call(type=None),
    "arguments as an object": call(function={"name": "shell", "arguments": {"command": "ls"}}),
    "fields without a function": call(function=None, name="shell", arguments='{"command": "ls"}'),
    "not in a list": (
        chunk({"tool_calls": {"id": "call_1", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}}),
        STOP,
        DONE,
    ),
    "in a second choice": (
        event(
            {
                "choices": [
                    {"index": 0, "delta": {"content": ""}, "finish_reason": "stop"},
                    {"index": 1, **json.loads(call()[0][6:])["choices"][0], "finish_reason": "tool_calls"},
                ]
            }
        ),
        DONE,
    ),
    "in an object for choices": (event({"choices": json.loads(call()[0][6:])["choices"][0]}), STOP, DONE),
}


@pytest.mark.parametrize("raw", CALLS.values(), ids=CALLS.keys())
async def test_a_call_is_read_whatever_its_form(tmp_path: Path, raw: tuple[bytes, ...]) -> None:
    message = await reply_to(fast, tmp_path, *raw)
    assert (message.tool_calls, message.stop_reason, message.error) == (SHELL, "tool_use", None)


async def test_ids_that_are_numbers_are_ids(tmp_path: Path) -> None:
    assert (await reply_to(fast, tmp_path, *call(id=17))).tool_calls == (ToolCall("17", "shell", {"command": "ls"}),)


async def test_thoughts_are_read_in_any_form(tmp_path: Path) -> None:
    raw = (
        chunk({"reasoning": {"text": "so"}}),
        chunk({"reasoning_content": [" and ", {"summary": "so"}]}),
        SAY,
        STOP,
        DONE,
    )
    message = await reply_to(fast, tmp_path, *raw)
    assert message.content == (Thinking("so and so"), Text("whole answer"))


@pytest.mark.parametrize(
    "pieces",
    [
        (b'"hi \\ud83d"', b'"\\ude42 you"'),
        (b'"hi \xf0\x9f"', b'"\x99\x82 you"'),
        (b'"hi \xf0"', b'"\x9f"', b'"\x99"', b'"\x82 you"'),
    ],
    ids=["surrogates", "two bytes", "single bytes"],
)
async def test_a_character_that_is_split_over_events_is_joined(tmp_path: Path, pieces: tuple[bytes, ...]) -> None:
    texts = [b'data: {"choices":[{"delta":{"content":' + piece + b"}}]}\n\n" for piece in pieces]
    thoughts = [text.replace(b"content", b"reasoning_content") for text in texts]
    message = await reply_to(fast, tmp_path, *thoughts, *texts, STOP, DONE)
    assert message.content == (Thinking("hi 🙂 you"), Text("hi 🙂 you"))


async def test_a_character_in_arguments_that_is_split_over_events_is_joined(tmp_path: Path) -> None:
    pieces = (b'"{\\"command\\": \\"\\ud83d"', b'"\\ude42\\"}"')
    raw = [
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"shell","arguments":'
        + piece
        + b"}}]}}]}\n\n"
        for piece in pieces
    ]
    message = await reply_to(fast, tmp_path, *raw, STOP, DONE)
    assert message.tool_calls == (ToolCall("call_1", "shell", {"command": "🙂"}),)


async def test_half_a_character_that_stays_alone_is_replaced(tmp_path: Path) -> None:
    raw = (b'data: {"choices":[{"delta":{"content":"so \\ud83d"}}]}\n\n', STOP, DONE)
    assert (await reply_to(fast, tmp_path, *raw)).text == "so \ufffd"


ERRORS: dict[str, bytes] = {
    "wrapped": event({"error": {"message": "it broke", "code": 400}}),
    "a text": event({"error": "it broke"}),
    "bare": event({"message": "it broke", "type": "server_error", "code": None}),
    "of vLLM": event({"object": "error", "message": "it broke", "type": "BadRequestError", "code": 400}),
    "of FastAPI": event({"detail": "it broke"}),
    "of FastAPI in a list": event({"detail": [{"msg": "it broke"}]}),
    "of MiniMax": event({"choices": None, "base_resp": {"status_code": 1000, "status_msg": "it broke"}}),
    "of DashScope": event({"code": "InternalError", "message": "it broke", "request_id": "x"}),
    "named by its event": b"event: error\ndata: it broke\n\n",
    "without a prefix": b'{"error": {"message": "it broke"}}\n\n',
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS.keys())
@pytest.mark.parametrize("before", [(), (SAY,)], ids=["at once", "after text"])
async def test_an_error_in_any_form_fails_the_reply(tmp_path: Path, before: tuple[bytes, ...], error: bytes) -> None:
    message = await reply_to(fast, tmp_path, *before, error, DONE)
    assert message.stop_reason == "error"
    assert "it broke" in (message.error or "")


@pytest.mark.parametrize("line", [b'{"type": "ping"}', b'{"type": "keepalive", "message": "busy"}'])
async def test_a_plain_line_that_is_no_error_fails_no_reply(tmp_path: Path, line: bytes) -> None:
    message = await reply_to(fast, tmp_path, SAY, line + b"\n\n", STOP, DONE)
    assert (message.text, message.error) == ("whole answer", None)


def messages_event(kind: str, **fields: JsonValue) -> bytes:
    return event({"type": kind, **fields}, kind)


def message_events(block: JsonObject, *deltas: JsonObject, stop: JsonValue = "end_turn") -> tuple[bytes, ...]:
    return (
        messages_event("message_start", message={"content": None, "usage": []}),
        messages_event("content_block_start", index="0", content_block=block),
        *(messages_event("content_block_delta", index="0", delta=delta) for delta in deltas),
        messages_event("content_block_stop", index="0"),
        messages_event("message_delta", delta={"stop_reason": stop, "stop_sequence": 7}, usage="none"),
    )


SAID = message_events({"type": "text", "text": None, "citations": None}, {"type": "text_delta", "text": "whole answer"})
MESSAGES: dict[str, tuple[bytes, ...]] = {
    "odd fields": (*SAID, messages_event("message_stop")),
    "keep-alives": (b"data:\n\n", b"data: ping\n\n", event({"type": "ping"}), *SAID, messages_event("message_stop")),
    "the end mark of another API": (*SAID, DONE),
    "types in the names of events": tuple(part.replace(b'{"type": "', b'{"kind": "', 1) for part in SAID),
    "a whole message": (
        b'{"type": "message", "content": [null, {"type": "text", "text": "whole answer"}], "usage": 3}',
    ),
    "a whole message with a text": (b'{"type": "message", "content": "whole answer", "stop_reason": null}',),
}


@pytest.mark.parametrize("raw", MESSAGES.values(), ids=MESSAGES.keys())
async def test_a_message_of_anthropic_s_form_is_read_whatever_stands_beside_it(
    tmp_path: Path, raw: tuple[bytes, ...]
) -> None:
    message = await reply_to(anthropic, tmp_path, *raw)
    assert (message.text, message.stop_reason, message.error) == ("whole answer", "stop", None)


async def test_a_call_of_anthropic_s_form_is_read_whatever_its_types(tmp_path: Path) -> None:
    begun: JsonObject = {"type": "tool_use", "id": 17, "name": "shell", "input": None}
    delta: JsonObject = {"type": "input_json_delta", "partial_json": {"command": "ls"}}
    message = await reply_to(anthropic, tmp_path, *message_events(begun, delta, stop="tool_use"))
    assert message.tool_calls == (ToolCall("17", "shell", {"command": "ls"}),)


def items(*, index: JsonValue, **item: JsonValue) -> tuple[bytes, ...]:
    return (
        event({"type": "response.output_item.added", "output_index": index, "item": {**item, "content": None}}),
        event({"type": "response.output_item.done", "output_index": index, "item": item}),
    )


COMPLETED = event({"type": "response.completed", "response": {"status": "completed", "usage": [], "output": {}}})
OUTPUT: JsonObject = {
    "type": "message",
    "content": [None, {"type": "output_text", "text": "whole answer", "annotations": 3}],
}
RESPONSES: dict[str, tuple[bytes, ...]] = {
    "odd fields": (*items(index="0", **OUTPUT), COMPLETED),
    "keep-alives": (b"data:\n\n", b"data: ping\n\n", event(None), *items(index=0, **OUTPUT), COMPLETED),
    "types in the names of events": (
        b'event: response.output_text.delta\ndata: {"delta": "whole answer", "output_index": 0}\n\n',
        b"event: response.completed\ndata: {}\n\n",
    ),
    "a text for the content": (*items(index=0, type="message", content="whole answer"), COMPLETED),
    "a whole response": (json.dumps({"status": "completed", "output": [None, OUTPUT], "usage": ""}).encode(),),
}


@pytest.mark.parametrize("raw", RESPONSES.values(), ids=RESPONSES.keys())
async def test_a_response_is_read_whatever_stands_beside_it(tmp_path: Path, raw: tuple[bytes, ...]) -> None:
    message = await reply_to(responses, tmp_path, *raw)
    assert (message.text, message.stop_reason, message.error) == ("whole answer", "stop", None)


async def test_a_call_that_only_the_last_event_of_a_response_names_is_read(tmp_path: Path) -> None:
    function: JsonObject = {
        "type": "function_call",
        "call_id": "call_1",
        "name": "shell",
        "arguments": {"command": "ls"},
    }
    end = event({"type": "response.completed", "response": {"status": "completed", "output": [OUTPUT, function]}})
    message = await reply_to(responses, tmp_path, *items(index=0, **OUTPUT), end)
    assert (message.text, message.tool_calls) == ("whole answer", SHELL)


async def test_an_end_before_the_answer_is_no_stop(tmp_path: Path) -> None:
    paused = message_events({"type": "text", "text": "So far"}, stop="pause_turn")
    incomplete = json.dumps({"status": "incomplete", "output": [OUTPUT]}).encode()
    announced = (SAY, chunk(None, "tool_calls"), DONE)
    replies = ((anthropic, paused), (responses, (incomplete,)), (fast, announced))
    ends = [(await reply_to(open_provider, tmp_path, *raw)).stop_reason for open_provider, raw in replies]
    assert ends == ["tool_use"] * 3


async def test_what_was_skipped_is_counted_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await reply_to(fast, tmp_path, b"data: ping\n\n", chunk(usage=[]), SAY, STOP, DONE)
    assert "Test server: skipped 2 parts of a reply, the first in: ping" in caplog.messages
