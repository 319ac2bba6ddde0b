"""Usage of replies that nobody counted: stopped, failed midway, retried; and reasoning billed separately."""

from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Usage
from errand.engine.models.base import BlockDelta, ReplyEnd
from errand.engine.models.catalog.providers import find
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.source import ModelSource
from errand.protocol.base import JsonObject
from tests.engine.models.providers import ONCE, QUICK, OpenProvider, fast, proxy, stored_key
from tests.support.model_replies import final, request_for
from tests.support.model_server import ModelServer, Reply

TEXT = "one two three four five six "  # 28 characters
PROVIDER_OPENERS = [pytest.param(fast, id="direct"), pytest.param(proxy, id="through another machine")]


@pytest.mark.parametrize("open_provider", PROVIDER_OPENERS)
async def test_usage_of_a_broken_reply_is_estimated_and_added_to_that_of_the_retry(
    tmp_path: Path, open_provider: OpenProvider
) -> None:
    async with open_provider([Reply(text=TEXT, cut_after=4), Reply(text="Done.")], tmp_path, QUICK) as opened:
        usage = (await final(opened.model, request_for(opened.model_id))).usage
    # 24 characters came in three pieces; nothing of the request is left out.
    assert (usage.output_tokens, usage.estimated) == (20 + 6, True)
    assert usage.input_tokens > 100


async def test_reply_that_breaks_off_after_its_request_was_counted_is_estimated_and_keeps_the_count(
    tmp_path: Path,
) -> None:
    begun: JsonObject = {
        "choices": [{"index": 0, "delta": {"content": TEXT}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000},
    }
    cut = Reply(raw=(b"data: " + msgspec.json.encode(begun) + b"\n\n",))
    async with fast([cut], tmp_path, ONCE) as opened:
        usage = (await final(opened.model, request_for(opened.model_id))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (1000, len(TEXT) // 4, True)


async def test_usage_and_cost_of_a_stopped_reply_are_estimated() -> None:
    provider = find("openai")
    assert provider is not None
    cancel = CancelSignal()
    connections = HttpPool()
    async with ModelServer([Reply(text=TEXT, stall_after=3)]) as server:
        asked = HttpModel(ModelEndpoint(provider, server.url, stored_key), ChatCompletions, connections)
        model = RecoveringModel(ModelSource(asked), ONCE)
        async with aclosing(model.stream(request_for("openai/gpt-5.4"), cancel)) as events:
            end = None
            async for event in events:
                if isinstance(event, BlockDelta):
                    cancel.set()
                end = event
        await model.close()
        await connections.close()
    assert isinstance(end, ReplyEnd)
    usage = end.message.usage
    assert (end.message.stop_reason, usage.estimated) == ("aborted", True)
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert usage.cost_usd > 0


async def test_refused_request_has_no_usage(tmp_path: Path) -> None:
    async with fast([Reply(status=401, error="no")], tmp_path) as provider:
        assert (await final(provider.model, request_for(provider.model_id))).usage == Usage()


async def test_usage_is_estimated_if_the_server_reports_none(tmp_path: Path) -> None:
    async with fast([Reply(text=TEXT, usage=(0, 0))], tmp_path) as provider:
        usage = (await final(provider.model, request_for(provider.model_id))).usage
    assert (usage.output_tokens, usage.estimated) == (7, True)


@pytest.mark.parametrize(
    ("reported", "output"),
    [
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}, 103),  # xAI: separate from the completion
        ({"prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 135}, 103),  # OpenAI: included in it
        ({"prompt_tokens": 32, "completion_tokens": 9}, 9),
    ],
)
async def test_separately_reported_reasoning_tokens_are_counted_once(
    tmp_path: Path, reported: dict[str, int], output: int
) -> None:
    usage: JsonObject = {**reported, "completion_tokens_details": {"reasoning_tokens": 94}}
    chunks: tuple[JsonObject, ...] = (
        {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    )
    raw = tuple(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)
    async with fast([Reply(raw=(*raw, b"data: [DONE]\n\n"))], tmp_path) as provider:
        counted = (await final(provider.model, request_for(provider.model_id))).usage
    assert replace(counted, cost_usd=0.0) == Usage(32, output)
