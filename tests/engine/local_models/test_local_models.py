"""The models of this machine, from the list to the end of the process that runs one."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import Conflict, InvalidParams, NotFound
from errand.engine.core.messages import user_text
from errand.engine.core.secrets import KeyStore
from errand.engine.local_models.machine import Machine
from errand.engine.models.base import ModelRequest, ReplyEnd
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter
from tests.support.limits import WAIT_LIMIT_S
from tests.support.local_models import LocalModelsLab, catalogue_model, gguf, hub, local_models, stand_in_program
from tests.support.processes import is_alive, until
from tests.support.provider_servers import NO_LOCAL_SERVERS

SMALL = gguf(padding=b"s" * 200_000)
LARGE = gguf(padding=b"l" * 300_000)
CATALOGUE = (catalogue_model("small", SMALL), catalogue_model("large", LARGE, parameters=3.0))


@asynccontextmanager
async def _router(lab: LocalModelsLab, folder: Path) -> AsyncGenerator[ModelRouter]:
    keys = KeyStore(folder / "keys", NO_LOCAL_SERVERS, lambda: None)
    router = ModelRouter(keys, folder, RetryPolicy(attempts=1), lambda: lab.values, local=lab.models)
    try:
        yield router
    finally:
        await router.close()


@asynccontextmanager
async def _lab_and_router(
    folder: Path, *options: str, **values: object
) -> AsyncGenerator[tuple[LocalModelsLab, ModelRouter]]:
    """A hub with both models, a program with these options that runs them, and the router that asks them."""
    program = stand_in_program(folder / "bin", *options)
    async with (
        hub({"small.gguf": SMALL, "large.gguf": LARGE}) as server,
        local_models(folder, CATALOGUE, model_hub=server.url, llama_server=str(program), **values) as lab,
        _router(lab, folder) as router,
    ):
        yield lab, router


async def _reply(router: ModelRouter, model_id: str, cancel: CancelSignal | None = None) -> ReplyEnd:
    request = ModelRequest(model_id, "", (user_text("who are you?"),))
    async with asyncio.timeout(WAIT_LIMIT_S):
        events = [event async for event in router.open(model_id).stream(request, cancel or CancelSignal())]
    assert isinstance(events[-1], ReplyEnd)
    return events[-1]


def _starts(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


async def _installed(lab: LocalModelsLab, *names: str) -> None:
    for name in names:
        await lab.models.install(f"local/{name}")
        assert (await lab.until(name, "installed", "failed")).state == "installed"


async def test_a_model_is_downloaded_answers_and_is_removed(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    async with _lab_and_router(tmp_path, "--log", str(log)) as (lab, router):
        assert (await router.available.list(refresh=True)).default is None
        await _installed(lab, "small")
        listing = await router.available.list(refresh=True)
        assert listing.default == "local/small"
        (model,) = (model for model in listing.models if model.provider == "local")
        assert (model.context_tokens, model.input_price, model.output_price) == (8_192, 0.0, 0.0)
        assert router.has_price("local/small")
        assert (await _reply(router, "local/small")).message.text == "I am small."
        assert (await _reply(router, "local/small")).message.text == "I am small."
        (start,) = _starts(log)
        assert (start["alias"], start["context"]) == ("small", "8192")
        assert (await lab.state("small")).running
        await lab.models.remove("local/small")
        assert not is_alive(int(str(start["pid"])))
        assert (await lab.state("small")).state == "available"
        assert not list((tmp_path / "data").rglob("*.gguf"))
    states = [model.state for model in lab.published if model.id == "local/small"]
    assert states[0] == "downloading"
    assert "checking" in states


async def test_one_model_is_in_memory_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    async with _lab_and_router(tmp_path, "--log", str(log)) as (lab, router):
        await _installed(lab, "small", "large")
        names = ("small", "large", "small")
        replies = await asyncio.gather(*(_reply(router, f"local/{name}") for name in names))
        assert [reply.message.text for reply in replies] == ["I am small.", "I am large.", "I am small."]
        assert [start["alias"] for start in _starts(log)] == ["small", "large", "small"]
        pids = [int(str(start["pid"])) for start in _starts(log)]
        assert [is_alive(pid) for pid in pids] == [False, False, True]
    assert not any(map(is_alive, pids))


async def test_a_model_is_loaded_ahead_of_a_request_and_a_failure_is_left_to_the_request(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bad.gguf").write_bytes(gguf(padding=b"BROKEN", template=""))
    values: dict[str, object] = {"local_models_folder": str(tmp_path / "mine"), "local_model_idle_minutes": 0.0}
    async with _lab_and_router(tmp_path, "--log", str(log), **values) as (lab, router):
        await _installed(lab, "small")
        assert await router.servers.status("local/gone") is None
        status = await router.servers.status("local/small")
        assert status is not None
        assert status.is_loading
        assert router.servers.label("local/small", None, status) == "This machine"
        await until(lambda: lab.models.running == "small")
        status = await router.servers.status("local/small")
        assert status is not None
        assert not status.is_loading
        assert (await _reply(router, "local/small")).message.text == "I am small."
        assert len(_starts(log)) == 1
        status = await router.servers.status("local/bad")
        assert status is not None
        assert status.models[0].calls_tools is False
        async with asyncio.timeout(WAIT_LIMIT_S):
            while status.is_loading:
                await asyncio.sleep(0.01)  # a start that fails sets no event: the status is asked, as before a request
                status = await router.servers.status("local/bad")
                assert status is not None
        assert "tensor data is missing" in str((await _reply(router, "local/bad")).message.error)


async def test_a_server_that_crashes_is_started_without_matrix_instructions_from_then_on(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    (tmp_path / "mine").mkdir()
    for name in ("fast", "other"):
        (tmp_path / "mine" / f"{name}.gguf").write_bytes(gguf(padding=b"AMX"))
    values: dict[str, object] = {"local_models_folder": str(tmp_path / "mine")}
    async with _lab_and_router(tmp_path, "--log", str(log), **values) as (_, router):
        assert (await _reply(router, "local/fast")).message.text == "I am fast."
        assert (await _reply(router, "local/other")).message.text == "I am other."
        assert [start["alias"] for start in _starts(log)] == ["fast", "fast", "other"]


async def test_an_idle_model_leaves_the_memory(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    async with _lab_and_router(tmp_path, "--log", str(log), local_model_idle_minutes=0.0) as (lab, router):
        await _installed(lab, "small")
        await _reply(router, "local/small")
        await until(lambda: not is_alive(int(str(_starts(log)[0]["pid"]))))
        assert (await _reply(router, "local/small")).message.text == "I am small."


async def test_a_server_that_died_is_started_again(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    async with _lab_and_router(tmp_path, "--log", str(log)) as (lab, router):
        await _installed(lab, "small")
        await _reply(router, "local/small")
        os.kill(int(str(_starts(log)[0]["pid"])), signal.SIGKILL)
        await until(lambda: not lab.models.running)
        assert (await _reply(router, "local/small")).message.text == "I am small."


async def test_a_stopped_request_leaves_the_queue(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with _lab_and_router(tmp_path, "--gate", str(gate)) as (lab, router):
        await _installed(lab, "small", "large")
        first = asyncio.ensure_future(_reply(router, "local/small"))
        await until(lambda: lab.models.running == "small")
        cancel = CancelSignal()
        second = asyncio.ensure_future(_reply(router, "local/large", cancel))
        await asyncio.sleep(0)
        cancel.set()
        with pytest.raises(Conflict, match="small is answering"):
            await lab.models.remove("local/small")
        assert (await second).message.stop_reason == "aborted"
        gate.touch()
        assert (await first).message.text == "I am small."
        assert lab.models.running == "small"


async def test_a_model_that_does_not_fit_is_refused_with_the_numbers(tmp_path: Path) -> None:
    async with _lab_and_router(tmp_path) as (lab, router):
        await _installed(lab, "small")
        lab.machine = Machine(100_000_000, 4, has_gpu=False)
        assert not (await lab.state("small")).fits
        reply = await _reply(router, "local/small")
        assert reply.message.error is not None
        assert "0.3 GB of memory, and 0.1 GB are free" in reply.message.error


async def test_a_file_that_cannot_be_loaded_is_said_in_the_words_of_the_server(tmp_path: Path) -> None:
    program = stand_in_program(tmp_path / "bin")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bad.gguf").write_bytes(gguf(padding=b"BROKEN"))
    async with (
        local_models(tmp_path, (), local_models_folder=str(tmp_path / "mine"), llama_server=str(program)) as lab,
        _router(lab, tmp_path) as router,
    ):
        reply = await _reply(router, "local/bad")
        assert reply.message.error is not None
        assert "tensor data is missing" in reply.message.error
        with pytest.raises(InvalidParams, match="did not download"):
            await lab.models.remove("local/bad")
        with pytest.raises(NotFound):
            await lab.models.install("local/other")


async def test_a_model_of_another_program_needs_the_server_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    file = tmp_path / "home" / ".lmstudio" / "models" / "someone" / "it" / "it.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(SMALL)
    async with local_models(tmp_path) as lab:
        model = await lab.state("it")
        assert (model.state, model.received_bytes) == ("available", model.size_bytes)
        assert await lab.models.names() == ()
        stand_in_program(tmp_path / "bin")
        await _installed(lab, "it")
        assert await lab.models.names() == ("it",)


async def test_a_download_begins_with_the_program_that_runs_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    async with (
        hub({"small.gguf": SMALL}) as server,
        local_models(tmp_path, CATALOGUE, model_hub=server.url, llama_cpp_downloads=f"{server.url}/releases") as lab,
    ):
        await lab.models.install("local/small")
        model = await lab.until("small", "failed")
        assert "llama-server" in model.advice
        assert [model.state for model in lab.published] == ["preparing", "failed"]
        assert (await lab.state("small")).received_bytes == 0


async def test_a_cancelled_download_goes_on_from_there(tmp_path: Path) -> None:
    data = gguf(padding=b"x" * 12_000_000)
    program = stand_in_program(tmp_path / "bin")
    catalogue = (catalogue_model("small", data),)
    async with (
        hub({"small.gguf": data}) as server,
        local_models(tmp_path, catalogue, model_hub=server.url, llama_server=str(program)) as lab,
    ):
        server.gate = asyncio.Event()
        await lab.models.install("local/small")
        await lab.models.install("local/small")
        async with asyncio.timeout(WAIT_LIMIT_S):
            while not lab.published[-1].received_bytes:
                lab.heard.clear()
                await lab.heard.wait()
        await lab.models.cancel("local/small")
        model = await lab.until("small", "available")
        assert 0 < model.received_bytes < model.size_bytes
        server.gate.set()
        await _installed(lab, "small")
        assert server.ranges[-1] == f"bytes={model.received_bytes}-"


async def test_an_engine_that_ends_in_a_download_leaves_it_to_the_next_one(tmp_path: Path) -> None:
    data = gguf(padding=b"x" * 12_000_000)
    program = stand_in_program(tmp_path / "bin")
    catalogue = (catalogue_model("small", data),)
    async with hub({"small.gguf": data}) as server:
        server.gate = asyncio.Event()
        async with local_models(tmp_path, catalogue, model_hub=server.url, llama_server=str(program)) as lab:
            await lab.models.install("local/small")
            async with asyncio.timeout(WAIT_LIMIT_S):
                while not lab.published[-1].received_bytes:
                    lab.heard.clear()
                    await lab.heard.wait()
        server.gate.set()
        async with local_models(tmp_path, catalogue, model_hub=server.url, llama_server=str(program)) as lab:
            model = await lab.state("small")
            assert model.state == "available"
            assert 0 < model.received_bytes < model.size_bytes
            await _installed(lab, "small")
            assert server.ranges[-1] == f"bytes={model.received_bytes}-"


async def test_a_failed_download_says_why_and_what_to_do(tmp_path: Path) -> None:
    program = stand_in_program(tmp_path / "bin")
    async with (
        hub({}) as server,
        local_models(tmp_path, CATALOGUE, model_hub=server.url, llama_server=str(program)) as lab,
    ):
        await lab.models.install("local/small")
        model = await lab.until("small", "failed")
        assert "404" in model.problem
        assert "model_hub" in model.advice


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (Machine(8_000_000_000, 4, has_gpu=False), "large"),
        (Machine(8_000_000_000, 2, has_gpu=False), "small"),
        (Machine(8_000_000_000, 2, has_gpu=True), "large"),
        (Machine(100_000_000, 16, has_gpu=False), ""),
    ],
)
async def test_the_best_model_that_fits_and_is_fast_enough_is_recommended(
    tmp_path: Path, machine: Machine, name: str
) -> None:
    async with local_models(tmp_path, CATALOGUE) as lab:
        lab.machine = machine
        listing = await lab.models.list()
        assert [model.id for model in listing.models if model.recommended] == [f"local/{name}"] * bool(name)
