"""Marks that tell which call of which task a process belongs to: inherited by all it starts, whatever they do.

A child may clear its environment, leave its session and outlive its parents. So each call has two marks: variables, and
on Linux a soft limit of its own (on the size of message queues, which next to nothing uses). Limits are inherited over
fork, exec and setsid, and one system call reads them.
"""

import random
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

# The numbers are the limit itself, in bytes: below the kernel's default of 819,200, which must stay unused.
_LOWEST, _HIGHEST = 400_000, 800_000

_by_task: dict[str, list["Mark"]] = {}
_numbers: set[int] = set()


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one call; `number` is unique among the marks of this engine."""

    task_id: str
    number: int

    @property
    def variables(self) -> dict[str, str]:
        return {"ERRAND_TASK": self.task_id, "ERRAND_CALL": str(self.number)}


def new_mark(task_id: str) -> Mark:
    number = random.randrange(_LOWEST, _HIGHEST)
    while number in _numbers:
        number = random.randrange(_LOWEST, _HIGHEST)
    mark = Mark(task_id, number)
    _numbers.add(number)
    _by_task.setdefault(task_id, []).append(mark)
    return mark


def marks_of(task_id: str) -> tuple[Mark, ...]:
    return tuple(_by_task.get(task_id, ()))


def all_marks() -> tuple[Mark, ...]:
    return tuple(mark for marks in _by_task.values() for mark in marks)


def forget(mark: Mark) -> None:
    """Free the mark's number; to be called when no process has it."""
    if mark.number not in _numbers:
        return
    _numbers.discard(mark.number)
    marks = _by_task[mark.task_id]
    marks.remove(mark)
    if not marks:
        del _by_task[mark.task_id]


if sys.platform == "linux":
    import resource

    _hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    # False where this limit may not be as high as our numbers; then the variables are all there is.
    STAMPED = _hard == resource.RLIM_INFINITY or _hard >= _HIGHEST

    @contextmanager
    def stamped(mark: Mark) -> Generator[None]:
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
    def stamped(mark: Mark) -> Generator[None]:
        yield

    def stamp_of(pid: int) -> int | None:
        return None
