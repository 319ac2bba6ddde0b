"""What all tests share: garbage is collected between them and in the main thread, as the window does it.

In a thread of a store it would delete widgets of earlier tests there, and the process would crash at some later test.
Properties are tried with the same examples every time, however slow the machine: ERRAND_EXPLORE=1 tries others.
"""

import gc
import itertools
import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("others", deadline=None, database=None)
settings.load_profile("others" if os.environ.get("ERRAND_EXPLORE") else "same")

_ALL_EVERY = 50
_numbers = itertools.count(1)


def pytest_sessionstart() -> None:
    gc.disable()


def pytest_runtest_logfinish() -> None:
    gc.collect(1 if next(_numbers) % _ALL_EVERY else 2)
