"""Hostile model servers: unbounded replies, endless events, impossible numbers."""

import asyncio
import gzip
import json
import time
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.messages import AssistantMessage, Text
from errand.engine.models.base import ChatModel
from errand.engine.models.endpoint import ModelEndpoint, Timeouts
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.litellm.model import LiteLLMModel
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.proxy.model import ProxyModel
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.reply.content import REPLY_LIMITS, ReplyLimits
from errand.protocol.base import JsonObject, JsonValue
from tests.attacks.campaign import Campaign
from tests.engine.models.providers import FAST, LIBRARY, stored_key
from tests.support.command_line import Errand
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import final, request_for
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.provider_servers import sharing
from tests.support.warm_library import warm_process

MODEL = ("--model", "openai_compatible/test-model", "--api-base")
_ONCE = RetryPolicy(attempts=1)
_SMALL = ReplyLimits(
    text=20_000,
    thinking=10_000,
    call_arguments=10_000,
    arguments=15_000,
    calls=16,
    blocks=50,
    stream_bytes=1_000_000,
)
_WAYS = ("openai_compatible", "litellm", "react", "proxy")


def limits_of(campaign: Campaign) -> ReplyLimits:
    """The real limits in a long campaign; in a short one small limits, so that a small attack exceeds them."""
    return REPLY_LIMITS if campaign.is_long else _SMALL


def event(delta: JsonObject) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def call(index: int, arguments: str, name: str = "shell", call_id: str = "") -> bytes:
    function: JsonObject = {"name": name, "arguments": arguments}
    return event({"tool_calls": [{"index": index, "id": call_id or f"call_{index}", "function": function}]})


@asynccontextmanager
async def attacked(
    model_kind: str, replies: Sequence[Reply], folder: Path, limits: ReplyLimits
) -> AsyncGenerator[ChatModel]:
    """A model of each kind, with a server that sends `replies`."""
    connections, timeouts = HttpPool(), Timeouts()
    async with ModelServer(replies) as server:
        fast = HttpModel(ModelEndpoint(FAST, server.url, stored_key), ChatCompletions, connections, timeouts, limits)
        match model_kind:
            case "litellm":
                process = warm_process()
                library = LiteLLMModel(ModelEndpoint(LIBRARY, server.url, stored_key), process, timeouts, limits)
                yield RecoveringModel(ModelSource(library), _ONCE, limits)
                await process.close()
            case "proxy":
                async with sharing(server.url.removesuffix("/v1"), folder, _ONCE) as shared:
                    endpoint = ModelEndpoint(shared.row, shared.url, shared.token)
                    remote = ProxyModel(endpoint, connections, timeouts, limits)
                    yield RecoveringModel(ModelSource(remote), _ONCE, limits)
            case _:
                yield RecoveringModel(ModelSource(fast), _ONCE, limits)
        await connections.close()


async def reply_of(model_kind: str, reply: Reply, folder: Path, limits: ReplyLimits) -> AssistantMessage:
    names = {"litellm": "openai/test-model", "proxy": "proxy/ollama/test-model", "react": "react/x/test-model"}
    async with asyncio.timeout(WAIT_LIMIT_S), attacked(model_kind, [reply], folder, limits) as model:
        return await final(model, request_for(names.get(model_kind, "x/test-model")))


@pytest.mark.parametrize("model_kind", _WAYS)
async def test_a_reply_of_endless_text_is_cut_and_what_came_is_kept(
    campaign: Campaign, tmp_path: Path, model_kind: str
) -> None:
    limits = limits_of(campaign)
    pieces = tuple(event({"content": f"{number:08} " + "word " * 18}) for number in range(limits.text // 50))
    message = await reply_of(model_kind, Reply(raw=pieces), tmp_path, limits)
    assert (message.stop_reason, message.cut) == ("length", f"has more than {limits.text:,} characters of text")
    assert limits.text - 200 <= len(message.text) <= limits.text + 200
    assert message.text.endswith(f"[The reply was cut here by the app: it {message.cut}.]")
    campaign.count("endless replies cut")


@pytest.mark.parametrize("model_kind", _WAYS)
async def test_endless_thinking_is_cut(campaign: Campaign, tmp_path: Path, model_kind: str) -> None:
    limits = limits_of(campaign)
    pieces = tuple(event({"reasoning_content": f"{n:08} " + "hmm " * 23}) for n in range(limits.thinking // 50))
    message = await reply_of(model_kind, Reply(raw=pieces), tmp_path, limits)
    assert (message.stop_reason, message.cut) == ("length", f"has more than {limits.thinking:,} characters of thinking")


@pytest.mark.parametrize("model_kind", ["openai_compatible", "litellm", "proxy"])
async def test_endless_arguments_are_cut(campaign: Campaign, tmp_path: Path, model_kind: str) -> None:
    limits = limits_of(campaign)
    pieces = (call(0, '{"command": "'), *[call(0, "x" * 100, name="")] * (limits.call_arguments // 50))
    message = await reply_of(model_kind, Reply(raw=pieces), tmp_path, limits)
    assert message.stop_reason == "length"
    assert "arguments" in message.cut
    assert [tool_call.name for tool_call in message.tool_calls] == ["shell"]


@pytest.mark.parametrize("model_kind", ["openai_compatible", "litellm", "proxy"])
async def test_a_reply_of_endless_calls_is_cut(campaign: Campaign, tmp_path: Path, model_kind: str) -> None:
    limits = limits_of(campaign)
    count = campaign.rounds(200, 200_000)
    function: JsonObject = {"name": "shell", "arguments": "{}"}
    calls: list[JsonValue] = [{"index": n, "id": f"c{n}", "function": function} for n in range(count)]
    pieces = [event({"tool_calls": [*calls[at : at + 1_000]]}) for at in range(0, count, 1_000)]
    message = await reply_of(model_kind, Reply(raw=tuple(pieces)), tmp_path, limits)
    assert (message.stop_reason, message.cut) == ("length", f"has more than {limits.calls:,} tool calls")
    assert len(message.tool_calls) == limits.calls


async def test_text_and_thinking_that_take_turns_for_ever_are_cut(campaign: Campaign, tmp_path: Path) -> None:
    limits = limits_of(campaign)
    turns = (event({"content": "a"}), event({"reasoning_content": "b"})) * limits.blocks
    message = await reply_of("openai_compatible", Reply(raw=turns), tmp_path, limits)
    assert (message.stop_reason, message.cut) == ("length", f"has more than {limits.blocks:,} parts")


async def test_a_body_that_says_nothing_for_ever_is_given_up(campaign: Campaign, tmp_path: Path) -> None:
    limits = limits_of(campaign)
    pings = (b": ping " + b"-" * 65_000 + b"\n\n",) * (limits.stream_bytes // 60_000)
    message = await reply_of("openai_compatible", Reply(raw=pings), tmp_path, limits)
    assert (message.stop_reason, message.cut) == ("length", "comes with more than can be a reply")


async def test_signs_of_life_keep_no_reply_open_for_longer_than_a_reply_may_take(tmp_path: Path) -> None:
    limits = ReplyLimits(seconds=0.2)
    pings = (event({"content": "begun"}), *[b": ping\n\n"] * 200)
    message = await reply_of("openai_compatible", Reply(raw=pings, piece_delay_s=0.02), tmp_path, limits)
    assert message.stop_reason == "length"
    assert message.cut.startswith("takes longer than")
    assert message.content[0] == Text("begun")


@pytest.mark.parametrize(
    "piece",
    [b"data: " + b"x" * 65_000, b"data: " + b"x" * 65_000 + b"\n"],
    ids=["a line", "an event"],
)
async def test_a_line_or_an_event_without_an_end_is_refused(tmp_path: Path, piece: bytes) -> None:
    message = await reply_of("openai_compatible", Reply(raw=(piece,) * 140), tmp_path, REPLY_LIMITS)
    assert message.stop_reason == "error"
    assert "endless line" in (message.error or "")


async def test_a_reply_that_unpacks_to_far_more_than_it_is_is_read_no_further(
    campaign: Campaign, tmp_path: Path
) -> None:
    bomb = gzip.compress(b"data: " + b" " * campaign.rounds(30, 300) * 1_000_000)
    reply = Reply(raw=(bomb,), headers={"Content-Encoding": "gzip"})
    tracemalloc.start()
    try:
        message = await reply_of("openai_compatible", reply, tmp_path, REPLY_LIMITS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (message.stop_reason, "endless line" in (message.error or "")) == ("error", True)
    assert peak < 25_000_000
    campaign.peak("memory of a packed reply, MB", peak / 1_000_000)


@pytest.mark.parametrize(
    "text",
    [" " * 20_000, "<think></think>" * 1_300, "<think>" * 2_500, "</think>" * 2_500, "<" * 20_000],
    ids=["blanks", "empty thoughts", "opened", "closed", "almost tags"],
)
@pytest.mark.parametrize("length", [4, 20_000], ids=["one by one", "at once"])
async def test_texts_made_of_tags_take_no_longer_than_others(tmp_path: Path, text: str, length: int) -> None:
    pieces = [event({"content": text[at : at + length]}) for at in range(0, len(text), length)]
    done = event({"content": "end"}) + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    async with asyncio.timeout(WAIT_LIMIT_S):
        message = await reply_of("react", Reply(raw=(b"".join(pieces) + done,)), tmp_path, REPLY_LIMITS)
    assert message.content


async def test_a_long_event_of_beginnings_of_the_key_holds_up_nobody(tmp_path: Path) -> None:
    longest_s = 0.0

    async def others() -> None:
        """Measure the processor time of this thread in each turn of the loop."""
        nonlocal longest_s
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.005)
            longest_s = max(longest_s, time.thread_time() - began)

    beginnings = ((await stored_key()) or "")[:6] * 80_000
    limits = replace(REPLY_LIMITS, repeated=len(beginnings) + 1)
    done = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    working = asyncio.create_task(others())
    try:
        message = await reply_of(
            "openai_compatible", Reply(raw=(event({"content": beginnings}), done)), tmp_path, limits
        )
    finally:
        working.cancel()
    assert message.content == (Text(beginnings),)
    assert longest_s < 0.5, longest_s


async def test_calls_without_a_bound_are_refused_said_and_the_task_goes_on(errand: Errand) -> None:
    calls = tuple(Call("shell", {"command": f"touch made_{number}"}) for number in range(200))
    async with ModelServer(replies=[Reply(calls=calls), Reply(text="Then one by one.")]) as server:
        done = await errand.run("run", "--approve", "all", *MODEL, server.url, "make them")
        results = [str(entry.get("content")) for entry in server.requests[1].messages if entry.get("role") == "tool"]
    assert done.code == 0, done.err
    assert "cut off because it has more than 128 tool calls" in " ".join(done.out.split())
    assert len(results) == 128
    assert all(
        "was not executed: the app cut the reply because it has more than 128 tool calls" in result
        for result in results
    )
    assert not list(errand.folder.glob("made_*"))


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens": 9223372036854775808, "completion_tokens": 99999999999999999999999999}',
        '{"prompt_tokens": -5, "completion_tokens": true, "cost": "much"}',
        '{"prompt_tokens": 1.5, "completion_tokens": [], "prompt_tokens_details": [1], "cost": 1e300}',
        '{"prompt_tokens": "12", "completion_tokens": {}, "prompt_tokens_details": {"cached_tokens": -1}, "cost": -1}',
    ],
    ids=["too large", "negative", "broken", "words"],
)
async def test_counts_that_cannot_be_true_cost_nobody_a_task(errand: Errand, usage: str) -> None:
    body = event({"content": "Fine."}) + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    body += b'data: {"choices": [], "usage": ' + usage.encode() + b"}\n\ndata: [DONE]\n\n"
    async with ModelServer(replies=[Reply(raw=(body,))]) as server:
        done = await errand.run("run", "--json", *MODEL, server.url, "go")
    result = done.lines[-1]
    assert (result["stopReason"], result["exitCode"]) == ("completed", 0)
    used = result["usage"]
    assert isinstance(used, dict)
    counts = [used.get("inputTokens", 0), used.get("outputTokens", 0), used.get("cacheReadTokens", 0)]
    assert all(isinstance(count, int) and 0 <= count <= 1_000_000_000 for count in counts)


@pytest.mark.parametrize("index", [-1, 10**9, 2**70])
async def test_a_call_may_have_any_number_it_likes(tmp_path: Path, index: int) -> None:
    pieces = (call(index, '{"command": "ls"}', call_id="a"), call(index, "", name="", call_id="a"))
    done = b'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    message = await reply_of("openai_compatible", Reply(raw=(*pieces, done)), tmp_path, REPLY_LIMITS)
    assert [tool_call.arguments for tool_call in message.tool_calls] == [{"command": "ls"}]
