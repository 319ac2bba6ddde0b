"""A test that stands still fails, and names where it stands."""

import asyncio
import threading

import pytest

from tests.support.time_limit import time_limit

_SOON_S = 0.1


async def forget_to_answer() -> None:
    await asyncio.Event().wait()


async def wait_for_the_answer() -> None:
    await forget_to_answer()


def test_a_coroutine_that_waits_for_nothing_is_named_with_its_callers() -> None:
    pattern = r"(?s)in wait_for_the_answer.* in forget_to_answer"
    with pytest.raises(pytest.fail.Exception, match=pattern), time_limit(_SOON_S):
        asyncio.run(wait_for_the_answer())


def test_a_lock_that_nobody_releases_is_named_by_the_test_itself() -> None:
    held = threading.Lock()
    held.acquire()
    with pytest.raises(pytest.fail.Exception, match="did not end within 0"), time_limit(_SOON_S):
        held.acquire()
    held.release()


def test_what_ends_in_time_is_left_alone() -> None:
    with time_limit(_SOON_S):
        pass
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"
