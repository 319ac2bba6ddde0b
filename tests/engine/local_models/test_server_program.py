"""llama.cpp's server is found, or unpacked from the pinned archive."""

import hashlib
import io
import tarfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from errand.engine.download import Downloader, DownloadFailed
from errand.engine.local_models.server_program import ARCHIVES, RELEASE, ServerArchive, ServerProgram
from errand.engine.models.http_pool import HttpPool
from tests.support.local_models import Hub, hub, stand_in_program

NAME = "llama-test.tar.gz"


def _archive(*members: tuple[str, bytes | str]) -> bytes:
    """Return an archive: content as bytes is a file, a text is what a link points to."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size, member.mode = len(content), 0o755
                archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@asynccontextmanager
async def _program(
    folder: Path, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[ServerProgram, Hub]]:
    monkeypatch.setenv("PATH", str(folder / "bin"))
    pool = HttpPool()
    archive = ServerArchive(NAME, len(data), hashlib.sha256(data).hexdigest())
    async with hub({NAME: data}) as server:
        yield ServerProgram(folder / "server", Downloader(lambda: pool, pauses_s=()), archive), server
    await pool.close()


async def test_an_installed_program_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _program(tmp_path, b"", monkeypatch) as (program, server):
        installed = stand_in_program(tmp_path / "bin")
        assert await program.install("", server.url, lambda received: None) == installed
        assert server.ranges == []


async def test_a_program_below_the_folder_of_the_engine_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_program(tmp_path)
    monkeypatch.chdir(tmp_path)
    async with _program(tmp_path, b"", monkeypatch) as (program, _):
        for folders in ("", ".", f":{tmp_path / 'bin'}"):
            monkeypatch.setenv("PATH", folders)
            assert program.find("") is None


async def test_a_named_program_goes_first_and_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _program(tmp_path, b"", monkeypatch) as (program, server):
        stand_in_program(tmp_path / "bin")
        named = stand_in_program(tmp_path / "mine")
        assert program.find(str(named)) == named
        with pytest.raises(DownloadFailed, match="There is no program"):
            await program.install(str(tmp_path / "gone"), server.url, lambda received: None)


async def test_the_archive_is_unpacked_with_its_links_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _archive(
        ("build/libllama.so.0", b"library"), ("build/libllama.so", "libllama.so.0"), ("build/llama-server", b"#!")
    )
    async with _program(tmp_path, data, monkeypatch) as (program, server):
        path = await program.install("", f"{server.url}/releases/", lambda received: None)
        assert path == tmp_path / "server" / RELEASE / "build" / "llama-server"
        assert (path.parent / "libllama.so").read_bytes() == b"library"
        assert not (tmp_path / "server" / NAME).exists()
        program.remove()
        assert program.find("") is None


@pytest.mark.parametrize("name", ["../outside", "/outside", "build/../../outside"])
async def test_an_archive_that_leaves_its_folder_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _program(tmp_path, _archive((name, b"x")), monkeypatch) as (program, server):
        with pytest.raises(DownloadFailed, match="cannot be unpacked"):
            await program.install("", server.url, lambda received: None)
    assert not (tmp_path / "outside").exists()


async def test_links_out_of_the_folder_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _archive(("build/link", "../../../outside"), ("build/llama-server", b"#!"))
    async with _program(tmp_path, data, monkeypatch) as (program, server):
        path = await program.install("", server.url, lambda received: None)
    assert [file.name for file in path.parent.iterdir()] == ["llama-server"]


def test_every_archive_is_one_of_the_release() -> None:
    assert all(f"-{RELEASE}-" in archive.file and len(archive.sha256) == 64 for archive in ARCHIVES.values())
