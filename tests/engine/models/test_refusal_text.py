"""Requests that are too long, in the words of many servers, and what must not be taken for that."""

import json
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.messages import user_text
from errand.engine.models.base import ModelRequest, RefusedSize, ReplyEnd
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.served_facts import ServedFacts
from errand.engine.models.failures import FailureKind, failure_from_response
from errand.engine.models.refusal_text import stated_sizes
from tests.engine.models.providers import ONCE, OpenProvider, anthropic, fast, responses
from tests.support.model_replies import collect
from tests.support.model_server import Reply


class Refusals(msgspec.Struct, frozen=True):
    """Refusals by server, status and text."""

    too_long: list[tuple[str, int, str]]
    other: list[tuple[str, int, str]]


REFUSALS = msgspec.json.decode((Path(__file__).parent / "refusals.json").read_bytes(), type=Refusals)
# About 30,000 tokens at four characters each.
REQUEST = ModelRequest("any/model", "", (user_text("word " * 24_000),))


@pytest.mark.parametrize(("server", "status", "text"), REFUSALS.too_long, ids=[row[0] for row in REFUSALS.too_long])
def test_a_request_that_is_too_long_is_understood(server: str, status: int, text: str) -> None:
    assert kind_of(server, status, text) is FailureKind.TOO_LONG


@pytest.mark.parametrize(("server", "status", "text"), REFUSALS.other, ids=[row[0] for row in REFUSALS.other])
def test_other_refusals_are_not_taken_for_requests_that_are_too_long(server: str, status: int, text: str) -> None:
    assert kind_of(server, status, text) is not FailureKind.TOO_LONG


def kind_of(server: str, status: int, text: str) -> FailureKind:
    return failure_from_response(server, status, {}, json.dumps({"error": {"message": text}}).encode()).kind


def test_the_refusal_of_a_provider_inside_that_of_a_gateway_is_read() -> None:
    inner = json.dumps({"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum"}})
    body = json.dumps({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": inner}}})
    assert failure_from_response("Gateway", 400, {}, body.encode()).kind is FailureKind.TOO_LONG
    body = json.dumps({"error": "Bad Request", "message": "prompt is too long: 213462 tokens > 200000 maximum"})
    assert failure_from_response("Gateway", 400, {}, body.encode()).kind is FailureKind.TOO_LONG


async def end_of(open_provider: OpenProvider, folder: Path, status: int, text: str) -> ReplyEnd:
    async with open_provider([Reply(status=status, error=text)], folder, ONCE) as provider:
        end = (await collect(provider.model, ModelRequest(provider.model_id, "", REQUEST.messages)))[-1]
    assert isinstance(end, ReplyEnd)
    return end


@pytest.mark.parametrize("open_provider", [fast, anthropic, responses])
@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Le texte compte 31000 tokens, 16384 sont permis."),
        (422, "taille 31000, permis 16384"),
        (413, "size 119800, allowed 65536"),
        (422, "length: 29,500; allowed: 8,192"),
        (429, "This request would exceed your organization's rate limit of 20,000 input tokens per minute."),
    ],
)
async def test_numbers_near_the_size_of_the_request_tell_that_it_is_too_long(
    open_provider: OpenProvider, tmp_path: Path, status: int, text: str
) -> None:
    end = await end_of(open_provider, tmp_path, status, text)
    assert (end.failure, end.retry_later) == (FailureKind.TOO_LONG, None)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "size 119800 of the image, allowed 65536"),
        (400, "invalid date 20260101, version 30000"),
        (400, "max_tokens is too large: 30000. This model supports at most 16384 completion tokens."),
        (429, "Rate limit reached on tokens per min (TPM): Limit 60000, Used 58000, Requested 30000."),
        (429, "This request would exceed your organization's rate limit of 40,000 input tokens per minute."),
        (429, "Rate limit: at most 1000 requests of any tokens per minute."),
    ],
)
async def test_numbers_of_something_else_do_not(tmp_path: Path, status: int, text: str) -> None:
    assert (await end_of(fast, tmp_path, status, text)).failure is not FailureKind.TOO_LONG


async def test_a_rate_limit_of_zero_is_not_waited_for(tmp_path: Path) -> None:
    text = "You exceeded your current quota. Quota exceeded for metric: free_tier_requests, limit: 0, model: m"
    end = await end_of(fast, tmp_path, 429, text)
    assert (end.failure, end.retry_later) == (FailureKind.NOT_USABLE, None)


async def test_an_error_in_a_stream_tells_it_too(tmp_path: Path) -> None:
    error = json.dumps({"error": {"message": "Prompt has 300000 tokens, which exceeds the maximum of 262144"}})
    async with fast([Reply(raw=(f"data: {error}\n\n".encode(),))], tmp_path, ONCE) as provider:
        end = (await collect(provider.model, ModelRequest(provider.model_id, "", REQUEST.messages)))[-1]
    assert isinstance(end, ReplyEnd)
    assert end.failure is FailureKind.TOO_LONG


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("request (31000 tokens) exceeds the available context size (4096 tokens), try increasing it", (31000, 4096)),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 30,500 tokens (29,500 in the "
            "messages, 1000 in the completion).",
            (29500, 8192),
        ),
        ("the context size of 2048 tokens is exceeded", (None, 2048)),
        ('{"n_prompt_tokens": 31000, "n_ctx": 4096}', (31000, 4096)),
        ("the prompt exceeds the context window of 200K tokens", (None, None)),
        ("the context length of granite-2048-instruct is exceeded", (None, None)),
        ("the prompt is too long", (None, None)),
        ("error 400: context length 12", (None, None)),
    ],
)
def test_the_sizes_in_a_refusal_are_read(text: str, sizes: tuple[int | None, int | None]) -> None:
    assert stated_sizes(text, 30_000) == sizes


async def test_the_window_that_a_refusal_names_is_kept(tmp_path: Path) -> None:
    model_facts.use_served(ServedFacts())  # without what servers of other tests said
    text = "request (31000 tokens) exceeds the available context size (4096 tokens), try increasing it"
    end = await end_of(fast, tmp_path, 400, text)
    assert end.size == RefusedSize(31000, 4096)
    facts = model_facts.facts(end.message.model)
    assert facts is not None
    assert facts.context_tokens == 4096
    model_facts.use_served(ServedFacts())
