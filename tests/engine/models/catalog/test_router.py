"""The router: ids to models, lists, the default model, prices, and lazy imports."""

import subprocess
import sys
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError
from errand.engine.core.messages import Text, ToolResultMessage, Usage
from errand.engine.core.secrets import KeyStore
from errand.engine.models.base import ModelOptions, ModelRequest
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import PROVIDERS, find
from errand.engine.models.openai.request import effort_fields
from errand.engine.models.openai.responses_api import reasons
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter
from errand.protocol.agents import ThinkingLevel
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import SHELL, collect, final, request_for
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import NO_LOCAL_SERVERS

KEY = "key-of-the-test-0123456789"


def router(folder: Path, environment: dict[str, str] | None = None) -> ModelRouter:
    keys = KeyStore(folder / "keys", {**NO_LOCAL_SERVERS, **(environment or {})}, lambda: None)
    return ModelRouter(keys, folder, RetryPolicy(attempts=1))


@pytest.mark.parametrize(
    ("model_id", "says"),
    [
        ("gpt-5", "provider/model"),
        ("openai/", "provider/model"),
        ("", "provider/model"),
        ("opnai/gpt-5", "Did you mean openai/gpt-5?"),
        ("qqqqqq/x", f"Providers are: {PROVIDERS[0].name}"),
        ("openai_compatible/x", "--api-base"),
        ("scripted/../secrets", "not the name of a script"),
    ],
)
def test_unknown_model_id_is_refused_with_advice(tmp_path: Path, model_id: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        router(tmp_path).open(model_id)
    assert says in str(caught.value)


def test_an_address_without_a_scheme_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="http"):
        router(tmp_path).open("openai_compatible/x", "localhost:1234")


async def test_a_call_without_a_key_names_the_variable(tmp_path: Path) -> None:
    models = router(tmp_path)
    message = await final(models.open("mistral/x"), request_for("mistral/x"))
    await models.close()
    assert message.stop_reason == "error"
    assert "Set the variable MISTRAL_API_KEY" in (message.error or "")


async def test_the_key_given_with_the_model_is_sent(tmp_path: Path) -> None:
    models = router(tmp_path)
    async with ModelServer([Reply(text="hi")] * 2) as server:
        first = models.open("openai_compatible/x", server.url, "key-of-this-run")
        await final(first, request_for("openai_compatible/x"))
        await final(models.open("openai_compatible/x", server.url), request_for("openai_compatible/x"))
        await models.close()
        assert server.requests[0].headers["Authorization"] == "Bearer key-of-this-run"
        assert "Authorization" not in server.requests[1].headers


async def test_newly_stored_key_is_used_by_the_next_call(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys", NO_LOCAL_SERVERS, lambda: None)
    models = ModelRouter(keys, tmp_path, RetryPolicy(attempts=1))
    async with ModelServer([Reply(text="hi")]) as server:
        model = models.open("mistral/x", server.url)
        assert "no key" in ((await final(model, request_for("mistral/x"))).error or "")
        await keys.set("mistral", "stored-key")
        assert (await final(model, request_for("mistral/x"))).text == "hi"
        await models.close()
        assert server.requests[0].headers["Authorization"] == "Bearer stored-key"


async def test_an_address_given_without_its_path_is_found(tmp_path: Path) -> None:
    models = router(tmp_path)
    async with ModelServer([Reply(text="hi")]) as server:
        model = models.open("openai_compatible/x", server.url.removesuffix("/v1"))
        assert (await final(model, request_for("openai_compatible/x"))).text == "hi"
        await models.close()


async def test_a_local_server_is_found_and_its_first_model_is_the_default(tmp_path: Path) -> None:
    async with ModelServer(models=["llama-9", "qwen-9"]) as server:
        models = router(tmp_path, {"OLLAMA_HOST": server.url.removesuffix("/v1").removeprefix("http://")})
        listed = await models.available.list(refresh=True)
        await models.close()
    ollama = next(row for row in listed.providers if row.name == "ollama")
    assert (ollama.ready, ollama.local, ollama.api_base) == (True, True, server.url)
    assert [model.id for model in listed.models if model.provider == "ollama"] == ["ollama/llama-9", "ollama/qwen-9"]
    assert listed.default == "ollama/llama-9"


@pytest.mark.parametrize("name", ["OLLAMA_HOST", "LM_STUDIO_API_BASE", "LLAMA_CPP_API_BASE", "VLLM_API_BASE"])
async def test_a_local_server_is_found_where_its_variable_says(tmp_path: Path, name: str) -> None:
    async with ModelServer(models=["mine"]) as server:
        models = router(tmp_path, {name: server.url})
        listed = await models.available.list(refresh=True)
        await models.close()
    (local_provider,) = (row for row in listed.providers if row.local and row.ready)
    assert local_provider.api_base == server.url
    assert [model.id for model in listed.models if model.provider == local_provider.name] == [
        f"{local_provider.name}/mine"
    ]


async def test_a_key_in_the_environment_makes_its_provider_ready(tmp_path: Path) -> None:
    models = router(tmp_path, {"GROQ_API_KEY": "gsk_123456789"})
    listed = await models.available.list(refresh=False)
    await models.close()
    groq = next(row for row in listed.providers if row.name == "groq")
    assert (groq.ready, groq.key_source, groq.key_variable) == (True, "environment", "GROQ_API_KEY")
    assert listed.default == "groq/openai/gpt-oss-120b"
    assert "gsk_123456789" not in repr(listed)
    assert any(model.id == "groq/openai/gpt-oss-120b" and model.input_price for model in listed.models)


@pytest.mark.parametrize("key_source", ["variable", "second variable", "file", "given"])
async def test_a_refused_key_names_where_it_was_set(key_source: str, tmp_path: Path) -> None:
    variables = {"variable": {"TOGETHER_API_KEY": KEY}, "second variable": {"TOGETHERAI_API_KEY": KEY}}
    keys = KeyStore(tmp_path / "keys", {**NO_LOCAL_SERVERS, **variables.get(key_source, {})}, lambda: None)
    if key_source == "file":
        await keys.set("together", KEY)
    models = ModelRouter(keys, tmp_path, RetryPolicy(attempts=1))
    refusals = [Reply(status=401, error="Incorrect key"), Reply(status=400, error="API key not valid")]
    async with ModelServer(refusals) as server:
        model = models.open("together/a/b", server.url, KEY if key_source == "given" else None)
        errors = [(await final(model, request_for("together/a/b"))).error for _ in refusals]
        await models.close()
    goes_first = "which goes before a stored key: check it there."
    replace_it = "Replace it with `errand keys set together`, or in the settings."
    where = {
        "variable": f"It is the one in the variable TOGETHER_API_KEY, {goes_first}",
        "second variable": f"It is the one in the variable TOGETHERAI_API_KEY, {goes_first}",
        "file": f"It is the one in Errand's encrypted key file. {replace_it}",
        "given": "It was given for this task alone, with --api-key-env or by a program: check it there.",
    }[key_source]
    assert errors == [f"Together refused the key (401). {where}", f"Together refused the key (400). {where}"]


async def test_closing_the_router_ends_streams_and_connections(tmp_path: Path) -> None:
    models = router(tmp_path)
    async with ModelServer([Reply(text="x", stall_after=0)]) as server:
        model = models.open("openai_compatible/x", server.url)
        async for _ in model.stream(request_for("openai_compatible/x"), CancelSignal()):
            await models.close()
        await server.requests[0].gone.wait()


async def test_the_same_model_is_opened_once(tmp_path: Path) -> None:
    models = router(tmp_path)
    assert models.open("ollama/a") is models.open("ollama/b")
    assert models.open("ollama/a", api_key="own") is not models.open("ollama/a")
    await models.close()


def test_every_default_model_is_known_and_priced() -> None:
    for row in PROVIDERS:
        if row.default_model and row.price_prefix:
            facts = model_facts.facts(f"{row.name}/{row.default_model}")
            assert facts is not None, row.name
            assert facts.prices.input, row.name
            assert facts.context_tokens, row.name


def test_cached_tokens_cost_less() -> None:
    facts = model_facts.facts("openai/gpt-5")
    assert facts is not None
    assert facts.cost(Usage(1_000_000, 1_000_000)) == pytest.approx(11.25)
    assert facts.cost(Usage(100_000, 0, cache_read_tokens=100_000)) == pytest.approx(0.0125)


async def test_a_reply_of_a_priced_model_carries_its_cost(tmp_path: Path) -> None:
    models = router(tmp_path, {"XAI_API_KEY": "xai-12345678"})
    async with ModelServer([Reply(text="hi", usage=(1000, 1000))]) as server:
        message = await final(models.open("xai/grok-4.5", server.url), request_for("xai/grok-4.5"))
        await models.close()
    assert message.usage.cost_usd == pytest.approx(0.008)
    assert models.has_price("xai/grok-4.5")
    assert not models.has_price("openai_compatible/x")
    assert models.context_tokens("xai/grok-4.5") == 500_000


def test_thinking_levels_in_the_words_of_each_provider() -> None:
    def fields(model: str, level: ThinkingLevel) -> object:
        row = find(model.partition("/")[0])
        assert row is not None
        request = request_for(model)
        options = ModelOptions(thinking_level=level)
        return effort_fields(ModelRequest(model, "", request.messages, (SHELL,), options), row)

    assert fields("openai/gpt-4o", "high") == {}
    assert fields("openai/o3", "xhigh") == {"reasoning_effort": "high"}
    assert fields("openai/gpt-5", "minimal") == {"reasoning_effort": "minimal"}
    assert fields("openai/gpt-5.4", "off") == {"reasoning_effort": "none"}
    assert fields("openrouter/a/b", "low") == {"reasoning": {"effort": "low"}}
    assert fields("groq/openai/gpt-oss-120b", "xhigh") == {"reasoning_effort": "high"}
    assert fields("ollama/llama3", "high") == {}


@pytest.mark.parametrize(
    ("model", "level", "why"),
    [
        ("openai/gpt-5.4", "high", None),
        ("openai/gpt-5.4", "off", None),
        ("openai/o3", "off", "always"),
        ("openai/gpt-4.1", "low", "no_thinking"),
        ("anthropic/claude-sonnet-4-5", "low", None),
        ("anthropic/claude-sonnet-5-5", "off", "always"),
        ("anthropic/claude-of-tomorrow", "low", None),
        ("gemini/gemini-3.8-flash", "high", None),
        ("openrouter/a/b", "low", None),
        ("ollama/llama3", "high", "no_way"),
        ("react/ollama/llama3", "high", "no_way"),
        ("ollama/gpt-oss:20b", "high", None),
        ("scripted/tour", "high", None),
    ],
)
def test_whether_a_thinking_level_reaches_the_model(
    model: str, level: ThinkingLevel, why: str | None, tmp_path: Path
) -> None:
    assert router(tmp_path).obstacle_to_thinking(model, level, None) == why


@pytest.mark.parametrize(
    ("name", "thinks"),
    [
        ("gpt-5.4", True),
        ("o3", True),
        ("gpt-5.3-codex", True),
        ("gpt-11-not-known-yet", True),
        ("gpt-4.1", False),
        ("gpt-5-chat-latest", False),
        ("gpt-11-chat", False),
        ("test-model", False),
    ],
)
async def test_openais_reasoning_models_are_asked_over_responses(name: str, thinks: bool, tmp_path: Path) -> None:
    assert reasons(f"openai/{name}") is thinks
    async with ModelServer([Reply(text="Hello.")]) as server:
        models = router(tmp_path, {"OPENAI_API_KEY": "sk-12345678", "OPENAI_BASE_URL": server.url})
        message = await final(models.open(f"openai/{name}"), request_for(f"openai/{name}"))
        await models.close()
    assert (message.text, message.error) == ("Hello.", None)
    assert server.requests[0].path == ("/v1/responses" if thinks else "/v1/chat/completions")


async def test_a_gateway_without_responses_is_asked_for_chat_completions_from_then_on(tmp_path: Path) -> None:
    async with ModelServer([Reply(text="One."), Reply(text="Two.")], responses=False) as server:
        models = router(tmp_path, {"OPENAI_API_KEY": "sk-12345678", "OPENAI_BASE_URL": server.url})
        model = models.open("openai/gpt-5.4")
        texts = [(await final(model, request_for("openai/gpt-5.4"))).text for _ in range(2)]
        await models.close()
    assert texts == ["One.", "Two."]
    assert [request.path for request in server.requests] == ["/v1/chat/completions"] * 2


async def test_every_model_of_an_address_that_ends_in_responses_is_asked_there(tmp_path: Path) -> None:
    async with ModelServer([Reply(text="Hello.")]) as server:
        models = router(tmp_path)
        model = models.open("openai_compatible/qwen3", f"{server.url}/responses")
        message = await final(model, request_for("openai_compatible/qwen3"))
        await models.close()
    assert (message.text, server.requests[0].path) == ("Hello.", "/v1/responses")


async def test_script_continues_at_the_position_of_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "tour.yaml").write_text(
        """
replies:
  - calls: [{tool: ask_user, arguments: {question: "Which colour?"}}]
  - - when: blue
      text: "You said ${last_result} to: ${prompt}"
    - text: "Something else."
"""
    )
    models = router(tmp_path)
    model = models.open("scripted/tour")
    request = request_for("scripted/tour")
    first = await final(model, request)
    for answer, expected in (("dark blue", "You said dark blue to: hello"), ("red", "Something else.")):
        result = ToolResultMessage(first.tool_calls[0].id, "ask_user", (Text(answer),))
        messages = (*request.messages, first, result)
        assert (await final(model, ModelRequest("scripted/tour", "", messages))).text == expected
    missing = await final(models.open("scripted/none"), request_for("scripted/none"))
    assert missing.error == "There is no script named none. Scripts there are: tour."
    await models.close()


def test_importing_the_engine_imports_no_heavy_library() -> None:
    code = (
        "import pathlib, pkgutil, importlib, sys, errand.engine.models.router, errand.engine.core.secrets\n"
        "heavy = {'litellm', 'openai', 'aiohttp', 'keyring', 'cryptography', 'yaml'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import errand.engine.models.litellm.model, errand.engine.models.openai.model\n"
        "import errand.engine.main\n"
        "heavy = {'litellm', 'openai', 'keyring', 'markdown_it', 'errand.engine.data.importers'} & set(sys.modules)\n"
        "heavy |= {'alembic', 'sqlalchemy.orm'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from sqlalchemy.ext.asyncio.session import AsyncSession\n"
        "assert isinstance(AsyncSession, type), 'others can import what the engine does without'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=WAIT_LIMIT_S)


async def test_requests_contain_the_expected_fields(tmp_path: Path) -> None:
    models = router(tmp_path)
    async with ModelServer([Reply(text="hi")]) as server:
        await collect(
            models.open("openai_compatible/big-model", server.url), request_for("openai_compatible/big-model")
        )
        await models.close()
        body = server.requests[0].body
    assert body["model"] == "big-model"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["messages"] == [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "hello"},
    ]


async def test_a_key_that_a_client_offers_is_used_by_the_next_call(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys", NO_LOCAL_SERVERS, lambda: None)
    models = ModelRouter(keys, tmp_path, RetryPolicy(attempts=1))
    async with ModelServer([Reply(text="hi")] * 2) as server:
        model = models.open("mistral/x", server.url)
        assert await models.available.default_model() is None
        assert "no key" in ((await final(model, request_for("mistral/x"))).error or "")
        for key in ("first-key", "second-key"):
            keys.add_environment({"MISTRAL_API_KEY": key})
            assert (await final(model, request_for("mistral/x"))).text == "hi"
        assert await models.available.default_model() == "mistral/mistral-medium-latest"
        await models.close()
        sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == ["Bearer first-key", "Bearer second-key"]


async def test_a_key_never_goes_to_an_address_of_another_terminal(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys", NO_LOCAL_SERVERS, lambda: None)
    models = ModelRouter(keys, tmp_path, RetryPolicy(attempts=1))
    async with (
        ModelServer([Reply(text="hi")] * 2) as first_server,
        ModelServer([Reply(text="hi")] * 2) as second_server,
    ):
        keys.add_environment({"OPENAI_API_KEY": "key-of-one", "OPENAI_BASE_URL": first_server.url})
        first = models.open("openai/gpt-4o")
        await final(first, request_for("openai/gpt-4o"))
        keys.add_environment({"OPENAI_API_KEY": "key-of-two", "OPENAI_BASE_URL": second_server.url})
        for model in (first, models.open("openai/gpt-4o")):
            await final(model, request_for("openai/gpt-4o"))
        await models.close()
    assert [request.headers["Authorization"] for request in first_server.requests] == ["Bearer key-of-one"] * 2
    assert [request.headers["Authorization"] for request in second_server.requests] == ["Bearer key-of-two"]


async def test_a_local_server_whose_address_a_client_offers_is_found(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys", NO_LOCAL_SERVERS, lambda: None)
    models = ModelRouter(keys, tmp_path)
    async with ModelServer(models=["llama-9"]) as server:
        assert await models.available.default_model() is None
        keys.add_environment({"OLLAMA_HOST": server.url.removesuffix("/v1")})
        assert await models.available.default_model() == "ollama/llama-9"
        await models.close()
