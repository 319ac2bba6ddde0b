"""Model lists of providers, and models described by the user."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from errand.engine.core.errors import ConfigurationError, InvalidParams
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_lists import parse_own_models
from errand.engine.core.setting_values import SettingValues
from errand.engine.core.settings import Settings
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.model_lists import ListedModel, models_of
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter
from errand.protocol.base import JsonObject
from errand.protocol.settings import Model, ModelListResult
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import NO_LOCAL_SERVERS, TOKEN, sharing

KEY = "sk-the-key-of-the-listing-test"
ONE: JsonObject = {
    "id": "vendor/new-model",
    "context_length": 65536,
    "pricing": {"prompt": "0.0000015", "completion": "-1"},
    "architecture": {"input_modalities": ["text", "image"]},
    "supported_parameters": ["temperature", "tools"],
}


@pytest.fixture(autouse=True)
def nothing_learnt() -> Generator[None]:
    yield
    model_facts.register({}, {})


@asynccontextmanager
async def lists(answer: web.Response | None) -> AsyncGenerator[str]:
    """A server that lists models; None answers with `ONE`."""

    async def serve(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        return answer or web.json_response({"data": [ONE, {"id": "text-embedding-9"}, {"object": "no id"}, 7]})

    app = web.Application()
    app.router.add_get("/v1/models", serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def fetched(folder: Path, base: str, fetch: bool = True) -> ModelListResult:
    """The list for OpenAI at `base`; the file of lists is in the folder."""
    keys = KeyStore(folder / "keys", {**NO_LOCAL_SERVERS, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": base}, lambda: None)
    models = ModelRouter(keys, folder, RetryPolicy(attempts=1), SettingValues, folder / "models.json")
    try:
        return await models.available.list(refresh=False, fetch=fetch)
    finally:
        await models.close()


async def test_model_list_is_fetched_on_request_and_stored_with_its_date(tmp_path: Path) -> None:
    async with lists(None) as base:
        first = await fetched(tmp_path, base)
        again = await fetched(tmp_path, base, fetch=False)
    listed = [model for model in first.models if model.provider == "openai"]
    assert listed == [
        Model(
            id="openai/vendor/new-model",
            provider="openai",
            context_tokens=65536,
            input_price=1.5,
            tools=True,
            images=True,
        )
    ]
    assert [model for model in again.models if model.provider == "openai"] == listed
    (row,) = [provider for provider in again.providers if provider.name == "openai"]
    assert row.listed_at is not None
    assert row.list_error == ""


async def test_the_list_of_anthropic_comes_from_the_address_that_its_models_have(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    async def serve(request: web.Request) -> web.Response:
        asked.append((request.path_qs, request.headers.get("x-api-key", "")))
        return web.json_response({"data": [{"type": "model", "id": "claude-of-a-gateway"}]})

    app = web.Application()
    app.router.add_get("/{path:.*}", serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    keys = KeyStore(
        tmp_path / "keys", {**NO_LOCAL_SERVERS, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": base}, lambda: None
    )
    models = ModelRouter(keys, tmp_path, RetryPolicy(attempts=1), SettingValues, tmp_path / "models.json")
    try:
        model_list = await models.available.list(refresh=False, fetch=True)
    finally:
        await models.close()
        await runner.cleanup()
    assert asked == [("/v1/models?limit=1000", KEY)]
    assert "anthropic/claude-of-a-gateway" in [model.id for model in model_list.models]


@pytest.mark.parametrize(
    ("answer", "error_text"),
    [
        (web.Response(status=401, text=f'{{"error": "bad key {KEY}"}}'), "(401): bad key [key removed]"),
        (web.Response(text="<html>"), "not a list of models"),
        (web.json_response({"data": {"a": 1}}), "not a list of models"),
        (web.Response(text=f'{{"data": [{"[]," * 300_000}[]]}}'), "not a list of models"),
    ],
)
async def test_failed_fetch_keeps_the_old_model_list(tmp_path: Path, answer: web.Response, error_text: str) -> None:
    async with lists(None) as base:
        await fetched(tmp_path, base)
    async with lists(answer) as base:
        model_list = await fetched(tmp_path, base)
    (row,) = [provider for provider in model_list.providers if provider.name == "openai"]
    assert error_text in row.list_error
    assert KEY not in row.list_error
    assert [model.id for model in model_list.models if model.provider == "openai"] == ["openai/vendor/new-model"]


async def test_unsaved_model_list_is_used_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "models.new").mkdir()
    async with lists(None) as base:
        model_list = await fetched(tmp_path, base)
    (row,) = [provider for provider in model_list.providers if provider.name == "openai"]
    assert [model.id for model in model_list.models if model.provider == "openai"] == ["openai/vendor/new-model"]
    assert row.list_error == "The list of OpenAI is good until the engine ends: it could not be saved (Is a directory)."


async def test_without_a_network_the_old_list_is_kept_with_an_error(tmp_path: Path) -> None:
    async with lists(None) as base:
        await fetched(tmp_path, base)
    model_list = await fetched(tmp_path, base)
    (row,) = [provider for provider in model_list.providers if provider.name == "openai"]
    assert row.list_error == "OpenAI could not be reached; the list from before is kept."
    assert row.listed_at is not None


async def test_corrupt_list_file_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "models.json").write_text("{")
    model_list = await fetched(tmp_path, "http://127.0.0.1:9/v1", fetch=False)
    assert len([model for model in model_list.models if model.provider == "openai"]) > 10


async def test_shared_models_of_another_machine_are_listed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    async with (
        ModelServer([Reply(text="hi")], models=("qwen",)) as upstream,
        sharing(upstream.url.removesuffix("/v1"), tmp_path / "there", RetryPolicy(attempts=1)) as shared,
    ):
        keys = KeyStore(tmp_path / "keys", {**NO_LOCAL_SERVERS, "ERRAND_PROXY_API_KEY": TOKEN}, lambda: None)
        models = ModelRouter(keys, tmp_path, RetryPolicy(attempts=1), lambda: SettingValues(proxy_url=shared.url))
        model_list = await models.available.list(refresh=False, fetch=True)
        await models.close()
    assert [model.id for model in model_list.models if model.provider == "proxy"] == ["proxy/ollama/qwen"]
    assert model_list.default == "proxy/ollama/qwen"


def test_a_shared_model_of_another_version_is_listed_by_the_fields_that_are_known() -> None:
    row: JsonObject = {"id": "ollama/qwen", "contextTokens": 4096, "tools": True, "images": "yes", "addedLater": 1}
    assert models_of({"models": [row]}) == (ListedModel("ollama/qwen", 4096, tools=True),)


async def test_own_models_are_listed_with_their_price_and_window(tmp_path: Path) -> None:
    text = "ollama/qwen3 40960 0.5 2 tools thinking; react/ollama/tiny 2048 - - text # small"
    async with ModelServer(models=("qwen3", "other")) as server:
        keys = KeyStore(tmp_path, {**NO_LOCAL_SERVERS, "OLLAMA_HOST": server.url.removesuffix("/v1")}, lambda: None)
        models = ModelRouter(keys, tmp_path, settings=lambda: SettingValues(own_models=text))
        model_list = await models.available.list(refresh=False)
        await models.close()
    row = next(model for model in model_list.models if model.id == "ollama/qwen3")
    assert (row.context_tokens, row.input_price, row.output_price) == (40960, 0.5, 2.0)
    assert (row.tools, row.images, row.thinking) == (True, False, True)
    assert models.context_tokens("proxy/ollama/qwen3") == 40960
    tiny = model_facts.facts("ollama/tiny")
    assert tiny is not None
    assert (tiny.context_tokens, tiny.prices.input, tiny.calls_tools) == (2048, None, False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("qwen3 1 2 3", "begins with an id"),
        ("ollama/qwen3 40960", "two prices"),
        ("ollama/qwen3 many 0 0", "'many' is not a number"),
        ("ollama/qwen3 1 2 3 vision", "'vision' is none of"),
        ("a/b 1 1 1\nollama/qwen3 -5 0 0", "'-5' is not a number"),
    ],
)
def test_invalid_own_model_is_refused_with_a_reason_and_nothing_is_stored(
    tmp_path: Path, text: str, reason: str
) -> None:
    settings = Settings(tmp_path / "settings.json")
    with pytest.raises(InvalidParams, match=reason):
        settings.set("own_models", text)
    assert settings.values.own_models == ""
    assert not (tmp_path / "settings.json").exists()


def test_invalid_own_model_in_the_file_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"own_models": "qwen3"}')
    with pytest.raises(ConfigurationError, match="begins with an id"):
        Settings(tmp_path / "settings.json")


def test_empty_setting_means_no_own_models() -> None:
    assert parse_own_models(" \n;; # nothing\n") == ()
