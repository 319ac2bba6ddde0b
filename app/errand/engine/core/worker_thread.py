"""A thread that works for the event loop, and how any thread hands over what came of a call."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias, TypeVar

T = TypeVar("T")
_Job: TypeAlias = Callable[[], None]


class WorkerThread:
    """Runs one call after another. As a daemon it does not delay the exit of the process. For one event loop.

    A call takes one turn of the event loop to return; an executor's takes two, and several locks.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """Call `work` in the thread; its errors propagate. Work whose caller is cancelled goes on to its end.

        Raises `RuntimeError` after `close`: nobody would do the work.
        """
        if self._is_closed:
            raise RuntimeError(f"The thread “{self._thread.name}” has ended.")
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(lambda: hand_over(work, result))
        return await result

    def close(self) -> None:
        """End the thread, after the calls so far."""
        self._is_closed = True
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _ignore() -> None:
    pass


def hand_over(work: Callable[[], T], result: "asyncio.Future[T]", on_abandoned: Callable[[], None] = _ignore) -> None:
    """Call `work` in a thread and settle `result` in its event loop.

    Calls `on_abandoned` there instead if the caller has stopped waiting.
    """
    try:
        value = work()
    except BaseException as error:  # noqa: BLE001 -- raised to the caller, in its own thread
        raised = _raisable(error)
        _in_loop(result, lambda: result.set_exception(raised), on_abandoned)
    else:
        _in_loop(result, lambda: result.set_result(value), on_abandoned)


def _raisable(error: BaseException) -> BaseException:
    """Return what a coroutine that waits can raise for `error`.

    A future refuses `StopIteration`, and would never be settled; `CancelledError` would look as if the caller had been
    cancelled.
    """
    if not isinstance(error, StopIteration | asyncio.CancelledError):
        return error
    raised = RuntimeError(f"The call in the thread raised {type(error).__name__}.")
    raised.__cause__ = error
    return raised


def _in_loop(result: "asyncio.Future[T]", settle: Callable[[], None], on_abandoned: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed, maybe just now: no caller waits any more
        result.get_loop().call_soon_threadsafe(lambda: on_abandoned() if result.done() else settle())
