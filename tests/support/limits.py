"""The limit of every wait in the tests, and how often a wait looks at its condition.

A wait ends when what it waits for has happened, so a generous limit costs a test that succeeds nothing.
"""

import os
import time
from collections.abc import Callable

WAIT_LIMIT_S = 120.0

_LOOK_EVERY_S = float(os.environ.get("ERRAND_LOOK_EVERY_S", "0"))


def seldom(condition: Callable[[], bool]) -> Callable[[], bool]:
    """Return the condition, at which a wait looks each ERRAND_LOOK_EVERY_S seconds only.

    With 0.2 it misses what holds for a moment: a test that waits for that fails on a busy machine.
    """
    if not _LOOK_EVERY_S:
        return condition
    next_look_at = 0.0

    def look() -> bool:
        nonlocal next_look_at
        if time.monotonic() < next_look_at:
            return False
        next_look_at = time.monotonic() + _LOOK_EVERY_S
        return condition()

    return look
