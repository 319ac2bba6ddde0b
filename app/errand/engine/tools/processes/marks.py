"""Inherited marks that identify the call and task of a process.

A child may clear its environment, lower its limits, leave its session and outlive its parents. So each call has
several marks: environment variables; on Linux a unique soft limit (on the size of message queues, which almost
nothing uses; limits are inherited over fork, exec and setsid, and one system call reads them); the sessions of its
processes; and the processes once seen below it.
"""

import hashlib
import math
import os
import random
import sys
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# The numbers are the limit in bytes: below the kernel's default of 819,200, which must stay unused.
_LOWEST, _MAX_LIMIT_BYTES = 400_000, 800_000

_DATA = "ERRAND_DATA"
# The number of no mark.
_NO_CALL = 0

_by_task: dict[str, list["ProcessMark"]] = {}
_numbers: set[int] = set()
_sessions: dict[int, "MarkedSession"] = {}
_seen: dict[tuple[int, float], int] = {}
# What all processes of this engine have in their environment.
_of_engine: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """The mark of one call; `number` is unique in this engine, `began` is in system ticks since boot."""

    task_id: str
    number: int
    began: float

    @property
    def variables(self) -> dict[str, str]:
        return {"ERRAND_TASK": self.task_id, "ERRAND_CALL": str(self.number), **_of_engine}

    @property
    def stamp(self) -> int:
        """The limit of its processes, 0 if the system does not let them have it."""
        return self.number if STAMPED else 0


@dataclass(frozen=True, slots=True)
class MarkedSession:
    """The session of a call; its leader started after `earliest` and before `latest`, in system ticks since boot.

    The times are stored, not read from the leader: reading /proc blocks while a program is being loaded.
    """

    number: int
    leader: int
    earliest: int
    latest: int


def name_data_directory(home: Path) -> str:
    """Mark what is started from now on with the data directory, which has one engine at a time; returns the mark."""
    _of_engine[_DATA] = hashlib.blake2b(os.fsencode(home.resolve()), digest_size=12).hexdigest()
    return f"{_DATA}={_of_engine[_DATA]}"


def engine_variables() -> dict[str, str]:
    """Return the variables of all processes of this engine, whichever their call."""
    return {**_of_engine}


def task_variable(task_id: str) -> str:
    return f"ERRAND_TASK={task_id}"


def new_mark(task_id: str) -> ProcessMark:
    number = random.randrange(_LOWEST, _MAX_LIMIT_BYTES)
    while number in _numbers:
        number = random.randrange(_LOWEST, _MAX_LIMIT_BYTES)
    mark = ProcessMark(task_id, number, ticks_now())
    _numbers.add(number)
    _by_task.setdefault(task_id, []).append(mark)
    return mark


def marks_of(task_id: str) -> tuple[ProcessMark, ...]:
    return tuple(_by_task.get(task_id, ()))


def all_marks() -> tuple[ProcessMark, ...]:
    return tuple(mark for marks in _by_task.values() for mark in marks)


def note_session(mark: ProcessMark, leader: int, earliest: float) -> MarkedSession:
    """Processes of the leader's session belong to the call: no process can join another's session."""
    noted = _sessions.get(leader)
    if noted is None or noted.number != mark.number:
        noted = _sessions[leader] = MarkedSession(mark.number, leader, math.floor(earliest), math.ceil(ticks_now()) + 1)
    return noted


def all_sessions() -> tuple[MarkedSession, ...]:
    return tuple(_sessions.values())


def note_process(mark: ProcessMark, pid: int, started: float) -> None:
    """Record that the process belongs to the call, even if it drops its marks later."""
    _seen[pid, started] = mark.number


def release(mark: ProcessMark, holder: int, started: float) -> None:
    """Record that no process has the mark any more, and that the one which holds its sandbox belongs to no call now."""
    _drop_records({mark.number})
    _seen[holder, started] = _NO_CALL


def drop_process(pid: int, started: float) -> None:
    """Remove what was recorded of a process that has ended."""
    _seen.pop((pid, started), None)


def recorded_calls(pid: int, started: float, session: int) -> set[int]:
    """Return the numbers of the calls that a process belongs to, according to the records."""
    its = _sessions.get(session)
    numbers = (_seen.get((pid, started)), its and its.number)
    return {number for number in numbers if number is not None}


def may_belong_to(marks: tuple[ProcessMark, ...], started: float) -> bool:
    """Return True if a process without a mark cannot belong to another task: all other tasks started after it."""
    tasks = {mark.task_id for mark in marks}
    others = [mark.began for task, its in _by_task.items() if task not in tasks for mark in its]
    return any(mark.began <= started for mark in marks) and all(began > started for began in others)


def ticks_now() -> float:
    # Minus one, since the system rounds down.
    return time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") - 1 if sys.platform == "linux" else 0.0


def forget(marks: Collection[ProcessMark]) -> None:
    """Free the marks' numbers. Call it once no process has them. A task may have thousands.

    Threads that search add to the records meanwhile: they are copied before they are looked through.
    """
    numbers = _numbers & {mark.number for mark in marks}
    _numbers.difference_update(numbers)
    _drop_records(numbers)
    for task_id in {mark.task_id for mark in marks}:
        left = [mark for mark in _by_task.pop(task_id, ()) if mark.number not in numbers]
        if left:
            _by_task[task_id] = left


def _drop_records(numbers: Collection[int]) -> None:
    for session in [session for session, its in list(_sessions.items()) if its.number in numbers]:
        del _sessions[session]
    for process in [process for process, number in list(_seen.items()) if number in numbers]:
        del _seen[process]


if sys.platform == "linux":
    import resource

    _hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    # False if the hard limit is below our numbers; then only the variables remain.
    STAMPED = _hard == resource.RLIM_INFINITY or _hard >= _MAX_LIMIT_BYTES

    @contextmanager
    def stamped(mark: ProcessMark) -> Generator[None]:
        """Children started inside inherit the mark's number. Do not await inside: it is also the engine's limit."""
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
        """Return the number of a process (or its zombie), if it is one of this engine's marks."""
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
