import asyncio
import os
import threading
from pathlib import Path

import pytest

from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.workspace_threads import in_workspace
from tests.support.disks import hanging_folder


async def test_result_or_exception_of_the_work_is_returned(tmp_path: Path) -> None:
    assert await in_workspace(tmp_path, lambda: os.listdir(tmp_path)) == []
    with pytest.raises(FileNotFoundError):
        await in_workspace(tmp_path, lambda: os.listdir(tmp_path / "none"))
    with pytest.raises(TimeoutError, match="the work's own"):
        await in_workspace(tmp_path, raise_timeout)


def raise_timeout() -> None:
    raise TimeoutError("the work's own")


async def test_hanging_folder_takes_no_thread_from_others(tmp_path: Path) -> None:
    with hanging_folder(tmp_path / "gone") as gone:
        for _ in range(4):
            with pytest.raises(FolderNotAnswering, match=r"gone did not answer within 0.05 s"):
                await in_workspace(gone, lambda: os.listdir(gone), 0.05)
        with pytest.raises(FolderNotAnswering, match="gone still does not answer"):
            await in_workspace(gone, lambda: os.listdir(gone))
        assert await in_workspace(tmp_path, lambda: 1) == 1


async def test_a_hundred_folders_that_hang_leave_threads_for_another(tmp_path: Path) -> None:
    end = threading.Event()
    try:
        stuck = [asyncio.create_task(in_workspace(tmp_path / str(number), end.wait)) for number in range(100)]
        assert await in_workspace(tmp_path, lambda: 1) == 1
        end.set()
        assert await asyncio.gather(*stuck) == [True] * 100
    finally:
        end.set()


async def test_recovered_folder_is_used_again(tmp_path: Path) -> None:
    end, back = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang() -> None:
        end.wait()
        loop.call_soon_threadsafe(loop.call_soon, back.set)  # after the thread's own callback
        raise OSError("came too late to be told")

    try:
        for _ in range(4):
            with pytest.raises(FolderNotAnswering):
                await in_workspace(tmp_path, hang, 0.01)
    finally:
        end.set()
    await back.wait()
    while True:
        try:
            assert await in_workspace(tmp_path, lambda: 1) == 1
            return
        except FolderNotAnswering:
            await asyncio.sleep(0)


async def test_cancelled_caller_leaves_its_thread_running(tmp_path: Path) -> None:
    end = threading.Event()
    try:
        waiting = asyncio.create_task(in_workspace(tmp_path, end.wait))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await in_workspace(tmp_path, lambda: 1) == 1
    finally:
        end.set()
