"""Threads for work on workspace files, which may be on a disk or network drive that does not respond.

A call that times out leaves its thread behind, which affects this folder only. The few threads of `asyncio.to_thread`
are shared: nine such folders blocked everything. The system keyring, which may wait for a user, is accessed in the same
way.
"""

import asyncio
import os
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeAlias, TypeVar

from errand.engine.core.errors import FolderNotAnswering

T = TypeVar("T")
_Job: TypeAlias = Callable[[], None]

PATIENCE_S = 10.0
# Long enough for a task's next step; an idle engine has none of these threads.
_IDLE_S = 1.0
# Maximum number of hanging threads per folder; further calls fail at once until one of them returns.
_MOST_HANGING = 4


class _Thread:
    """Runs one job after another, and ends after an idle timeout. As a daemon it does not delay process exit."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        threading.Thread(target=self._work, name="workspace", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=_IDLE_S)
            except Empty:
                try:
                    _idle.remove(self)
                except ValueError:
                    continue  # it was taken from the idle list just now
                return
            if job is None:
                return
            job()
            _idle.append(self)


_idle: deque[_Thread] = deque()
_hanging: Counter[str] = Counter()


async def in_workspace(folder: Path, work: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """Call `work` in a thread; its errors propagate. Raises `FolderNotAnswering` after `within_s` seconds.

    Work that timed out continues when the folder responds again: it must be harmless then.
    """
    name = os.fspath(folder)
    if _hanging[name] >= _MOST_HANGING:
        raise FolderNotAnswering(name, 0)
    result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    context = copy_context()  # as asyncio.to_thread does
    _free_thread().jobs.put(lambda: context.run(_run, work, result))
    try:
        await asyncio.wait((result,), timeout=within_s)
    finally:
        if not result.done():
            _count_as_hanging(result, name)
    if not result.done():
        raise FolderNotAnswering(name, within_s)
    return result.result()


def end_idle() -> None:
    """End the idle threads, without waiting for them."""
    while _idle:
        _free_thread().jobs.put(None)


def _free_thread() -> _Thread:
    try:
        return _idle.pop()
    except IndexError:
        return _Thread()


def _run(work: Callable[[], T], result: "asyncio.Future[T]") -> None:
    try:
        value = work()
    except BaseException as error:  # noqa: BLE001 -- raised to the caller, in its own thread
        _notify(result, lambda error=error: result.set_exception(error))
    else:
        _notify(result, lambda: result.set_result(value))


def _notify(result: "asyncio.Future[T]", how: Callable[[], None]) -> None:
    loop = result.get_loop()
    if not loop.is_closed():  # otherwise no caller waits any more
        loop.call_soon_threadsafe(how)


def _count_as_hanging(result: "asyncio.Future[T]", name: str) -> None:
    _hanging[name] += 1

    def back(result: "asyncio.Future[T]") -> None:
        result.exception()  # retrieved, as no caller waits for it any more
        _hanging[name] -= 1
        if not _hanging[name]:
            del _hanging[name]

    result.add_done_callback(back)
