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
from errand.engine.core.worker_thread import hand_over

T = TypeVar("T")
_Job: TypeAlias = Callable[[], None]

PATIENCE_S = 10.0
# Long enough for a task's next step; an idle engine has none of these threads.
_IDLE_S = 1.0
# Maximum number of hanging threads per folder; further calls fail at once until one of them returns.
_MAX_HANGING_THREADS = 4


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
    if _hanging[name] >= _MAX_HANGING_THREADS:
        raise FolderNotAnswering(name, 0)
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()
    context = copy_context()  # as asyncio.to_thread does
    _free_thread().jobs.put(lambda: context.run(hand_over, work, result, lambda: _count_hanging(name, -1)))

    def give_up() -> None:
        if not result.done():
            _count_hanging(name, 1)
            result.set_exception(FolderNotAnswering(name, within_s))

    limit = loop.call_later(within_s, give_up)
    try:
        return await result
    finally:
        limit.cancel()
        if result.cancelled():  # its thread works on
            _count_hanging(name, 1)


def end_idle() -> None:
    """End the idle threads, without waiting for them."""
    while _idle:
        _free_thread().jobs.put(None)


def _free_thread() -> _Thread:
    try:
        return _idle.pop()
    except IndexError:
        return _Thread()


def _count_hanging(name: str, change: int) -> None:
    _hanging[name] += change
    if not _hanging[name]:
        del _hanging[name]
