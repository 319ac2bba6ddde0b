"""The record of a running task and its status transitions; only this module changes and publishes it."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from errand.engine.agent.run.limits import TaskLimits
from errand.engine.core.errors import IllegalMove
from errand.engine.event_log import EventLog
from errand.engine.tools.registry import CONTROL_NAMES, activity_of
from errand.engine.tools.task import TaskTool
from errand.protocol.events import TaskUpdate
from errand.protocol.tasks.groups import (
    Allowance,
    CallProgress,
    DecidedMode,
    LimitKind,
    TaskMode,
    TaskStatus,
    TaskStopReason,
    TodoItem,
)
from errand.protocol.tasks.task import Task, replace_fields
from errand.protocol.usage import Usage, add_usage
from errand.system.listeners import Listeners

END_STATUSES: frozenset[TaskStatus] = frozenset({"completed", "cancelled", "error"})

_WORKING: frozenset[TaskStatus] = frozenset({"running", "thinking", "tool_executing", "waiting_user", "paused"})

_INACTIVE: frozenset[TaskStatus] = frozenset({"completed", "cancelled", "error", "interrupted"})


def _inactive_or(*statuses: TaskStatus) -> frozenset[TaskStatus]:
    return _INACTIVE | frozenset(statuses)


TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    "running": _inactive_or("thinking", "waiting_user", "paused"),
    "thinking": _inactive_or("running", "tool_executing", "waiting_user", "paused"),
    "tool_executing": _inactive_or("running", "thinking", "waiting_user", "paused"),
    "waiting_user": _inactive_or("running", "thinking", "tool_executing"),
    "paused": _inactive_or("running", "thinking", "tool_executing") - {"completed"},
    "interrupted": frozenset({"running", "cancelled", "error"}),
    "completed": frozenset(),
    "cancelled": frozenset(),
    "error": frozenset(),
}


def is_working(task: Task) -> bool:
    """Return True if running in this engine; an interrupted task is neither working nor ended."""
    return task.activity.status in _WORKING


def must_work(task: Task) -> bool:
    """Return True for a task that an answer alone does not complete. One that follows a schema does so in any mode."""
    return task.options.mode == "task" and task.request.answer_schema is None


def with_status(task: Task, status: TaskStatus) -> Task:
    """Return the task with a new status; a working one may keep its status. Raises `IllegalMove`."""
    if status == task.activity.status and status not in END_STATUSES:
        return task
    if status not in TRANSITIONS[task.activity.status]:
        raise IllegalMove(f"A task that is {status_text(task.activity.status)} cannot become {status_text(status)}.")
    return replace_fields(task, status=status)


def ended_task(task: Task, status: TaskStatus, reason: TaskStopReason, error: str | None = None) -> Task:
    """Return the ended task, without the fields that only a working task has."""
    return replace_fields(
        with_status(task, status),
        stop_reason=reason,
        error=error,
        ended_at=datetime.now(UTC),
        stopping=False,
        pausing=False,
        current_tool=None,
        calls=(),
        ask_id=None,
        detail="",
        attempt=0,
        awaits_server=False,
        retry_at=None,
        limited_at=None,
    )


def status_text(status: TaskStatus) -> str:
    """Return the status as text for users."""
    return status.replace("_", " ")


class WorkClock:
    """Seconds of work of one task: the time since its start, in this and earlier engines, without idle time."""

    def __init__(self, worked_before: float) -> None:
        self._before = worked_before
        self._started = time.monotonic()
        self._idle_total = 0.0
        self._idle_since: float | None = None

    def worked_s(self) -> float:
        now = time.monotonic()
        idle = self._idle_total + (now - self._idle_since if self._idle_since is not None else 0.0)
        return self._before + now - self._started - idle

    def set_idle(self, is_idle: bool) -> None:
        if is_idle and self._idle_since is None:
            self._idle_since = time.monotonic()
        elif not is_idle and self._idle_since is not None:
            self._idle_total += time.monotonic() - self._idle_since
            self._idle_since = None


class TaskState:
    """Holds the newest record of one task; publishes every change to the event log, thus to storage and clients.

    `clock` counts its work, without the time that it waits for a person or for storage. `listeners` get each published
    state.
    """

    def __init__(self, task: Task, log: EventLog) -> None:
        self.task = task
        self._published: Task | None = None
        self._log = log
        self._tools: dict[str, str] = {}
        self._calls: dict[str, CallProgress] = {}
        self._refused: set[str] = set()
        self._asks: list[str] = []
        self.clock = WorkClock(task.activity.worked_s)
        self._hold_reason = ""
        self._waits_below = False
        self._sub_agents_changed = False
        # The last failure is that of a call that may change something.
        self._work_failed = False
        self.listeners = Listeners[[Task]]()

    @property
    def shown(self) -> Task:
        """The task as shown to users: paused while storage is failing, which cannot be stored."""
        return replace_fields(self.task, status="paused", detail=self._hold_reason) if self._hold_reason else self.task

    def set_hold_reason(self, why: str) -> None:
        """Storage is failing, so the next step waits; that time does not count as work. Empty once it continues."""
        self._hold_reason = why
        self.clock.set_idle(self._is_idle())

    def set(self, task: Task) -> None:
        self.task = task
        self.clock.set_idle(self._is_idle())
        if task != self._published:
            self.publish_again()

    def publish_again(self) -> None:
        self._published = self.task = replace_fields(self.task, worked_s=round(self.clock.worked_s(), 3))
        self._log.publish(TaskUpdate(task=self.task))
        self.listeners.notify(self.task)

    @property
    def only_delegates(self) -> bool:
        """All running calls wait for sub-agents."""
        return bool(self._tools) and all(tool == TaskTool.name for tool in self._tools.values())

    @property
    def may_have_changed(self) -> bool:
        """A call of the task, or of a sub-agent, may have changed something."""
        return self._sub_agents_changed or self.task.progress.changing_calls > 0

    def set_delegated(self, usage: Usage, turns: int, *, all_wait: bool, changed: bool) -> None:
        """Set what sub-agents have used; the next change publishes it.

        `all_wait`: they all wait for a person or are paused, which is no work of this task either. `changed`: one of
        them may have changed something.
        """
        self._sub_agents_changed = changed
        self.task = replace_fields(self.task, delegated=usage, delegated_turns=turns)
        self._waits_below = all_wait
        self.clock.set_idle(self._is_idle())

    def move(self, status: TaskStatus, activity: str = "") -> None:
        self.set(replace_fields(with_status(self.task, status), detail=activity, attempt=0))

    def set_activity(self, activity: str, attempt: int = 0) -> None:
        """`attempt`: of a model call that is sent again after so many failures."""
        self.set(replace_fields(self.task, detail=activity, attempt=attempt))

    def set_awaits_server(self, activity: str) -> None:
        """Show that the next call waits for a model server; an empty activity ends that."""
        self.set(replace_fields(self.task, detail=activity, awaits_server=bool(activity)))

    def show_remaining_processes(self, count: int) -> None:
        """Show how many processes are left while the task ends them."""
        if count:
            self.set_activity(f"stopping, {count} {'process' if count == 1 else 'processes'} left")

    def turn_started(self) -> None:
        """A turn of the agent begins."""
        self.task = replace_fields(self.task, step_count=self.task.progress.step_count + 1)
        self.thinks()

    def thinks(self) -> None:
        """A model call begins."""
        self._calls.clear()
        thinking = with_status(self.task, "thinking")
        self.set(replace_fields(thinking, current_tool=None, calls=(), detail="", attempt=0))

    def count(self, usage: Usage) -> None:
        """Add a turn's usage. The next change publishes it: one event less per step."""
        self.task = replace_fields(self.task, usage=add_usage(self.task.progress.usage, usage))

    def count_message(self) -> None:
        """The agent said something to people. The next change publishes it."""
        self.task = replace_fields(self.task, messages=self.task.progress.messages + 1)

    def set_pausing(self, is_pausing: bool) -> None:
        """The next change publishes it."""
        self.task = replace_fields(self.task, pausing=is_pausing)

    def summarised(self) -> None:
        """The requested summary exists. Saved with its node, so that it is not made twice."""
        self.task = replace_fields(self.task, summarised=self.task.request.summarises)

    def set_allowance(self, limits: TaskLimits) -> None:
        """Store the granted limits, for an engine that resumes the task."""
        allowance = Allowance(
            turns=limits.turns, minutes=limits.minutes, budget_usd=limits.budget_usd, tokens=limits.tokens
        )
        self.set(replace_fields(self.task, allowance=allowance))

    def set_mode(self, mode: TaskMode, decided: DecidedMode) -> None:
        """Publish the mode; `mode` stays `auto` if the task decided itself."""
        self.set(replace_fields(self.task, mode=mode, decided=decided))

    def set_todo(self, items: tuple[TodoItem, ...]) -> None:
        self.set(replace_fields(self.task, todo=items))

    def set_near_limits(self, limits: Iterable[LimitKind]) -> None:
        """Publish which limits are near."""
        self.set(replace_fields(self.task, near=tuple(limits)))

    def tool_started(self, call_id: str, tool: str, *, acts: bool, changes: bool) -> None:
        """`acts`: the call does more than read; `changes`: it may change something."""
        self._tools[call_id] = tool
        self._calls[call_id] = CallProgress(call_id=call_id, started_at=datetime.now(UTC))
        progress = self.task.progress
        self.task = replace_fields(
            self.task,
            acting_calls=progress.acting_calls + acts,
            changing_calls=progress.changing_calls + changes,
            tool_runs=progress.tool_runs + (tool not in CONTROL_NAMES),
        )
        self.derive_status()

    def set_working_dir(self, folder: str) -> None:
        self.set(replace_fields(self.task, working_dir=folder))

    def tool_refused(self, call_id: str) -> None:
        self._refused.add(call_id)
        self.set(replace_fields(self.task, refused_calls=self.task.progress.refused_calls + 1))

    def tool_ended(self, call_id: str, *, failed: bool | None, changes: bool, unchanged: bool) -> None:
        """After the last tool the status stays until the next turn starts: one event less per step.

        `failed` is None for a call that says nothing about the work. `changes`: it may change something, `unchanged`:
        it was to, and did not.
        """
        if unchanged and call_id in self._tools:
            self.task = replace_fields(self.task, changing_calls=self.task.progress.changing_calls - 1)
        # A call that only looks does not make good what failed before.
        if failed is not None and call_id not in self._refused and (failed or changes or not self._work_failed):
            self._work_failed = failed and (changes or self._work_failed)
            self.task = replace_fields(self.task, last_call_failed=failed)
        self._tools.pop(call_id, None)
        call = self._calls.get(call_id)
        if call is not None:
            self._calls[call_id] = msgspec.structs.replace(call, ended_at=datetime.now(UTC))
        if self._tools:
            self.derive_status()

    def ask_raised(self, ask_id: str) -> None:
        self._asks.append(ask_id)
        self.derive_status()

    def ask_settled(self, ask_id: str) -> None:
        self._asks.remove(ask_id)
        self.derive_status()

    def derive_status(self) -> None:
        """Derive status, tool, activity and ask from what is open: an ask takes precedence over a running tool."""
        status: TaskStatus = "waiting_user" if self._asks else "tool_executing" if self._tools else "thinking"
        tool = next(reversed(self._tools.values()), None)
        activity = activity_of(tool) if status == "tool_executing" else ""
        self.set(
            replace_fields(
                with_status(self.task, status),
                ask_id=self._asks[-1] if self._asks else None,
                current_tool=tool,
                calls=tuple(self._calls.values()),
                detail="stopping" if self.task.activity.stopping else activity,
            )
        )

    def _is_idle(self) -> bool:
        if self._waits_below and self.only_delegates:
            return True
        return bool(self._hold_reason) or self.task.activity.status in ("waiting_user", "paused")
