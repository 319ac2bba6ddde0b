"""What computes for long lets others work: the event loop and the threads beside it."""

import asyncio
import sys
import time

from errand.engine.core.fair_share import Slice, short_switches


def compute(seconds: float) -> None:
    """Compute for so many seconds of CPU time, which do not depend on how busy the machine is."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def timers_of(share: Slice) -> int:
    """Return the number of due timers that the event loop runs while the slice is renewed."""
    ended: list[None] = []
    asyncio.get_running_loop().call_later(0, ended.append, None)
    await share.renew()
    return len(ended)


async def test_coroutine_pauses_after_computing_for_a_slice() -> None:
    # On a machine whose other programs take most of both cores, the thread may wait more than it computes.
    assert any(not Slice().is_over for _ in range(100))
    for _ in range(100):
        share = Slice()
        compute(0.006)
        assert share.is_over
        if await timers_of(share) and not share.is_over:
            break
    else:
        raise AssertionError("it never paused, or its slice did not begin again")


async def test_coroutine_that_has_waited_continues_at_once() -> None:
    share = Slice()
    await asyncio.sleep(0.05)
    assert share.is_over
    assert await timers_of(share) == 0


async def test_switch_interval_is_short_until_the_last_user_has_ended() -> None:
    usual = sys.getswitchinterval()
    with short_switches():
        with short_switches():
            inner = sys.getswitchinterval()
        assert inner == sys.getswitchinterval() < usual
    assert sys.getswitchinterval() == usual
