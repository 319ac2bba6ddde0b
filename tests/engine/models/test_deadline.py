"""The time limits of a model call: what ends a block, and what is left of the block afterwards."""

import asyncio

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.models.deadline import Aborted, Deadline, Stalled
from errand.engine.models.reply.content import ReplyTooLong


async def wait_within(deadline: Deadline, limit_s: float) -> None:
    async with deadline.within(limit_s):
        await asyncio.Event().wait()


async def test_a_stop_ends_the_block_and_leaves_the_task_as_it_was() -> None:
    stop, task = CancelSignal(), asyncio.current_task()
    assert task is not None
    with Deadline(stop) as deadline:
        asyncio.get_running_loop().call_soon(stop.set)
        with pytest.raises(Aborted):
            await wait_within(deadline, 60)
        assert task.cancelling() == 0
        with pytest.raises(Aborted):
            deadline.within(60)


async def test_a_stop_in_the_moment_in_which_a_block_ends_cancels_nothing() -> None:
    stop, task = CancelSignal(), asyncio.current_task()
    assert task is not None
    with Deadline(stop) as deadline:
        async with deadline.within(60):
            stop.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert task.cancelling() == 0


async def test_a_task_that_is_cancelled_and_stopped_at_once_ends_as_cancelled() -> None:
    stop = CancelSignal()

    async def work() -> None:
        with Deadline(stop) as deadline:
            await wait_within(deadline, 60)

    for stops_first in (True, False):
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        for act in (stop.set, task.cancel) if stops_first else (task.cancel, stop.set):
            act()
        with pytest.raises(asyncio.CancelledError):
            await task
        stop = CancelSignal()


async def test_a_limit_that_passes_is_a_stall_and_that_of_the_whole_reply_says_so() -> None:
    with Deadline(CancelSignal()) as deadline:
        with pytest.raises(Stalled, match="nothing came for 0 s"):
            await wait_within(deadline, 0)
        async with deadline.within(60):
            await asyncio.sleep(0)  # the next block is not affected
    with Deadline(CancelSignal(), limit_s=0.001) as deadline, pytest.raises(ReplyTooLong):
        await wait_within(deadline, 60)


async def test_a_time_limit_of_a_library_counts_as_a_stall() -> None:
    with Deadline(CancelSignal()) as deadline, pytest.raises(Stalled, match="nothing came for 7 s"):
        async with deadline.within(7):
            raise TimeoutError
