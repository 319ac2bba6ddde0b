"""Downloads: resumed, checked, cancelled, and refused with what to do."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from errand.engine.download import Downloader, DownloadFailed, RemoteFile, part_of
from errand.engine.models.http_pool import HttpPool
from tests.support.limits import WAIT_LIMIT_S
from tests.support.local_models import Hub, hub

DATA = bytes(range(256)) * 4_000


def _remote(server: Hub, sha256: str = "", size_bytes: int = len(DATA)) -> RemoteFile:
    return RemoteFile(f"{server.url}/a.gguf", size_bytes, sha256 or hashlib.sha256(DATA).hexdigest(), "use a mirror")


@asynccontextmanager
async def _downloader(pauses_s: tuple[float, ...] = (0.0, 0.0)) -> AsyncGenerator[Downloader]:
    pool = HttpPool()
    try:
        yield Downloader(lambda: pool, pauses_s=pauses_s)
    finally:
        await pool.close()


async def _fetch(downloader: Downloader, remote: RemoteFile, target: Path) -> list[int]:
    progress: list[int] = []
    await downloader.fetch(remote, target, progress.append)
    return progress


async def test_a_download_that_breaks_off_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    target = tmp_path / "models" / "a.gguf"
    async with hub({"a.gguf": DATA}) as server, _downloader() as downloader:
        server.cuts = [300_000, 200_000]
        progress = await _fetch(downloader, _remote(server), target)
    assert target.read_bytes() == DATA
    assert server.ranges[0] == ""
    assert [text.startswith("bytes=") for text in server.ranges[1:]] == [True, True]
    assert progress == sorted(progress)
    assert not part_of(target).exists()


async def test_a_connection_that_breaks_off_costs_the_rest_alone(tmp_path: Path) -> None:
    target = tmp_path / "a.gguf"
    async with hub({"a.gguf": DATA}) as server, _downloader((0.0, 0.0, 0.0)) as downloader:
        server.cuts, server.is_abrupt = [300_000, 200_000], True
        await _fetch(downloader, _remote(server), target)
    assert target.read_bytes() == DATA


async def test_a_server_without_ranges_begins_again(tmp_path: Path) -> None:
    target = tmp_path / "a.gguf"
    async with hub({"a.gguf": DATA}) as server, _downloader() as downloader:
        server.cuts, server.ignores_ranges = [300_000], True
        await _fetch(downloader, _remote(server), target)
    assert target.read_bytes() == DATA


async def test_a_file_with_another_checksum_is_deleted(tmp_path: Path) -> None:
    target = tmp_path / "a.gguf"
    async with hub({"a.gguf": DATA}) as server, _downloader() as downloader:
        with pytest.raises(DownloadFailed, match="checksum") as failure:
            await _fetch(downloader, _remote(server, sha256="0" * 64), target)
    assert "use a mirror" in failure.value.advice
    assert not target.exists()
    assert not part_of(target).exists()


async def test_a_larger_file_is_refused(tmp_path: Path) -> None:
    async with hub({"a.gguf": DATA}) as server, _downloader() as downloader:
        with pytest.raises(DownloadFailed, match=r"instead of 1,000"):
            await _fetch(downloader, _remote(server, size_bytes=1_000), tmp_path / "a.gguf")


@pytest.mark.parametrize(("status", "text"), [(404, "does not have"), (401, "wants a sign-in"), (503, "HTTP 503")])
async def test_a_refusal_says_what_to_do(tmp_path: Path, status: int, text: str) -> None:
    async with hub({"a.gguf": DATA}) as server, _downloader() as downloader:
        server.refuses = status
        with pytest.raises(DownloadFailed, match=text) as failure:
            await _fetch(downloader, _remote(server), tmp_path / "a.gguf")
    assert "use a mirror" in failure.value.advice


async def test_without_a_network_what_has_come_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "a.gguf"
    async with hub({"a.gguf": DATA}) as server, _downloader() as downloader:
        server.cuts = [300_000]
        await _fetch(downloader, _remote(server), target)
        remote = _remote(server)
    target.rename(part_of(target))
    part_of(target).write_bytes(DATA[:1_000])
    async with _downloader() as downloader:
        with pytest.raises(DownloadFailed, match="cannot be reached"):
            await _fetch(downloader, remote, target)
    assert part_of(target).read_bytes() == DATA[:1_000]


async def test_a_disk_without_space_is_said_before_the_download(tmp_path: Path) -> None:
    async with hub({"a.gguf": DATA}) as server, _downloader() as downloader:
        with pytest.raises(DownloadFailed, match="not enough space"):
            await _fetch(downloader, _remote(server, size_bytes=10**18), tmp_path / "a.gguf")
        assert server.ranges == []


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file in the place of the folder")
    async with hub({"a.gguf": DATA}) as server, _downloader() as downloader:
        with pytest.raises(DownloadFailed, match="cannot be written") as failure:
            await _fetch(downloader, _remote(server), tmp_path / "models" / "a.gguf")
    assert "try again" in failure.value.advice


async def test_a_hub_that_has_its_files_elsewhere_is_followed(tmp_path: Path) -> None:
    target = tmp_path / "a.gguf"
    async with hub({"a.gguf": DATA}) as store, hub({}) as server, _downloader() as downloader:
        server.moved_to = store.url
        await _fetch(downloader, _remote(server), target)
    assert target.read_bytes() == DATA


async def test_a_cancelled_download_keeps_what_has_come(tmp_path: Path) -> None:
    target = tmp_path / "a.gguf"
    async with hub({"a.gguf": DATA * 10}) as server, _downloader() as downloader:
        server.gate = asyncio.Event()
        begun = asyncio.Event()
        remote = RemoteFile(f"{server.url}/a.gguf", len(DATA) * 10, "", "use a mirror")

        def progress(received: int) -> None:
            if received:
                begun.set()

        download = asyncio.ensure_future(downloader.fetch(remote, target, progress))
        async with asyncio.timeout(WAIT_LIMIT_S):
            await begun.wait()
        download.cancel()
        await asyncio.wait((download,))
        assert download.cancelled()
    assert (DATA * 10).startswith(part_of(target).read_bytes())
    assert part_of(target).stat().st_size > 0
