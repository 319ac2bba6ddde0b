"""Custom model servers: found at the typed address, with a key that is sent only there."""

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from errand.protocol.base import JsonObject
from errand.protocol.settings import (
    ModelListResult,
    ModelServerSaveResult,
    ModelServerTestResult,
    ModelTestResult,
    Provider,
)
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_server import EngineServer, engine_server
from tests.support.model_server import ModelServer, Reply
from tests.support.provider_servers import own_server, self_signed

KEY = "k-of-the-test-1234567890"
NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing listens there


class Asking:
    """Each request has a unique number."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        self._number = 0

    async def ask(self, method: str, **params: object) -> JsonObject:
        self._number += 1
        return await self._client.ask(method, self._number, **params)

    async def test(self, address: str, **params: object) -> ModelServerTestResult:
        answer = await self.ask("model_server/test", address=address, **params)
        return msgspec.convert(answer["result"], ModelServerTestResult)

    async def save(self, name: str, address: str, **params: object) -> ModelServerSaveResult:
        answer = await self.ask("model_server/save", name=name, address=address, **params)
        return msgspec.convert(answer["result"], ModelServerSaveResult)

    async def found(self, *, refresh: bool = False, fetch: bool = False) -> ModelListResult:
        answer = await self.ask("model/list", refresh=refresh, fetch=fetch)
        return msgspec.convert(answer["result"], ModelListResult)

    async def own(self) -> tuple[Provider, ...]:
        return tuple(provider for provider in (await self.found()).providers if provider.own)

    async def models_of(self, server_id: str) -> tuple[str, ...]:
        return tuple(model.id for model in (await self.found()).models if model.provider == server_id)


async def test_a_server_whose_address_ends_in_responses_is_asked_there(client: Asking) -> None:
    async with ModelServer([Reply(text="OK")], models=["gpt-oss"]) as server:
        saved = await client.save("Box", server.url.removesuffix("/v1") + "/responses")
        assert (saved.ok, (await client.own())[0].api_base) == (True, f"{server.url}/responses")
        assert await client.models_of("box") == ("box/gpt-oss",)
        answer = await client.ask("model/test", provider="box", model="box/gpt-oss")
        assert msgspec.convert(answer["result"], ModelTestResult).ok
        assert [request.path for request in server.requests] == ["/v1/responses"]


@pytest.fixture
async def client(engine: EngineServer) -> AsyncGenerator[Asking]:
    engine.services.keys.add_environment({"OLLAMA_HOST": "127.0.0.1:9"})
    async with raw_client(engine) as raw:
        yield Asking(raw)


@pytest.mark.parametrize("typed", ["{}", "{}/", "{}/v1", "{}/v1/", "{}/v1/models", " {}/v1/chat/completions "])
async def test_server_is_found_from_common_spellings_of_its_address(client: Asking, typed: str) -> None:
    async with own_server() as server:
        outcome = await client.test(typed.format(server.url))
        assert outcome == ModelServerTestResult(
            ok=True,
            address=f"{server.url}/v1",
            text="The server offers 2 models.",
            models=("qwen3", "text-embedding-9"),
        )
        plain = await client.test(typed.format(server.url).replace("http://", ""))
    assert plain == outcome


async def test_server_api_without_a_path_is_found(client: Asking) -> None:
    async with own_server(base="") as server:
        assert (await client.test(f"{server.url}/v1")).address == server.url
    async with own_server(base="/api/openai/v1") as server:
        assert (await client.test(f"{server.url}/api/openai")).address == f"{server.url}/api/openai/v1"


async def test_server_faults_are_explained(client: Asking, tmp_path: Path) -> None:
    async def says(address: str, key: str | None = None) -> str:
        outcome = await client.test(address, key=key)
        assert not outcome.ok and outcome.models == ()
        return outcome.text

    assert await says(NOWHERE) == "Nothing answers at 127.0.0.1:9. Does the server run, and is it this port?"
    assert "no machine named no-such-machine.invalid" in await says("https://no-such-machine.invalid")
    async with own_server(key=KEY) as server:
        assert (await says(server.url)).startswith("The server requires a key.")
        assert (await says(server.url, "wrong-1234567890")).startswith("The server refused this key.")
        host_and_port = server.url.removeprefix("http://")
        assert (
            await says(f"https://{host_and_port}")
            == f"{host_and_port} does not speak https there. Is it http:// that is meant?"
        )
    async with own_server(page=True) as server:
        assert "answers with a web page" in await says(server.url)
    async with own_server(base="/elsewhere") as server:
        assert "There is no list of models at" in await says(server.url)
    async with own_server(moved_to="https://example.com/v1/models") as server:
        assert "sends callers on to 'https://example.com/v1/models'" in await says(server.url, KEY)
    async with own_server(models=()) as server:
        empty = await client.test(server.url)
        assert (empty.ok, empty.text) == (True, "The server answers, but offers no model. Load one there.")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
async def test_self_signed_certificate_is_reported_and_gets_no_key(client: Asking, tmp_path: Path) -> None:
    async with own_server(certificate=self_signed(tmp_path)) as server:
        outcome = await client.test(server.url, key=KEY)
        assert "is not trusted on this machine; it may be self-signed. Nothing was sent." in outcome.text
        plain = await client.test(server.url.replace("https", "http"))
        assert "Is it https:// that is meant?" in plain.text
    assert server.keys == []


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "ftp://host/v1",
        "http://",
        "http://host:99999",
        "http://u:p@host/v1",
        "http://host/v1?key=x",
        "http://h/#a",
        "my server",
    ],
)
async def test_invalid_address_is_refused(client: Asking, typed: str) -> None:
    refused = error_of(await client.ask("model_server/test", address=typed))
    assert refused[1] == "invalid_params", refused


async def test_a_server_is_a_provider_with_models_and_a_key_of_its_own(client: Asking, engine: EngineServer) -> None:
    async with own_server(key=KEY) as server:
        saved = await client.save("Lab machine", server.url, key=KEY)
        assert (saved.id, saved.ok) == ("lab-machine", True)
        assert saved.text.startswith("Saved. The server offers 2 models.")
        (row,) = await client.own()
        assert (row.title, row.api_base, row.ready, row.key_source) == ("Lab machine", f"{server.url}/v1", True, "file")
        assert await client.models_of(saved.id) == ("lab-machine/qwen3", "lab-machine/text-embedding-9")
        assert (await client.found()).default == "lab-machine/qwen3"
    async with raw_client(engine) as other:
        rows = await other.ask("settings/get", 1)
    assert "lab-machine" not in str(rows)


async def test_models_of_a_custom_server_use_its_key_and_can_be_tested(client: Asking) -> None:
    async with ModelServer([Reply(text="OK")]) as server:
        saved = await client.save("Mine", server.url, key=KEY)
        answer = await client.ask("model/test", provider=saved.id)
        tried = msgspec.convert(answer["result"], ModelTestResult)
        sent = server.requests[0].headers["Authorization"]
    assert (tried.ok, tried.model, sent) == (True, "mine/test-model", f"Bearer {KEY}")


async def test_context_windows_come_from_the_list_of_the_server(client: Asking) -> None:
    async with own_server(rows=({"id": "qwen3", "object": "model", "max_model_len": 40_960},)) as server:
        saved = await client.save("vLLM of the lab", server.url)
        (model,) = (model for model in (await client.found()).models if model.provider == saved.id)
    assert (model.id, model.context_tokens) == ("vllm-of-the-lab/qwen3", 40_960)


async def test_custom_servers_survive_a_restart(tmp_path: Path) -> None:
    async with own_server(key=KEY) as server:
        async with engine_server(tmp_path / "home") as engine, raw_client(engine) as raw:
            await Asking(raw).save("Lab", server.url, key=KEY)
        async with engine_server(tmp_path / "home") as engine, raw_client(engine) as raw:
            client = Asking(raw)
            assert [row.title for row in await client.own()] == ["Lab"]
            assert await client.models_of("lab") == ("lab/qwen3", "lab/text-embedding-9")
            server.models = ("newer",)
            await client.found(refresh=True)
            assert await client.models_of("lab") == ("lab/newer",)


async def test_unreachable_server_is_saved_and_asked_again(client: Asking) -> None:
    async with own_server() as server:
        port = int(server.url.rpartition(":")[2])
    saved = await client.save("Lab", server.url)
    assert (saved.ok, saved.text.partition(". ")[0]) == (False, "Saved")
    assert "Nothing answers" in (await client.own())[0].list_error
    async with own_server(port=port):
        await client.found(refresh=True)
        assert await client.models_of("lab") == ("lab/qwen3", "lab/text-embedding-9")
        assert (await client.own())[0].list_error == ""


async def test_a_key_does_not_move_to_another_machine(client: Asking) -> None:
    async with own_server(key=KEY) as server, own_server() as other:
        saved = await client.save("Lab", server.url, key=KEY)
        await client.save("Renamed", f"{server.url}/v1", id=saved.id)
        assert (await client.own())[0].key_source == "file"
        await client.test(other.url, id=saved.id)
        moved = await client.save("Renamed", other.url, id=saved.id)
        assert "It has moved, so its key was removed" in moved.text
        assert [(row.title, row.key_source) for row in await client.own()] == [("Renamed", "not_needed")]
        await client.found(fetch=True)
    assert set(other.keys) == {""}


async def test_the_address_of_a_task_does_not_take_the_key_elsewhere(client: Asking, engine: EngineServer) -> None:
    async with own_server(key=KEY) as server:
        await client.save("Lab", server.url, key=KEY)
        with pytest.raises(Exception, match="Lab has an address of its own"):
            engine.services.models.router.open("lab/qwen3", "http://127.0.0.1:9/v1")


async def test_a_removed_server_is_gone_with_its_key(client: Asking, engine: EngineServer) -> None:
    async with own_server(key=KEY) as server:
        await client.save("Lab", server.url, key=KEY)
        engine.services.settings.set("default_model", "lab/qwen3")
        removed = await client.ask("model_server/remove", id="lab")
        assert "Its model was the default one" in str(removed)
        assert (await client.own(), await client.models_of("lab")) == ((), ())
        again = await client.save("Lab", server.url)
        assert not again.ok and "The server requires a key" in again.text
    assert error_of(await client.ask("model_server/remove", id="nobody"))[1] == "not_found"


async def test_server_names_are_unique_and_ids_differ_from_providers(client: Asking) -> None:
    async with own_server() as server:
        assert (await client.save("OpenAI", server.url)).id == "openai-2"
        assert (await client.save("Azure", server.url)).id == "azure-2"
        assert (await client.save("Сервер", server.url)).id == "server"
        for name in ("openai", "", "x" * 61, "a\u202eb"):
            refused = error_of(await client.ask("model_server/save", name=name, address=server.url))
            assert refused[1] == "invalid_params", refused
        bad_key = await client.ask("model_server/save", name="New", address=server.url, key="two words")
        assert error_of(bad_key)[1] == "invalid_params"
        assert [row.title for row in await client.own()] == ["OpenAI", "Azure", "Сервер"]


ODD = (
    "http://\x00",
    "http://a\x01b/v1",
    "http://ho st:1/v1",
    f"http://{'a' * 300}/v1",
    f"http://127.0.0.1:9/{'a' * 5000}",
    "http://\U0001f600.invalid",
    "http://[::1",
    "http://[::1]:9/v1",
    "http://127.0.0.1:9\\@evil/v1",
    "http://.../v1",
    "http://%00/v1",
    "http://127.0.0.1:-1",
)


@pytest.mark.parametrize("typed", ODD)
async def test_odd_addresses_are_refused_or_reported(client: Asking, typed: str) -> None:
    answer = await client.ask("model_server/test", address=typed, key=KEY)
    assert "result" in answer or error_of(answer)[1] == "invalid_params", answer


async def test_invalid_key_is_refused_before_anything_is_sent(client: Asking) -> None:
    async with own_server() as server:
        for key in ("two words", "a\nb", "ключ", "a\x00b"):
            refused = error_of(await client.ask("model_server/test", address=server.url, key=key))
            assert refused[1] == "invalid_params", refused
    assert server.keys == []


async def test_unlisted_models_of_a_server_can_be_named_in_the_settings(client: Asking, engine: EngineServer) -> None:
    async with own_server(base="/nowhere") as server:
        saved = await client.save("Lab", f"{server.url}/v1")
        assert "add its models yourself" in saved.text
        engine.services.settings.set("own_models", "lab/hidden 32000 0 0 tools")
        assert await client.models_of("lab") == ("lab/hidden",)


async def test_key_quoted_by_a_server_is_neither_shown_nor_stored(client: Asking, engine: EngineServer) -> None:
    rows: tuple[JsonObject, ...] = ({"id": f"model-of-{KEY}"}, {"id": "plain"})
    async with own_server(rows=rows) as server, own_server(moved_to=f"https://elsewhere/?key={KEY}") as moved:
        quoted = await client.test(server.url, key=KEY)
        assert quoted.models == ("model-of-[key removed]", "plain")
        assert "[key removed]" in (await client.test(moved.url, key=KEY)).text
        saved = await client.save("Lab", server.url, key=KEY)
        assert KEY not in str(saved) + str(await client.found())
    files = [file for file in engine.services.paths.home.rglob("*") if file.is_file()]
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []
