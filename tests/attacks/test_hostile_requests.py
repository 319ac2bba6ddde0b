"""Hostile paths and addresses on the wire: a clear refusal, no effect, and a line in the log."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.conformance.wire_engine import WireEngine, wire_engine
from tests.support.connections import RawClient, error_of

_LONG = "a/" * 40_000
PATHS = {
    "nothing": "",
    "a null character": "{ws}/a\0b",
    "too long": f"{{ws}}/{_LONG}",
    "one name too long": f"{{ws}}/{'n' * 5_000}",
    "relative": "a/../../b",
    "half a character": "{ws}/\udc80",
    "the app's own data": "{home}/run/engine.json",
    "a link to the app's own data": "{ws}/own/errand.db",
    "a link to itself": "{ws}/loop/x",
    "a device": "/dev/null",
    "the processes": "/proc/self/environ",
}
ADDRESSES = (
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "http://",
    "http://a b/",
    "http://127.0.0.1:99999/v1",
    "http://\0/v1",
    "javascript:alert(1)",
    "//evil.example/v1",
    "http://[::1/v1",
    "http://exa\nmple/v1",
)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[WireEngine]:
    async with wire_engine(tmp_path) as running:
        workspace = running.parts.workspace
        (workspace / "own").symlink_to(running.parts.services.paths.home)
        (workspace / "loop").symlink_to("loop")
        yield running


async def refused(engine: WireEngine, method: str, **params: object) -> str:
    """The text of the refusal. Afterwards the client is served as before, and nothing was started or stored."""
    async with engine.client() as client:
        assert "result" in await client.initialize("hostile")
        before = await _state(engine, client)
        code, word, text = error_of(await client.ask(method, 1, **params))
        assert word != "internal", (code, text)
        assert await _state(engine, client) == before
        return text


async def _state(engine: WireEngine, client: RawClient) -> object:
    tasks = (await client.ask("task/list", "t"))["result"]
    servers = (await client.ask("settings/get", "s"))["result"]
    return tasks, servers, sorted(os.listdir(engine.parts.workspace))


def _path(engine: WireEngine, name: str) -> str:
    return PATHS[name].format(ws=engine.parts.workspace, home=engine.parts.services.paths.home)


@pytest.mark.parametrize("name", [name for name in PATHS if "\udc80" not in PATHS[name]])
async def test_no_export_is_written_to_a_hostile_path(
    engine: WireEngine, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert await refused(engine, "data/export", path=_path(engine, name), overwrite=True)
    assert "refused data/export of 'raw'" in caplog.text


@pytest.mark.parametrize("name", [name for name in PATHS if "\udc80" not in PATHS[name]])
async def test_nothing_is_imported_from_a_hostile_path(
    engine: WireEngine, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert await refused(engine, "data/import", path=_path(engine, name))
    assert "refused data/import of 'raw'" in caplog.text


_WORKSPACES = ("a null character", "too long", "one name too long", "relative", "a link to itself", "a device")


@pytest.mark.parametrize("name", _WORKSPACES)
async def test_no_task_works_in_a_hostile_folder(
    engine: WireEngine, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = {"model": "openai_compatible/test-model", "apiBase": engine.parts.model.url, "apiKey": "none"}
    assert await refused(engine, "task/start", prompt="go", workspace=_path(engine, name), **model)
    assert "refused task/start of 'raw'" in caplog.text
    assert engine.parts.model.requests == []


@pytest.mark.parametrize("address", ADDRESSES)
async def test_no_model_is_asked_at_a_hostile_address(
    engine: WireEngine, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    params = {"prompt": "go", "model": "openai_compatible/test-model", "apiBase": address, "apiKey": "none"}
    assert await refused(engine, "task/start", **params)
    assert "refused task/start of 'raw'" in caplog.text


async def test_half_a_character_is_no_json(engine: WireEngine) -> None:
    async with engine.client() as client:
        await client.initialize("hostile")
        await client.send('{"jsonrpc":"2.0","id":1,"method":"data/import","params":{"path":"/tmp/\\udc80"}}')
        assert "error" in await client.read()
