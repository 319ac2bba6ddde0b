"""A limit for the time that a part of a test may take: a test that stands still fails, and says where it stands.

The limit needs the main thread to run Python now and then. `faulthandler_timeout` in pyproject.toml is the limit for a
test that does not: it ends the whole session.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import CoroutineType, FrameType

import pytest

# The variable with the seconds that each of the three phases of a test may take.
LIMIT = "ERRAND_TEST_LIMIT"
# The slowest take a tenth of it on a busy machine.
_DEFAULT_LIMIT_S = "300"

_HAS_ALARM = sys.platform != "win32"


@contextmanager
def time_limit(seconds: float | None = None) -> Generator[None]:
    """Fail the test if the block takes longer, with the stacks of its asyncio tasks. For the main thread."""
    most = seconds or float(os.environ.get(LIMIT, _DEFAULT_LIMIT_S))
    if not _HAS_ALARM:
        yield
        return

    def on_alarm(_: int, __: FrameType | None) -> None:
        pytest.fail(f"It did not end within {most:g} seconds.\n{_stacks()}")

    before = signal.signal(signal.SIGALRM, on_alarm)
    outer_s, _ = signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, outer_s)  # of a limit around this one


def _stacks() -> str:
    """Return where each asyncio task of the running loop waits; pytest itself shows where the main thread is."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return "No event loop was running."
    return "\n".join(line for task in sorted(tasks, key=lambda task: task.get_name()) for line in _stack(task))


def _stack(task: "asyncio.Task[object]") -> Iterator[str]:
    """The outermost call first. `Task.get_stack` has that one alone."""
    yield f"Task {task.get_name()!r}:"
    inner: object = task.get_coro()
    while isinstance(inner, CoroutineType):
        if (frame := inner.cr_frame) is not None:
            yield f"  {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        inner = inner.cr_await
    yield f"  waits for {inner!r}"
