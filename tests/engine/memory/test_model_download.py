"""The download of the embedding model, from a server on this machine with small files in place of the real ones."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import pytest
from aiohttp import web

from errand.engine.memory.model_download import ModelDownload, ModelFile, ModelSource, ModelState
from errand.engine.models.http_pool import HttpPool
from errand.system.paths import Paths
from tests.support.disks import filled, small_disk
from tests.support.processes import until
from tests.support.web_site import Handler, WebSite, web_site

_FILES = {
    "config.json": b"{}",
    "tokenizer_config.json": b'{"model_max_length": 512}',
    "tokenizer.json": b'{"version": "1.0"}' * 1_000,
    "model.onnx": bytes(range(256)) * 20_000,
}
_MODEL = _FILES["model.onnx"]
_TOTAL = sum(len(data) for data in _FILES.values())


@dataclass(slots=True)
class Hub:
    """`ranges` are the Range headers for model.onnx, in order; `answers` come before the right one, first to last."""

    site: WebSite
    download: ModelDownload
    target: Path
    ranges: list[str] = field(default_factory=list[str])
    answers: list[Handler] = field(default_factory=list[Handler])
    setting: str = ""
    declined: bool = False

    async def end(self) -> ModelState:
        await until(lambda: self.download.state.status != "downloading")
        return self.download.state

    def is_complete(self) -> bool:
        return not self.part.exists() and {file.name: file.read_bytes() for file in self.target.iterdir()} == _FILES

    @property
    def part(self) -> Path:
        return self.target.with_name("embedding.part")


def whole(data: bytes) -> Handler:
    """Answers with what a Range header asks for, as the real hub does."""

    async def answer(request: web.Request) -> web.StreamResponse:
        first = request.http_range.start or 0
        headers = {"Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"} if first else {}
        return web.Response(status=206 if first else 200, body=data[first:], headers=headers)

    return answer


def cut(data: bytes, after: int, then: asyncio.Event | None = None) -> Handler:
    """Sends `after` bytes, waits for `then`, and closes the connection; or sends the rest after `then`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(data))})
        await response.prepare(request)
        await response.write(data[:after])
        if then is not None:
            await then.wait()
            await response.write(data[after:])
        elif request.transport is not None:
            request.transport.close()
        return response

    return answer


@asynccontextmanager
async def hub_with(
    home: Path, silent_s: float = 5.0, limit_s: float = 30.0, moved: bool = False
) -> AsyncGenerator[Hub]:
    async def model(request: web.Request) -> web.StreamResponse:
        hub.ranges.append(request.headers.get("Range", ""))
        return await (hub.answers.pop(0) if hub.answers else whole(_MODEL))(request)

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"http://localhost:{request.url.port}/store/model.onnx")

    pages = {f"/files/{name}": whole(data) for name, data in _FILES.items()}
    pages |= {"/files/model.onnx": elsewhere if moved else model, "/store/model.onnx": model}
    files = [ModelFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in _FILES.items()]
    async with web_site(pages) as site:
        paths, pool = Paths(home), HttpPool()
        source = ModelSource(site.url("/files"), files, silent_s, limit_s)
        download = ModelDownload(lambda: hub.setting, paths, pool, lambda: source, lambda: not hub.declined)
        hub = Hub(site, download, paths.embedding)
        try:
            yield hub
        finally:
            await hub.download.cancel()
            await pool.close()


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncGenerator[Hub]:
    async with hub_with(tmp_path) as model_hub:
        yield model_hub


async def test_the_model_is_downloaded_with_progress_and_moved_into_place(hub: Hub) -> None:
    assert hub.download.state == ModelState("missing")
    states: list[ModelState] = []
    unsubscribe = hub.download.subscribe(states.append)
    hub.download.start()
    hub.download.start()
    assert hub.download.state == ModelState("downloading", 0, _TOTAL)
    assert await hub.end() == ModelState("ready")
    unsubscribe()
    assert hub.is_complete()
    assert (states[0], states[-1]) == (ModelState("downloading", 0, _TOTAL), ModelState("ready"))
    assert sorted(states[:-1], key=lambda state: state.done) == states[:-1]
    hub.download.start()
    assert hub.ranges == [""], "what is there is not downloaded again"


async def test_a_redirect_to_where_the_files_are_stored_is_followed(tmp_path: Path) -> None:
    async with hub_with(tmp_path, moved=True) as hub:
        hub.download.start()
        assert await hub.end() == ModelState("ready")
        assert hub.is_complete()


async def test_a_cut_connection_is_taken_up_where_it_ended(hub: Hub) -> None:
    hub.answers = [cut(_MODEL, 2_000_000)]
    hub.download.start()
    assert await hub.end() == ModelState("ready")
    assert hub.is_complete()
    first, second = hub.ranges
    assert first == ""
    assert 0 < int(second.removeprefix("bytes=").removesuffix("-")) <= 2_000_000


async def test_a_server_that_knows_no_ranges_sends_all_again(hub: Hub) -> None:
    event = asyncio.Event()
    event.set()
    hub.answers = [cut(_MODEL, 2_000_000), cut(_MODEL, 10, event)]
    hub.download.start()
    assert await hub.end() == ModelState("ready")
    assert hub.is_complete()


async def test_a_connection_that_brings_nothing_is_not_tried_for_ever(hub: Hub) -> None:
    hub.answers = [cut(_MODEL, 0) for _ in range(20)]
    hub.download.start()
    state = await hub.end()
    assert state.status == "failed"
    assert "did not arrive (" in state.reason
    assert len(hub.ranges) == 1


async def test_a_cancelled_download_ends_at_once_and_goes_on_later(hub: Hub) -> None:
    hub.answers = [cut(_MODEL, 2_000_000, asyncio.Event())]
    hub.download.start()
    await until(lambda: hub.download.state.done > 1_000_000)
    await hub.download.cancel()
    assert hub.download.state == ModelState("missing")
    assert not hub.target.exists()
    hub.download.start()
    assert await hub.end() == ModelState("ready")
    assert hub.is_complete()
    assert hub.ranges[1].startswith("bytes=")


async def test_a_download_that_has_not_begun_can_be_cancelled(hub: Hub) -> None:
    hub.download.start()
    await hub.download.cancel()
    await hub.download.cancel()
    assert hub.download.state == ModelState("missing")
    assert hub.site.requests == []


async def test_a_file_of_another_size_is_refused_before_it_is_read(hub: Hub) -> None:
    hub.answers = [whole(_MODEL + b"more")]
    hub.download.start()
    state = await hub.end()
    assert f"{len(_MODEL) + 4:,} bytes instead of {len(_MODEL):,}" in state.reason
    assert not hub.target.exists()


async def test_a_file_with_another_content_is_thrown_away(hub: Hub) -> None:
    hub.answers = [whole(b"x" * len(_MODEL))]
    hub.download.start()
    assert "model.onnx from 127.0.0.1" in (await hub.end()).reason
    assert not hub.target.exists()
    hub.download.start()
    assert await hub.end() == ModelState("ready")
    assert (hub.is_complete(), hub.ranges) == (True, ["", ""])


async def test_a_server_without_the_file_is_said_and_left_in_peace(hub: Hub) -> None:
    async def missing(request: web.Request) -> web.StreamResponse:
        return web.Response(status=404)

    hub.answers = [missing]
    hub.download.start()
    assert "does not have model.onnx (HTTP 404)" in (await hub.end()).reason
    assert len(hub.ranges) == 1, "nothing is tried again by itself"
    hub.download.start()
    assert await hub.end() == ModelState("ready")


async def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    async with hub_with(tmp_path, silent_s=0.1) as hub:
        hub.answers = [cut(_MODEL, 0, asyncio.Event())]
        hub.download.start()
        assert "did not arrive (nothing came in time)" in (await hub.end()).reason


async def test_a_slow_download_has_a_time_limit(tmp_path: Path) -> None:
    async with hub_with(tmp_path, limit_s=0.3) as hub:
        hub.answers = [cut(_MODEL, 1_000_000, asyncio.Event())]
        hub.download.start()
        assert "did not arrive within" in (await hub.end()).reason


async def test_without_a_network_it_fails_at_once_and_says_what_to_do(tmp_path: Path) -> None:
    pool = HttpPool()
    download = ModelDownload(lambda: "", Paths(tmp_path), pool, lambda: ModelSource("http://127.0.0.1:9/files"))
    download.start()
    await until(lambda: download.state.status == "failed")
    assert "127.0.0.1:9 cannot be reached" in download.state.reason
    assert str(tmp_path / "embedding") in download.state.reason
    await pool.close()


async def test_a_proxy_that_cannot_be_used_is_named_and_not_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    pool = HttpPool()
    download = ModelDownload(lambda: "", Paths(tmp_path), pool, lambda: ModelSource("https://hub.test/files"))
    download.start()
    await until(lambda: download.state.status == "failed")
    assert download.state.reason.startswith("The environment names a socks5 proxy for hub.test")
    await pool.close()


async def test_nothing_is_downloaded_for_a_folder_that_a_person_set(hub: Hub, tmp_path: Path) -> None:
    hub.setting = str(tmp_path / "mine")
    hub.download.start()
    assert hub.setting in hub.download.state.reason
    (tmp_path / "mine").mkdir()
    for name, data in _FILES.items():
        (tmp_path / "mine" / name).write_bytes(data)
    assert hub.download.state == ModelState("ready")
    assert hub.site.requests == []


async def test_nothing_is_downloaded_when_the_environment_says_offline(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub.download.start()
    assert "HF_HUB_OFFLINE is set" in hub.download.state.reason
    assert hub.site.requests == []


async def test_a_disk_that_is_too_small_is_said_before_anything_is_downloaded(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        async with hub_with(disk / "home") as hub:
            hub.download.start()
            assert "needs 22 MB more on the disk" in (await hub.end()).reason
            assert hub.site.requests == []


async def test_a_disk_that_fills_up_fails_the_download_which_goes_on_later(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", megabytes=32) as disk:
        async with hub_with(disk / "home") as hub:
            event = asyncio.Event()
            hub.answers = [cut(_MODEL, 2_000_000, event)]
            hub.download.start()
            await until(lambda: hub.download.state.done > 1_000_000)
            with filled(disk):
                event.set()
                assert "No space left" in (await hub.end()).reason
            hub.download.start()
            assert await hub.end() == ModelState("ready")
            assert hub.is_complete()


@pytest.mark.usefixtures("model")
async def test_the_model_is_offered_once_it_was_missed_unless_the_person_declined_or_is_offline(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not hub.download.model().is_offered
    hub.download.miss()
    offered = hub.download.model()
    assert (offered.is_offered, offered.total, offered.hosts) == (True, _TOTAL, (hub.site.url("").split("/")[2],))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not hub.download.model().is_offered
    monkeypatch.delenv("HF_HUB_OFFLINE")
    hub.declined = True
    assert not hub.download.model().is_offered
    assert hub.site.requests == [], "nothing is downloaded by itself"


@pytest.mark.usefixtures("model")
async def test_a_cancelled_download_says_how_much_is_kept(hub: Hub) -> None:
    hub.answers = [cut(_MODEL, 2_000_000, asyncio.Event())]
    hub.download.start()
    await until(lambda: hub.download.state.done > 1_000_000)
    await hub.download.cancel()
    model = hub.download.model()
    assert model.status == "missing" and 1_000_000 < model.done < model.total == _TOTAL


async def test_a_setting_that_names_a_missing_folder_says_so_with_its_path(hub: Hub, tmp_path: Path) -> None:
    hub.setting = str(tmp_path / "nowhere")
    model = hub.download.model()
    assert model.status == "missing"
    assert f"names the folder {tmp_path / 'nowhere'}, which does not exist" in model.reason
    hub.download.start()
    assert "does not exist" in hub.download.state.reason


async def test_weights_that_vanish_beside_their_graph_are_missed_by_name(hub: Hub, tmp_path: Path) -> None:
    hub.target.mkdir(parents=True)
    graph = (files("errand.resources") / "embedding" / "model.onnx").read_bytes()
    for name, data in (("model.onnx", graph), ("model.safetensors", b"weights"), ("tokenizer.json", b"{}")):
        (hub.target / name).write_bytes(data)
    (hub.target / "tokenizer_config.json").write_bytes(b"{}")
    assert hub.download.state.status == "ready"
    (hub.target / "model.safetensors").unlink()
    model = hub.download.model()
    assert (model.status, model.is_offered) == ("missing", False)
    assert model.reason == (
        f"The embedding model is missing: model.safetensors is no longer in {hub.target}. Download it again."
    )
    hub.setting = str(hub.target)
    assert f"The folder {hub.target} of the setting “Embedding model” lacks model.safetensors." in (
        hub.download.model().reason
    )
