"""Waiting for a window: Qt's events and asyncio's take turns until a condition holds."""

import asyncio
import time
from collections.abc import Callable

from PySide6.QtCore import QCoreApplication

_LONGEST_S = 10.0
_PAUSE_S = 0.002


async def until(condition: Callable[[], bool]) -> None:
    """Raises TimeoutError after 10 s."""
    give_up_at = time.monotonic() + _LONGEST_S
    while not condition():
        if time.monotonic() > give_up_at:
            raise TimeoutError("The condition did not come to hold.")
        QCoreApplication.processEvents()
        await asyncio.sleep(_PAUSE_S)
