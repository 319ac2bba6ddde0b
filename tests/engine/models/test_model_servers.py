"""Servers that people run are asked what they serve: window, tools, vision, size, and whether it is loaded."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import ModelServer as AddedServer
from errand.engine.core.setting_values import SettingValues
from errand.engine.models.catalog import model_facts
from errand.engine.models.router import ModelRouter
from errand.engine.models.servers.served_models import ServedModel, ServerStatus, server_label
from errand.protocol.base import JsonObject
from errand.protocol.settings import Model
from tests.support.local_servers import counted, llama_cpp, lm_studio, loading_llama_cpp, ollama, vllm
from tests.support.model_server import ModelServer, Page
from tests.support.provider_servers import NO_LOCAL_SERVERS


@asynccontextmanager
async def asked(
    folder: Path, pages: Mapping[str, Page | Callable[[], Page]], variable: str = ""
) -> AsyncGenerator[tuple[ModelRouter, ModelServer]]:
    """Yield a router and a server with these pages, which a variable may name."""
    async with ModelServer(pages=pages) as server:
        names = {variable: server.url.removesuffix("/v1")} if variable else {}
        models = ModelRouter(KeyStore(folder / "keys", {**NO_LOCAL_SERVERS, **names}, lambda: None), folder)
        try:
            yield models, server
        finally:
            await models.close()


# What the servers of `tests.support.local_servers` say of a loaded model.
_LOADED = ServedModel(
    "", context_tokens=4096, trained_tokens=32768, calls_tools=True, sees=False, thinks=True, is_loaded=True
)


async def served_model(models: ModelRouter, model_id: str, api_base: str | None = None) -> ServedModel | None:
    """Ask the server of a model, and return what it says of the model."""
    await models.servers.status(model_id, api_base)
    return models.servers.known(model_id, api_base)


async def test_llama_cpp_says_its_window_its_template_and_its_size(tmp_path: Path) -> None:
    pages = llama_cpp("qwen2.5-coder-1.5b.gguf", window=4096, template="{% if enable_thinking %}<think>{% endif %}")
    async with asked(tmp_path, pages) as (models, server):
        served = await served_model(models, "openai_compatible/qwen2.5-coder-1.5b.gguf", server.url)
    assert served is not None
    assert served == replace(_LOADED, name="qwen2.5-coder-1.5b.gguf", server="llama_cpp", parameters=1.777)
    assert served.constraints == {"tool_choice", "json_schema", "grammar"}


async def test_any_name_means_the_one_model_of_a_llama_cpp(tmp_path: Path) -> None:
    async with asked(tmp_path, llama_cpp("m.gguf", tools=False), "LLAMA_CPP_API_BASE") as (models, _):
        served = await served_model(models, "react/llama_cpp/whatever")
        assert served is not None
        assert (served.name, served.calls_tools) == ("m.gguf", False)


async def test_ollama_says_what_a_model_can_and_the_window_that_is_loaded(tmp_path: Path) -> None:
    pages = ollama("qwen3:8b", abilities=("completion", "tools", "thinking"), window=4096)
    async with asked(tmp_path, pages, "OLLAMA_HOST") as (models, _):
        served = await served_model(models, "ollama/qwen3:8b")
    assert served is not None
    expected = replace(_LOADED, context_tokens=16_384, takes_window=True, loaded_tokens=4_096)
    assert served == replace(expected, name="qwen3:8b", server="ollama", parameters=7.6)
    assert served.constraints == {"format"}


async def test_a_window_in_the_file_of_an_ollama_model_holds_before_it_is_loaded(tmp_path: Path) -> None:
    pages = ollama("m:latest", parameters='stop "x"\nnum_ctx                        8192')
    async with asked(tmp_path, pages, "OLLAMA_HOST") as (models, _):
        served = await served_model(models, "ollama/m:latest")
        assert served is not None
        assert (served.context_tokens, served.is_loaded) == (8192, False)


async def test_lm_studio_says_its_windows_and_leaves_out_embeddings(tmp_path: Path) -> None:
    pages = lm_studio(
        {
            "id": "qwen2-vl",
            "type": "vlm",
            "state": "loaded",
            "max_context_length": 32768,
            "loaded_context_length": 8192,
            "capabilities": ["tool_use"],
        },
        {"id": "nomic-embed", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048},
        {"id": "gemma", "type": "llm", "state": "not-loaded", "max_context_length": 8192},
    )
    async with asked(tmp_path, pages, "LM_STUDIO_API_BASE") as (models, _):
        status = await models.servers.status("lm_studio/gemma")
    assert status == ServerStatus(
        "lm_studio",
        (
            ServedModel("qwen2-vl", "lm_studio", 8192, 32768, True, True, None, True),
            ServedModel("gemma", "lm_studio", None, 8192, None, False, None, False),
        ),
    )


async def test_vllm_says_the_length_of_its_model(tmp_path: Path) -> None:
    async with asked(tmp_path, vllm("Qwen/Qwen2.5-7B", 16384), "VLLM_API_BASE") as (models, _):
        served = await served_model(models, "vllm/Qwen/Qwen2.5-7B")
    assert served == ServedModel("Qwen/Qwen2.5-7B", "vllm", context_tokens=16384, is_loaded=True)


async def test_a_server_that_only_lists_models_says_nothing_else(tmp_path: Path) -> None:
    async with asked(tmp_path, {}) as (models, server):
        assert await served_model(models, "openai_compatible/test-model", server.url) == ServedModel("test-model")
        assert await served_model(models, "openai_compatible/other", server.url) is None


async def test_what_a_server_says_is_a_fact_of_its_model(tmp_path: Path) -> None:
    async with asked(tmp_path, llama_cpp("fact.gguf", window=2048, tools=False), "LLAMA_CPP_API_BASE") as (models, _):
        await models.available.list(refresh=False)
    facts = model_facts.facts("react/llama_cpp/fact.gguf")
    assert facts is not None
    assert (facts.context_tokens, facts.calls_tools, facts.sees, facts.reasons) == (2048, False, False, False)
    assert models.context_tokens("llama_cpp/fact.gguf") == 2048


async def test_a_server_that_loads_is_there_and_its_model_not_known_yet(tmp_path: Path) -> None:
    async with asked(tmp_path, loading_llama_cpp(), "LLAMA_CPP_API_BASE") as (models, server):
        assert await models.available.default_model() == "llama_cpp/loading"
        assert await models.servers.status("llama_cpp/loading") == ServerStatus("llama_cpp", is_loading=True)
        assert await served_model(models, "llama_cpp/loading") is None
        server.pages.update(llama_cpp("m.gguf"))
        assert await models.available.default_model() == "llama_cpp/m.gguf"


async def test_a_server_that_is_started_later_is_the_default_at_once(tmp_path: Path) -> None:
    async with ModelServer() as server:
        port = int(server.url.rpartition(":")[2].removesuffix("/v1"))
    keys = KeyStore(tmp_path / "keys", {**NO_LOCAL_SERVERS, "LLAMA_CPP_API_BASE": f"127.0.0.1:{port}"}, lambda: None)
    models = ModelRouter(keys, tmp_path)
    assert await models.available.default_model() is None
    async with ModelServer(port=port, pages=llama_cpp("late.gguf")):
        assert await models.available.default_model() == "llama_cpp/late.gguf"
    assert await models.available.default_model() is None
    await models.close()


@pytest.mark.parametrize("model_id", ["openai/gpt-5.4", "anthropic/claude", "mistral/x", "scripted/tour", "none/x"])
async def test_providers_of_the_cloud_are_not_asked(tmp_path: Path, model_id: str) -> None:
    async with asked(tmp_path, {}) as (models, _):
        assert await models.servers.status(model_id) is None


async def test_side_fields_of_other_types_do_not_hide_a_model(tmp_path: Path) -> None:
    pages = llama_cpp("odd.gguf")
    odd: JsonObject = {"owned_by": 7, "meta": "none", "architecture": [], "max_model_len": "many", "status": 1}
    pages["/v1/models"] = 200, {"data": [{"id": "odd.gguf", **odd}, {"id": None}, "x"]}
    pages["/props"] = 200, {"chat_template_caps": [], "modalities": 3, "default_generation_settings": None}
    async with asked(tmp_path, pages, "LLAMA_CPP_API_BASE") as (models, _):
        served = await served_model(models, "llama_cpp/odd.gguf")
    assert served == replace(ServedModel("odd.gguf", "llama_cpp"), is_loaded=True)


async def test_fields_of_other_types_of_an_ollama_count_as_missing(tmp_path: Path) -> None:
    pages = ollama("m:latest")
    row: JsonObject = {"id": "m:latest", "created": [2025], "owned_by": "library"}
    pages["/v1/models"] = 200, {"data": [row]}
    pages["/api/ps"] = 200, {"models": [{"name": {}, "context_length": 512}, {"name": "m:latest"}]}
    pages["/api/show"] = 200, {"parameters": f"num_ctx {'9' * 5000}", "model_info": [], "capabilities": ["tools"]}
    async with asked(tmp_path, pages, "OLLAMA_HOST") as (models, _):
        served = await served_model(models, "ollama/m:latest")
    assert served == ServedModel("m:latest", "ollama", calls_tools=True, sees=False, thinks=False, is_loaded=True)


@pytest.mark.parametrize("page", [(404, {"error": "no such path"}), (200, {"error": "Unexpected endpoint"})])
async def test_an_ollama_without_a_list_of_loaded_models_still_describes_them(tmp_path: Path, page: Page) -> None:
    pages = {**ollama("m:latest"), "/api/ps": page}
    async with asked(tmp_path, pages, "OLLAMA_HOST") as (models, _):
        served = await served_model(models, "ollama/m:latest")
    assert served is not None
    assert (served.trained_tokens, served.calls_tools, served.is_loaded) == (32768, True, None)


async def test_a_list_of_models_asks_each_server_once(tmp_path: Path) -> None:
    asks: list[str] = []
    async with asked(tmp_path, counted(llama_cpp("m.gguf"), asks), "LLAMA_CPP_API_BASE") as (models, _):
        assert (await models.available.list(refresh=False)).default == "llama_cpp/m.gguf"
    assert asks == ["/v1/models", "/props"]


def test_a_server_is_named_by_its_port_here_and_by_its_host_elsewhere() -> None:
    assert server_label("llama_cpp", "http://127.0.0.1:8080/v1") == "llama.cpp at :8080"
    assert server_label("ollama", "http://10.0.0.5:11434/v1") == "Ollama at 10.0.0.5:11434"


async def test_servers_of_ones_own_machines_cost_nothing_and_files_have_short_names(tmp_path: Path) -> None:
    async with asked(tmp_path, llama_cpp("/models/qwen2.5-coder-1.5b.gguf"), "LLAMA_CPP_API_BASE") as (models, server):
        listed = await models.available.list(refresh=False)
        await models.servers.status("openai_compatible/any", server.url)
        assert models.has_price("openai_compatible//models/qwen2.5-coder-1.5b.gguf")
    (model,) = (model for model in listed.models if model.provider == "llama_cpp")
    assert model == Model(
        id="llama_cpp//models/qwen2.5-coder-1.5b.gguf",
        provider="llama_cpp",
        name="qwen2.5-coder-1.5b",
        context_tokens=4096,
        input_price=0.0,
        output_price=0.0,
        tools=True,
        images=False,
        thinking=False,
        loaded=True,
        parameters=1.777,
    )


async def test_a_server_that_may_be_a_gateway_has_no_price(tmp_path: Path) -> None:
    async with asked(tmp_path, {}) as (models, server):
        await models.servers.status("openai_compatible/test-model", server.url)
        assert not models.has_price("openai_compatible/test-model")


async def test_an_added_server_is_asked_too_and_its_newest_model_is_the_default(tmp_path: Path) -> None:
    async with ModelServer(pages=llama_cpp("first.gguf")) as server:
        own = AddedServer(id="mine", name="Mine", address=server.url)
        keys = KeyStore(tmp_path / "keys", NO_LOCAL_SERVERS, lambda: None)
        models = ModelRouter(keys, tmp_path, settings=lambda: SettingValues(model_servers=(own,)))
        assert await models.available.default_model() == "mine/first.gguf"
        server.pages.update(llama_cpp("second.gguf"))
        assert await models.available.default_model() == "mine/second.gguf"
        listed = await models.available.list(refresh=False)
        await models.close()
    assert [(model.id, model.input_price) for model in listed.models if model.provider == "mine"] == [
        ("mine/second.gguf", 0.0)
    ]
