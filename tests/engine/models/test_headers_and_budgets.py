"""What a program asks for with each request: headers of its own, and how many tokens the model may think."""

from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from errand.engine.agent.library import AgentRun, open_model
from errand.engine.agent.loop.agent import Agent, AgentOptions
from errand.engine.core.errors import ConfigurationError
from errand.engine.models.anthropic.messages_api import MessagesApi
from errand.engine.models.base import ModelOptions, level_for
from errand.engine.models.catalog.providers import Provider, find
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.litellm.model import LiteLLMModel
from errand.engine.models.openai.request import effort_fields
from errand.engine.models.proxy.model import ProxyModel
from errand.engine.models.proxy.wire import request_from_wire, request_to_wire
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.source import ModelSource
from errand.protocol.base import JsonObject
from tests.engine.models.providers import MESSAGES, ONCE, stored_key
from tests.support.loop_parts import WrittenStream, reply
from tests.support.model_replies import final, request_for
from tests.support.model_server import ModelServer, Reply
from tests.support.warm_library import warm_process

HEADERS = {"X-Team": "blue", "User-Agent": "my program"}


def _provider(name: str) -> Provider:
    row = find(name)
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("model_id", "path"),
    [("openai_compatible/test-model", ""), ("openai_compatible/test-model", "/responses"), ("anthropic/claude-x", "")],
)
async def test_headers_go_with_each_request(model_id: str, path: str) -> None:
    async with (
        ModelServer([Reply(text="One."), Reply(text="Two.")]) as server,
        open_model(model_id, api_base=server.url + path, api_key="my-key-0123456789", headers=HEADERS) as model,
    ):
        assert [(await final(model, request_for(model_id))).text for _ in range(2)] == ["One.", "Two."]
        sent = [{name.lower(): value for name, value in request.headers.items()} for request in server.requests]
    assert {(request_headers["x-team"], request_headers["user-agent"]) for request_headers in sent} == {
        ("blue", "my program")
    }
    assert all("my-key-0123456789" in str(request_headers) for request_headers in sent)


async def test_headers_and_budgets_go_through_the_process_of_litellm() -> None:
    process, model_id = warm_process(), "gemini/gemini-2.5-flash"
    async with ModelServer([Reply(text="Hello.")]) as server:
        endpoint = ModelEndpoint(_provider("gemini"), server.url, stored_key, headers={"X-Team": "blue"})
        model = RecoveringModel(ModelSource(LiteLLMModel(endpoint, process)), ONCE)
        options = ModelOptions(thinking_level="medium", thinking_budget=5_000)
        try:
            assert (await final(model, replace(request_for(model_id), options=options))).text == "Hello."
        finally:
            await process.close()
        (sent,) = server.requests
    assert {name.lower(): value for name, value in sent.headers.items()}["x-team"] == "blue"
    assert "'thinkingBudget': 5000" in str(sent.body)


async def test_headers_go_to_the_machine_that_shares_its_models() -> None:
    seen: list[str] = []

    async def refuse(request: web.Request) -> web.Response:
        seen.append(request.headers["X-Team"])
        return web.Response(status=500)

    connections, shared = HttpPool(), web.Application()
    shared.router.add_post("/api/stream", refuse)
    async with TestServer(shared) as server:
        endpoint = ModelEndpoint(_provider("proxy"), str(server.make_url("")), stored_key, headers=HEADERS)
        model = RecoveringModel(ModelSource(ProxyModel(endpoint, connections)), ONCE)
        assert (await final(model, request_for("proxy/ollama/test-model"))).stop_reason == "error"
        await connections.close()
    assert seen == ["blue"]


async def test_a_header_with_a_key_takes_the_place_of_ours_and_is_shown_to_nobody() -> None:
    headers = {"authorization": "Bearer secret-of-the-gateway-1"}
    replies = [Reply(status=400, error="secret-of-the-gateway-1 is no key of ours"), Reply(status=401, error="no")]
    async with (
        ModelServer(replies) as server,
        open_model("openai/gpt-5.4", api_base=server.url, headers=headers) as model,
    ):
        quoted, refused = [(await final(model, request_for("openai/gpt-5.4"))).error or "" for _ in replies]
        sent = [value for name, value in server.requests[0].headers.items() if name.lower() == "authorization"]
    assert sent == ["Bearer secret-of-the-gateway-1"]
    assert "is no key of ours" in quoted and "secret-of-the-gateway" not in quoted
    assert "It is the one in the request header authorization" in refused


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"X Team": "a"}, "The request header 'X Team' cannot be set"),
        ({"Content-Length": "3"}, "The request header 'Content-Length' cannot be set"),
        ({"X-Team": "a\r\nX-Other: b"}, "'X-Team' has characters that no header has"),
    ],
)
async def test_headers_that_cannot_be_sent_are_refused_at_once(headers: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        async with open_model("openai_compatible/x", api_base="http://127.0.0.1:9", headers=headers):
            pass


def test_a_budget_is_the_level_that_comes_nearest_for_models_that_take_no_number() -> None:
    levels = [level_for(tokens) for tokens in (0, 1, 1_024, 4_000, 10_000, 20_000, 64_000)]
    assert levels == ["off", "minimal", "minimal", "low", "medium", "high", "xhigh"]


@pytest.mark.parametrize(
    ("model", "budget", "sent"),
    [
        ("claude-sonnet-4-5", 20_000, {"type": "enabled", "budget_tokens": 20_000}),
        ("claude-of-tomorrow", 2_000, {"type": "enabled", "budget_tokens": 2_000}),
        ("claude-sonnet-4-6", 20_000, {"type": "adaptive", "display": "summarized"}),
    ],
)
def test_anthropic_is_sent_the_number_where_its_model_takes_one(model: str, budget: int, sent: JsonObject) -> None:
    options = ModelOptions(thinking_level="high", thinking_budget=budget)
    request = replace(request_for(f"anthropic/{model}"), options=options)
    assert MessagesApi(MESSAGES).body(request)["thinking"] == sent


def test_openrouter_is_sent_the_number_and_other_servers_the_level() -> None:
    options = ModelOptions(thinking_level="low", thinking_budget=3_000)
    by_router = replace(request_for("openrouter/qwen/qwen3"), options=options)
    by_openai = replace(request_for("openai/gpt-5.4"), options=options)
    assert effort_fields(by_router, _provider("openrouter")) == {"reasoning": {"max_tokens": 3_000}}
    assert effort_fields(by_openai, _provider("openai")) == {"reasoning_effort": "low"}


def test_a_budget_reaches_a_machine_that_shares_its_models() -> None:
    options = ModelOptions(thinking_level="low", thinking_budget=3_000)
    request = replace(request_for("proxy/ollama/test-model"), options=options)
    assert request_from_wire(request_to_wire(request)).options == options


async def test_an_agent_asks_with_its_budget_until_a_level_is_set() -> None:
    stream = WrittenStream(reply("One."), reply("Two."), reply("Three."))
    agent = Agent(AgentOptions(stream=stream, model="test/model", thinking_budget=3_000))
    for prompt in ("one", "two", "three"):
        async with AgentRun(agent, prompt) as run:
            await run.result()
        if prompt == "one":
            agent.set_thinking_level("high")
        else:
            agent.set_thinking_budget(12_000)
    thinking_options = [
        (request.options.thinking_level, request.options.thinking_budget) for request in stream.requests
    ]
    assert thinking_options == [("low", 3_000), ("high", None), ("high", 12_000)]
