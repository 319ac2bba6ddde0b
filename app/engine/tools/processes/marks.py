"""Marks that tell which call of which task a process belongs to: inherited by all it starts, whatever they do.

A child may clear its environment, lower its limits, leave its session and outlive its parents. So each call has
several marks: variables, on Linux a soft limit of its own (on the size of message queues, which next to nothing uses;
limits are inherited over fork, exec and setsid, and one system call reads them), the sessions of its processes, and
which processes were seen below it.
"""

import math
import os
import random
import sys
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass

# The numbers are the limit itself, in bytes: below the kernel's default of 819,200, which must stay unused.
_LOWEST, _HIGHEST = 400_000, 800_000

_by_task: dict[str, list["ProcessMark"]] = {}
_numbers: set[int] = set()
_sessions: dict[int, "MarkedSession"] = {}
_seen: dict[tuple[int, float], int] = {}


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """The mark of one call; `number` is unique among the marks of this engine, `began` in system ticks since boot."""

    task_id: str
    number: int
    began: float

    @property
    def variables(self) -> dict[str, str]:
        return {"ERRAND_TASK": self.task_id, "ERRAND_CALL": str(self.number)}


@dataclass(frozen=True, slots=True)
class MarkedSession:
    """The session of a call; its leader began after `earliest` and before `latest`, in system ticks since boot.

    The times are kept, not read from the leader: /proc makes its reader wait while a program is being loaded.
    """

    number: int
    leader: int
    earliest: int
    latest: int


def new_mark(task_id: str) -> ProcessMark:
    number = random.randrange(_LOWEST, _HIGHEST)
    while number in _numbers:
        number = random.randrange(_LOWEST, _HIGHEST)
    mark = ProcessMark(task_id, number, ticks_now())
    _numbers.add(number)
    _by_task.setdefault(task_id, []).append(mark)
    return mark


def marks_of(task_id: str) -> tuple[ProcessMark, ...]:
    return tuple(_by_task.get(task_id, ()))


def all_marks() -> tuple[ProcessMark, ...]:
    return tuple(mark for marks in _by_task.values() for mark in marks)


def note_session(mark: ProcessMark, leader: int, earliest: float) -> MarkedSession:
    """Processes of the leader's session are the call's: nobody can join the session of another."""
    noted = _sessions.get(leader)
    if noted is None or noted.number != mark.number:
        noted = _sessions[leader] = MarkedSession(mark.number, leader, math.floor(earliest), math.ceil(ticks_now()) + 1)
    return noted


def all_sessions() -> tuple[MarkedSession, ...]:
    return tuple(_sessions.values())


def note_process(mark: ProcessMark, pid: int, started: float) -> None:
    """The process was seen as the call's, whatever it does to its marks later."""
    _seen[pid, started] = mark.number


def noted(pid: int, started: float, session: int) -> set[int]:
    """The numbers of the calls to which a process belongs as far as it was noted."""
    its = _sessions.get(session)
    numbers = (_seen.get((pid, started)), its and its.number)
    return {number for number in numbers if number is not None}


def may_be_left_by(marks: tuple[ProcessMark, ...], started: float) -> bool:
    """True where a process without a mark can be of no other task: each other one began after it."""
    tasks = {mark.task_id for mark in marks}
    others = [mark.began for task, its in _by_task.items() if task not in tasks for mark in its]
    return any(mark.began <= started for mark in marks) and all(began > started for began in others)


def ticks_now() -> float:
    # One earlier, for the system rounds down.
    return time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") - 1 if sys.platform == "linux" else 0.0


def forget(marks: Collection[ProcessMark]) -> None:
    """Free the marks' numbers; to be called when no process has them. A task may have thousands."""
    numbers = _numbers & {mark.number for mark in marks}
    _numbers.difference_update(numbers)
    for session in [session for session, its in _sessions.items() if its.number in numbers]:
        del _sessions[session]
    for process in [process for process, number in _seen.items() if number in numbers]:
        del _seen[process]
    for task_id in {mark.task_id for mark in marks}:
        left = [mark for mark in _by_task.pop(task_id, ()) if mark.number not in numbers]
        if left:
            _by_task[task_id] = left


if sys.platform == "linux":
    import resource

    _hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    # False where this limit may not be as high as our numbers; then the variables are all there is.
    STAMPED = _hard == resource.RLIM_INFINITY or _hard >= _HIGHEST

    @contextmanager
    def stamped(mark: ProcessMark) -> Generator[None]:
        """Children started inside carry the mark's number. Without await inside: it is the engine's own limit too."""
        if not STAMPED:
            yield
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (mark.number, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_MSGQUEUE, (soft, hard))

    def stamp_of(pid: int) -> int | None:
        """The number a process (or its zombie) carries, if it is one of this engine's marks."""
        try:
            number = resource.prlimit(pid, resource.RLIMIT_MSGQUEUE)[0]
        except OSError:
            return None
        return number if number in _numbers else None

else:
    STAMPED = False

    @contextmanager
    def stamped(mark: ProcessMark) -> Generator[None]:
        yield

    def stamp_of(pid: int) -> int | None:
        return None
