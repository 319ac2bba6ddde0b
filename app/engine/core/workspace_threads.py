"""Threads for work on the files of a workspace, which may lie on a disk or a network drive that does not answer.

A call that takes too long is given up and its thread left behind: that costs who works in this folder, and nobody else.
The threads of `asyncio.to_thread` are few and shared by all, so that nine such folders stopped everybody. The keyring
of the system, which may wait for a person, is asked in the same way.
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

from app.engine.core.errors import FolderNotAnswering

T = TypeVar("T")
_Job: TypeAlias = Callable[[], None]

PATIENCE_S = 10.0
# Long enough for the next step of a task; an engine at rest has none of these threads.
_IDLE_S = 1.0
# So many threads of one folder may hang; after that nobody waits for it before one of them has come back.
_MOST_HANGING = 4


class _Thread:
    """Does one job after the other, and ends when there was none for a moment. It keeps nobody from leaving."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        threading.Thread(target=self._work, name="workspace", daemon=True).start()

    def take(self, job: _Job | None) -> None:
        """Do this, or end where it is None. For a thread that was idle alone."""
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_S)
            except Empty:
                try:
                    _idle.remove(self)
                except ValueError:
                    continue  # somebody has just chosen it
                return
            if job is None:
                return
            job()
            _idle.append(self)


_idle: deque[_Thread] = deque()
_hanging: Counter[str] = Counter()


async def in_workspace(folder: Path, work: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """Call `work` in a thread; what it raises is raised. `FolderNotAnswering` when it takes longer than `within_s`.

    Work that was given up goes on when the folder answers again: what it does then must do no harm.
    """
    name = os.fspath(folder)
    if _hanging[name] >= _MOST_HANGING:
        raise FolderNotAnswering(name, 0)
    result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    context = copy_context()  # as asyncio.to_thread does
    _free_thread().take(lambda: context.run(_do, work, result))
    try:
        await asyncio.wait((result,), timeout=within_s)
    finally:
        if not result.done():
            _leave_behind(result, name)
    if not result.done():
        raise FolderNotAnswering(name, within_s)
    return result.result()


def end_idle() -> None:
    """End the threads that have nothing to do, without waiting for it."""
    while _idle:
        _free_thread().take(None)


def _free_thread() -> _Thread:
    try:
        return _idle.pop()
    except IndexError:
        return _Thread()


def _do(work: Callable[[], T], result: "asyncio.Future[T]") -> None:
    try:
        value = work()
    except BaseException as error:  # noqa: BLE001 -- raised to the caller, in its own thread
        _tell(result, lambda error=error: result.set_exception(error))
    else:
        _tell(result, lambda: result.set_result(value))


def _tell(result: "asyncio.Future[T]", how: Callable[[], None]) -> None:
    loop = result.get_loop()
    if not loop.is_closed():  # nobody waits any more
        loop.call_soon_threadsafe(how)


def _leave_behind(result: "asyncio.Future[T]", name: str) -> None:
    _hanging[name] += 1

    def back(result: "asyncio.Future[T]") -> None:
        result.exception()  # it came too late to be told to anybody
        _hanging[name] -= 1
        if not _hanging[name]:
            del _hanging[name]

    result.add_done_callback(back)
