"""A task's life: which status may follow which, and the one function that moves it."""

from datetime import UTC, datetime

import msgspec

from app.engine.errors import IllegalMove
from app.protocol.tasks import Task, TaskStatus, TaskStopReason

ENDS: frozenset[TaskStatus] = frozenset({"completed", "cancelled", "error"})

_WORK: frozenset[TaskStatus] = frozenset({"running", "thinking", "tool_executing", "waiting_user", "paused"})


_OUT: frozenset[TaskStatus] = frozenset({"completed", "cancelled", "error", "interrupted"})


def _out_or(*statuses: TaskStatus) -> frozenset[TaskStatus]:
    return _OUT | frozenset(statuses)


MOVES: dict[TaskStatus, frozenset[TaskStatus]] = {
    "running": _out_or("thinking", "waiting_user", "paused"),
    "thinking": _out_or("running", "tool_executing", "waiting_user", "paused"),
    "tool_executing": _out_or("running", "thinking", "waiting_user", "paused"),
    "waiting_user": _out_or("running", "thinking", "tool_executing"),
    "paused": _out_or("running", "thinking", "tool_executing") - {"completed"},
    "interrupted": frozenset({"running", "cancelled", "error"}),
    "completed": frozenset(),
    "cancelled": frozenset(),
    "error": frozenset(),
}


def is_working(task: Task) -> bool:
    """Under way in this engine; an interrupted task is neither working nor ended."""
    return task.status in _WORK


def moved(task: Task, status: TaskStatus) -> Task:
    """The task in its new status; staying is allowed for a working one. Raises `IllegalMove`."""
    if status == task.status and status not in ENDS:
        return task
    if status not in MOVES[task.status]:
        raise IllegalMove(f"A task that is {words(task.status)} cannot become {words(status)}.")
    return msgspec.structs.replace(task, status=status)


def ended(task: Task, status: TaskStatus, reason: TaskStopReason, error: str | None = None) -> Task:
    """The task at its end, with everything cleared that only a working task has."""
    return msgspec.structs.replace(
        moved(task, status),
        stop_reason=reason,
        error=error,
        ended_at=datetime.now(UTC),
        stopping=False,
        current_tool=None,
        ask_id=None,
        activity="",
        retry_at=None,
        limited_at=None,
    )


def words(status: TaskStatus) -> str:
    """The status as people read it."""
    return status.replace("_", " ")
