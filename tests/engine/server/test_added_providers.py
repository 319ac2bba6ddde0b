"""Providers that a person adds: kinds, several of each, real calls as tests, chosen models, models of their own."""

from collections.abc import AsyncGenerator

import msgspec
import pytest

from errand.protocol.base import JsonObject
from errand.protocol.settings import (
    Model,
    ModelListResult,
    ModelServerSaveResult,
    ModelServerTestResult,
    ModelTestResult,
    Provider,
)
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_server import EngineServer
from tests.support.provider_servers import AnthropicServer, own_server

KEY = "k-of-the-test-1234567890"


class Asking:
    """Each request has a unique number."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        self._number = 0

    async def ask(self, method: str, **params: object) -> JsonObject:
        self._number += 1
        return await self._client.ask(method, self._number, **params)

    async def save(self, name: str, address: str, **params: object) -> ModelServerSaveResult:
        answer = await self.ask("model_server/save", name=name, address=address, **params)
        return msgspec.convert(answer["result"], ModelServerSaveResult)

    async def test(self, address: str, **params: object) -> ModelServerTestResult:
        answer = await self.ask("model_server/test", address=address, calls=True, **params)
        return msgspec.convert(answer["result"], ModelServerTestResult)

    async def found(self) -> ModelListResult:
        answer = await self.ask("model/list", refresh=False, fetch=False)
        return msgspec.convert(answer["result"], ModelListResult)

    async def provider(self, name: str) -> Provider:
        return next(provider for provider in (await self.found()).providers if provider.name == name)

    async def models_of(self, provider: str) -> list[Model]:
        return [model for model in (await self.found()).models if model.provider == provider]


@pytest.fixture
async def client(engine: EngineServer) -> AsyncGenerator[Asking]:
    engine.services.keys.add_environment({"OLLAMA_HOST": "127.0.0.1:9"})
    async with raw_client(engine) as raw:
        yield Asking(raw)


async def test_a_test_makes_a_real_call_and_says_which_model_answered(client: Asking) -> None:
    async with own_server(key=KEY) as server:
        outcome = await client.test(server.url, key=KEY)
        assert outcome.ok and outcome.address == f"{server.url}/v1"
        assert outcome.text.startswith("qwen3 answered in ") and outcome.text.endswith("The server offers 2 models.")
        assert server.paths[-1] == "/v1/chat/completions"
        refused = await client.test(server.url, key="wrong-1234567890")
    assert (refused.ok, refused.text.partition(".")[0]) == (False, "The server refused this key")


async def test_an_anthropic_compatible_server_is_asked_in_its_own_way(client: Asking) -> None:
    async with AnthropicServer() as server:
        tested = await client.test(server.url, key=KEY, kind="anthropic_compatible")
        assert tested.ok and tested.text.startswith("claude-test answered in "), tested
        saved = await client.save("Claude at work", f"{server.url}/v1", key=KEY, kind="anthropic_compatible")
        assert (saved.id, saved.ok) == ("claude-at-work", True)
        assert [model.id for model in await client.models_of(saved.id)] == ["claude-at-work/claude-test"]
        assert (await client.provider(saved.id)).kind == "anthropic_compatible"
        answer = await client.ask("model/test", provider=saved.id)
        assert msgspec.convert(answer["result"], ModelTestResult).ok
    assert set(server.keys) == {KEY}


async def test_the_first_one_of_the_catalogue_has_its_own_id_and_a_second_one_another(
    client: Asking, engine: EngineServer
) -> None:
    async with own_server(key=KEY, models=("mistral-medium-latest",)) as server:
        first = await client.save("Mistral", "", key="first-key-1234567890", kind="mistral")
        assert (first.id, engine.services.settings.values.model_servers) == ("mistral", ())
        second = await client.save("Mistral at work", f"{server.url}/v1", key=KEY, kind="mistral")
        assert second.id == "mistral-at-work"
        (model,) = await client.models_of(second.id)
        assert (model.id, model.tools) == ("mistral-at-work/mistral-medium-latest", True)
        assert model.input_price is not None, "it has the prices of the catalogue"
        answer = await client.ask("model/test", provider=second.id)
        assert msgspec.convert(answer["result"], ModelTestResult).ok
    assert (await client.provider("mistral")).key_source == "file"
    assert set(server.keys) == {KEY}, "the other one's key stays at its own address"


async def test_what_cannot_be_added_is_refused(client: Asking) -> None:
    async def says(**params: object) -> str:
        return error_of(await client.ask("model_server/save", **params))[2]

    assert "no kind of provider 'scripted'" in await says(name="a", address="http://127.0.0.1:9", kind="scripted")
    assert "Enter the key for Anthropic." in await says(name="Anthropic", address="", kind="anthropic")
    assert "has no address that could be changed" in await says(name="G", address="http://h", key="k", kind="gemini")
    assert "There is no provider 'gone'" in error_of(await client.ask("model/choose", provider="gone", models=[]))[2]


async def test_only_chosen_models_are_shown(client: Asking, engine: EngineServer) -> None:
    async with own_server() as server:
        await client.save("Lab", server.url)
    await client.ask("model/choose", provider="lab", models=["qwen3"])
    assert [(model.id, model.shown) for model in await client.models_of("lab")] == [
        ("lab/qwen3", True),
        ("lab/text-embedding-9", False),
    ]
    await client.ask("model/choose", provider="lab", models=None)
    assert all(model.shown for model in await client.models_of("lab"))
    await client.ask("model/choose", provider="lab", models=[])
    await client.ask("model_server/remove", id="lab")
    assert engine.services.settings.values.chosen_models == {}


async def test_a_model_of_ones_own_is_described_changed_and_removed(client: Asking, engine: EngineServer) -> None:
    async with own_server(models=()) as server:
        await client.save("Lab", server.url)
    own = {"id": "lab/secret-1", "name": "Secret", "contextTokens": 32_000, "inputPrice": 0.000001, "tools": True}
    saved = await client.ask("model/save", **own)
    assert "result" in saved, saved
    (model,) = await client.models_of("lab")
    assert model == Model(
        id="lab/secret-1",
        provider="lab",
        name="Secret",
        own=True,
        context_tokens=32_000,
        input_price=pytest.approx(0.000001),  # pyright: ignore[reportArgumentType] -- it equals a float
        tools=True,
        images=False,
        thinking=False,
    )
    await client.ask("model/save", id="lab/secret-2", replaces="lab/secret-1")
    (model,) = await client.models_of("lab")
    assert (model.id, model.name, model.tools) == ("lab/secret-2", "", False)
    await client.ask("model/remove", id="lab/secret-2")
    assert await client.models_of("lab") == []
    await client.ask("model/save", **own)
    await client.ask("model_server/remove", id="lab")
    assert engine.services.settings.values.own_models == "", "they go with their provider"


@pytest.mark.parametrize(
    "model_id", ["", "lab/", "/x", "lab/two words", "lab/a;b", "lab/a#b", "nobody/x", "lab/" + "x" * 300]
)
async def test_an_id_that_is_none_is_refused(client: Asking, engine: EngineServer, model_id: str) -> None:
    assert "error" in await client.ask("model/save", id=model_id)
    assert "error" in await client.ask("model/save", id="lab/fine", name="a;b", contextTokens=1)
    assert engine.services.settings.values.own_models == ""
