"""Reads of a database file in threads: errors at the limit of the process, and the end."""

import asyncio
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from errand.engine.core.errors import StorageError
from errand.engine.storage.sqlite.read_threads import ReadThreads

_ONE = text("SELECT 1")


@pytest.fixture
def reads(tmp_path: Path) -> Generator[ReadThreads]:
    engine = create_engine(f"sqlite:///{tmp_path / 'errand.db'}", connect_args={"check_same_thread": False})
    yield ReadThreads(engine)
    engine.dispose()


def no_more_threads(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_reads_at_once_share_the_threads_and_none_is_lost(reads: ReadThreads) -> None:
    results = await asyncio.gather(*(reads.rows(text(f"SELECT {number}"), None) for number in range(50)))
    assert [rows[0][0] for rows in results] == list(range(50))
    await reads.close()


async def test_a_process_without_another_thread_reads_with_those_it_has(
    reads: ReadThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reads.rows(_ONE, None)
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_more_threads)
        assert len(await asyncio.gather(*(reads.rows(_ONE, None) for _ in range(8)))) == 8
    await reads.close()


async def test_a_process_without_any_thread_says_so_and_closes(
    reads: ReadThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_more_threads)
        with pytest.raises(StorageError, match="can't start new thread"):
            await reads.rows(_ONE, None)
    assert (await reads.rows(_ONE, None))[0][0] == 1
    await reads.close()
    with pytest.raises(StorageError, match="closed"):
        await reads.rows(_ONE, None)
