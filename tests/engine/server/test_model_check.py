"""Testing a provider with a real request: the outcome as text, whatever the provider does."""

import asyncio

import msgspec
import pytest

from errand.engine.models.available_models import try_model
from errand.protocol.settings import ModelTestResult
from tests.support import provider_servers
from tests.support.connections import RawClient, raw_client
from tests.support.engine_server import EngineServer
from tests.support.model_server import ModelServer, Reply

NOWHERE = f"http://{provider_servers.NOWHERE}/v1"


def lead(engine: EngineServer, url: str) -> None:
    """Make OpenAI's models come from this server."""
    engine.services.keys.add_environment({"OPENAI_API_KEY": "sk-of-the-test", "OPENAI_BASE_URL": url})


async def trial(client: RawClient, provider: str = "openai", **params: object) -> ModelTestResult:
    answer = await client.ask("model/test", 1, provider=provider, **params)
    return msgspec.convert(answer["result"], ModelTestResult)


async def test_successful_test_reports_the_model_and_the_time(engine: EngineServer) -> None:
    async with ModelServer([Reply(text="OK"), Reply(text="OK, though cut", finish="length")]) as server:
        lead(engine, server.url)
        async with raw_client(engine) as client:
            first = await trial(client)
            second = await trial(client, model="openai/gpt-5-mini")
        body = server.requests[0].body
    assert (first.ok, first.model) == (True, "openai/gpt-5.4")
    assert first.text == f"gpt-5.4 answered in {first.seconds:.1f} s."
    assert (second.ok, second.model) == (True, "openai/gpt-5-mini")
    assert (body["model"], body["max_output_tokens"], "tools" in body) == ("gpt-5.4", 256, False)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (
            Reply(status=401, error="Incorrect API key provided"),
            "refused the key (401). It is the one in the variable OPENAI_API_KEY",
        ),
        (Reply(status=404, error="The model does not exist"), "does not know this model or address (404)"),
        (Reply(status=429, error="insufficient_quota"), "no credit left (429)"),
        (Reply(status=402, error="Pay first"), "no credit left (402)"),
        (Reply(status=503, error="Overloaded"), "failed (503)"),
        (Reply(text="Half of", cut_after=1), "broke off"),
    ],
)
async def test_refusal_is_reported_at_once(engine: EngineServer, reply: Reply, says: str) -> None:
    async with ModelServer([reply, reply]) as server:
        lead(engine, server.url)
        async with raw_client(engine) as client:
            outcome = await trial(client)
        paths = [request.path for request in server.requests]
        assert len(paths) == len(set(paths))
    assert not outcome.ok
    assert says in outcome.text


async def test_provider_that_cannot_be_tested_gives_advice(engine: EngineServer) -> None:
    lead(engine, NOWHERE)
    engine.services.keys.add_environment({"OLLAMA_HOST": "127.0.0.1:9"})
    async with raw_client(engine) as client:
        assert f"Cannot reach OpenAI at {NOWHERE}" in (await trial(client)).text
        assert "Set the variable MISTRAL_API_KEY" in (await trial(client, "mistral")).text
        assert "start it with `ollama serve`" in (await trial(client, "ollama")).text
        assert "There is no provider named 'opnai'. Did you mean openai" in (await trial(client, "opnai")).text
        assert "not a model of openai" in (await trial(client, model="groq/x")).text
        assert "its address is missing" in (await trial(client, "openai_compatible", model="openai_compatible/x")).text


async def test_model_test_uses_the_same_route_as_a_task(engine: EngineServer) -> None:
    async with ModelServer([Reply(text="OK"), Reply(text="OK")]) as server:
        lead(engine, server.url)
        engine.services.settings.set("default_api_base", server.url)
        async with raw_client(engine) as client:
            as_text = await trial(client, model="react/openai/gpt-5-mini")
            own = await trial(client, "openai_compatible", model="openai_compatible/mine")
        assert [request.body["model"] for request in server.requests] == ["gpt-5-mini", "mine"]
    assert (as_text.ok, as_text.model) == (True, "react/openai/gpt-5-mini")
    assert (own.ok, own.model) == (True, "openai_compatible/mine")


async def test_a_provider_that_does_not_answer_in_time_is_given_up(engine: EngineServer) -> None:
    async with ModelServer([Reply(text="late", gate=asyncio.Event())]) as server:
        model = engine.services.models.router.open("openai_compatible/slow", server.url)
        outcome = await try_model(model, "openai_compatible/slow", longest_s=0.05)
        await server.requests[0].gone.wait()
    assert (outcome.ok, outcome.text.partition(" It")[0]) == (False, "There was no complete answer within 0.05 s.")


async def test_a_client_that_leaves_ends_the_test(engine: EngineServer) -> None:
    async with ModelServer([Reply(text="late", gate=asyncio.Event())]) as server:
        lead(engine, server.url)
        async with raw_client(engine) as client:
            await client.request("model/test", 1, provider="openai")
            await server.request(0)
        await server.requests[0].gone.wait()
