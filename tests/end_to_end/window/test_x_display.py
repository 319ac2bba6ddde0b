"""Behaviour 71: the window on a real X display, with real keys and clicks."""

import asyncio
import signal

import pytest

from tests.support.command_line import Errand, rest, statuses
from tests.support.screens import HAS_SCREEN, Screen, screen

pytestmark = pytest.mark.skipif(not HAS_SCREEN, reason="Xvfb and xdotool are not installed")


async def until_allowed(display: Screen, errand: Errand) -> None:
    """Press Ctrl+Enter until it counts: what has just appeared takes no keys."""
    done = asyncio.create_task(statuses(errand, ["completed", "completed", "completed"]))
    while not done.done():
        await display.keys("ctrl+Return")
        await asyncio.wait([done], timeout=0.5)
    await done


async def test_the_tour_is_played_and_all_its_asks_are_answered_by_keyboard_alone(own_errand: Errand) -> None:
    async with screen() as display:
        process = await own_errand.start("window", variables={"DISPLAY": display.display, "QT_QPA_PLATFORM": "xcb"})
        await display.window("Errand")
        await display.keys("ctrl+k")  # the engine is not connected yet
        await display.type("play the tour")
        await display.keys("Return")
        await statuses(own_errand, ["completed", "waiting_user", "waiting_user"])
        await display.keys("ctrl+j")
        await display.type("friendly")
        await display.keys("Return")
        await statuses(own_errand, ["completed", "completed", "waiting_user"])
        await display.keys("ctrl+j")
        await until_allowed(display, own_errand)
        process.send_signal(signal.SIGTERM)
        done = await rest(process)
    assert (done.code, done.err) == (0, "")
