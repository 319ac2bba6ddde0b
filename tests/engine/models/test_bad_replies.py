"""Faulty servers: each reply ends with a message that says what to do, and the next reply succeeds."""

import asyncio
import socket
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage, ToolCall
from errand.engine.models.base import ReplyEnd, Retry
from errand.engine.models.endpoint import ModelEndpoint, Timeouts
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from tests.engine.models.providers import FAST, ONCE, PATIENT, QUICK, OpenProvider, anthropic, fast, library, stored_key
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import collect, final, request_for
from tests.support.model_server import Call, Reply

KEY = "sk-secret-key-123456"


@pytest.fixture(params=[fast, anthropic, library], ids=["openai_compatible", "anthropic", "litellm"])
def open_provider(request: pytest.FixtureRequest) -> OpenProvider:
    return request.param


async def bad_then_good(open_provider: OpenProvider, folder: Path, bad: Reply, timeouts: Timeouts = PATIENT) -> str:
    """The error of a bad reply; the reply after it must be complete."""
    async with open_provider([bad, Reply(text="fine")], folder, ONCE, timeouts) as provider:
        failed = await final(provider.model, request_for(provider.model_id))
        good = await final(provider.model, request_for(provider.model_id))
    assert failed.stop_reason == "error"
    assert (good.text, good.error) == ("fine", None)
    assert KEY not in (failed.error or "")
    return failed.error or ""


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (Reply(status=401, error=f"Incorrect API key provided: {KEY}"), "Check the"),
        (Reply(status=403, error=f"no access with {KEY}"), "does not allow this"),
        (Reply(status=404, error="model not found"), "Check the model's name"),
        (Reply(status=429, error="slow down"), "limits how much can be asked"),
        (Reply(status=500, error="boom"), "Try again later."),
        (Reply(status=503, body="<html>overloaded</html>"), "Try again later"),
    ],
    ids=["401", "403", "404", "429", "500", "503 with a web page"],
)
async def test_refusal_gives_advice_and_never_the_key(
    open_provider: OpenProvider, tmp_path: Path, bad: Reply, says: str
) -> None:
    assert says in await bad_then_good(open_provider, tmp_path, bad)


async def test_too_long_conversation_is_reported_as_such(open_provider: OpenProvider, tmp_path: Path) -> None:
    body = '{"error": {"message": "maximum context length is 8192 tokens", "code": "context_length_exceeded"}}'
    error = await bad_then_good(open_provider, tmp_path, Reply(status=400, body=body))
    assert "Start a new conversation" in error


async def test_cut_stream_is_an_error_that_keeps_received_content(open_provider: OpenProvider, tmp_path: Path) -> None:
    async with open_provider([Reply(text="abcdefgh" * 9, cut_after=4)], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert message.stop_reason == "error"
    assert "broke off" in (message.error or "")
    assert message.text in ("abcdefgh" * 2, "abcdefgh" * 3)  # the first pieces of a format have no text


async def test_an_empty_reply_is_an_error(open_provider: OpenProvider, tmp_path: Path) -> None:
    assert "empty reply" in await bad_then_good(open_provider, tmp_path, Reply(text=""))


async def test_an_empty_body_is_an_error(open_provider: OpenProvider, tmp_path: Path) -> None:
    assert "empty reply" in await bad_then_good(open_provider, tmp_path, Reply(raw=()))


async def test_a_stall_before_the_reply_is_an_error(open_provider: OpenProvider, tmp_path: Path) -> None:
    error = await bad_then_good(open_provider, tmp_path, Reply(text="x", stall_after=0), Timeouts(0.3, 0.3))
    assert "sent nothing for" in error


async def test_a_stall_in_the_middle_is_an_error(open_provider: OpenProvider, tmp_path: Path) -> None:
    error = await bad_then_good(open_provider, tmp_path, Reply(text="x" * 50, stall_after=3), Timeouts(5, 0.3))
    assert "sent nothing for" in error


async def test_arguments_that_are_no_json_object_are_marked(open_provider: OpenProvider, tmp_path: Path) -> None:
    bad = (Call("shell", '{"command": "ls'), Call("shell", "[1]"), Call("shell", ""))
    async with open_provider([Reply(calls=bad)], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert message.tool_calls == (
        ToolCall("call_0", "shell", {}, '{"command": "ls'),
        ToolCall("call_1", "shell", {}, "[1]"),
        ToolCall("call_2", "shell", {}),
    )


async def test_two_calls_with_one_index_stay_separate(open_provider: OpenProvider, tmp_path: Path) -> None:
    calls = (Call("shell", {"command": "a"}, index=0, id="one"), Call("shell", {"command": "b"}, index=0, id="two"))
    async with open_provider([Reply(calls=calls)], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert message.tool_calls == (
        ToolCall("one", "shell", {"command": "a"}),
        ToolCall("two", "shell", {"command": "b"}),
    )


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ((b"<html><body>Welcome to nginx</body></html>",), "no model server"),
        ((b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n', b"data: {bad\n\n"), "not a model reply"),
        ((b'data: {"choices": 7}\n\n',), "not a model reply"),
        ((b"\x00\xff\xfe\x80" * 100,), "no model server"),
        ((b'data: {"choices":[{"delta":{"content":"cut"}}]}\n\n',), "broke off"),
        ((b"data: " + b"[" * 100_000 + b"\n\n",), "not a model reply"),
        ((b'data: {"choices":[' + b"[]," * 300_000 + b"[]]}\n\n",), "not a model reply"),
        ((b'data: {"error": {"message": "provider fell over", "code": 502}}\n\n',), "provider fell over"),
        ((b'data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}\n\n',), "content filter"),
    ],
    ids=["web page", "bad json", "bad shape", "bytes", "cut", "deep", "many values", "error inside", "filtered"],
)
async def test_garbage_response_gives_a_readable_error(tmp_path: Path, raw: tuple[bytes, ...], says: str) -> None:
    assert says in await bad_then_good(fast, tmp_path, Reply(raw=raw))


@pytest.mark.parametrize("length", [1, 2, 3, 7])
async def test_a_reply_survives_being_cut_anywhere_in_its_bytes(tmp_path: Path, length: int) -> None:
    body = (
        ': ping\r\n\r\nevent: message\r\ndata: {"choices":[{"delta":{"content":"één 🙂 "}}]}\r\n\r\n'
        'data:{"choices":[{"delta":{"content":"deux"}}]}\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
        "data: [DONE]"
    ).encode()
    raw = tuple(body[at : at + length] for at in range(0, len(body), length))
    async with fast([Reply(raw=raw)], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert (message.text, message.stop_reason, message.error) == ("één 🙂 deux", "stop", None)


async def test_non_streaming_response_is_accepted(tmp_path: Path) -> None:
    body = b'{\n "choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]\n}'
    async with fast([Reply(raw=(body,))], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert (message.text, message.stop_reason) == ("whole", "stop")


async def test_reply_without_done_is_complete_if_it_has_a_finish_reason(tmp_path: Path) -> None:
    async with fast([Reply(text="whole", done=False)], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert (message.text, message.stop_reason) == ("whole", "stop")


async def test_length_stop_is_reported(tmp_path: Path) -> None:
    async with fast([Reply(text="and so", finish="length")], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert (message.text, message.stop_reason) == ("and so", "length")


@pytest.mark.parametrize(
    "bad",
    [
        Reply(status=429, error="slow down", headers={"Retry-After": "0"}),
        Reply(status=500, error="boom"),
        Reply(status=529, error="overloaded"),
        Reply(text="abcdefgh" * 5, cut_after=3),
        Reply(text=""),
    ],
    ids=["429", "500", "529", "cut", "empty"],
)
async def test_temporary_failure_is_retried_and_shown(open_provider: OpenProvider, tmp_path: Path, bad: Reply) -> None:
    async with open_provider([bad, Reply(text="fine")], tmp_path, QUICK) as provider:
        events = await collect(provider.model, request_for(provider.model_id))
        message = _last(events[-1])
    retries = [event for event in events if isinstance(event, Retry)]
    assert [(retry.attempt, retry.max_attempts) for retry in retries] == [(1, 3)]
    assert (message.text, message.stop_reason) == ("fine", "stop")


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_permanent_failure_is_not_retried(open_provider: OpenProvider, tmp_path: Path, status: int) -> None:
    async with open_provider([Reply(status=status, error="no")] * 3, tmp_path, QUICK) as provider:
        await final(provider.model, request_for(provider.model_id))
        assert provider.server is not None
        assert len(provider.server.requests) == 1


async def test_missing_credit_is_not_retried(tmp_path: Path) -> None:
    body = '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    async with fast([Reply(status=429, body=body)] * 3, tmp_path, QUICK) as provider:
        message = await final(provider.model, request_for(provider.model_id))
        assert provider.server is not None
        assert len(provider.server.requests) == 1
    assert "no credit left" in (message.error or "")


async def test_unreachable_server_is_named_and_retried(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        connections = HttpPool()
        provider = HttpModel(ModelEndpoint(FAST, base, stored_key), ChatCompletions, connections)
        model = RecoveringModel(ModelSource(provider), QUICK)
        events = await collect(model, request_for("openai_compatible/x"))
        await connections.close()
    message = _last(events[-1])
    assert [event.attempt for event in events if isinstance(event, Retry)] == [1, 2]
    assert f"Cannot reach Test server at {base}" in (message.error or "")
    assert "(Tried 3 times.)" in (message.error or "")


async def test_cancel_closes_the_socket(tmp_path: Path) -> None:
    cancel = CancelSignal()
    async with fast([Reply(text="x", stall_after=0)], tmp_path) as provider:
        assert provider.server is not None
        asking = asyncio.create_task(final(provider.model, request_for(provider.model_id), cancel))
        received = await provider.server.request(0)
        cancel.set()
        async with asyncio.timeout(WAIT_LIMIT_S):
            await received.gone.wait()
        assert (await asking).stop_reason == "aborted"


async def test_cancel_ends_the_wait_between_attempts(tmp_path: Path) -> None:
    cancel = CancelSignal()
    patient = RetryPolicy(attempts=3, first_delay_s=60)
    async with fast([Reply(status=500, error="boom")], tmp_path, patient) as provider:
        message = AssistantMessage()
        async with asyncio.timeout(WAIT_LIMIT_S):
            async for event in provider.model.stream(request_for(provider.model_id), cancel):
                if isinstance(event, Retry):
                    cancel.set()
                else:
                    message = _last(event)
    assert message.stop_reason == "aborted"


def _last(event: object) -> AssistantMessage:
    assert isinstance(event, ReplyEnd)
    return event.message
