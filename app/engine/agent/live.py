"""A task under way and its publishing: the only place that changes a task's record while it works."""

import time
from collections.abc import Iterable

import msgspec

from app.engine.agent.limits import Limits
from app.engine.agent.task import moved
from app.engine.broadcast import EventLog
from app.protocol.events import TaskUpdate
from app.protocol.tasks import Allowance, DecidedMode, LimitKind, Task, TaskMode, TaskStatus
from app.protocol.usage import Usage


class LiveTask:
    """Holds the newest record of one task; every change goes to the log, and so to storage and all clients."""

    def __init__(self, task: Task, log: EventLog) -> None:
        self.task = task
        self._published: Task | None = None
        self._log = log
        self._tools: dict[str, str] = {}
        self._asks: list[str] = []
        self._idle_since: float | None = None
        self._worked_before = task.worked_s
        self._started = time.monotonic()
        self._idled = 0.0
        self._held = ""

    @property
    def shown(self) -> Task:
        """The task as people see it: paused while nothing can be saved, which cannot be on record."""
        return msgspec.structs.replace(self.task, status="paused", activity=self._held) if self._held else self.task

    def hold(self, why: str) -> None:
        """Nothing can be saved, so its next step waits; that time is not its own. Empty when it goes on."""
        self._held = why
        self._watch_idle(self._is_idle())

    def set(self, task: Task) -> None:
        self.task = task
        self._watch_idle(self._is_idle())
        if task != self._published:
            self.publish_again()

    def publish_again(self) -> None:
        self._published = self.task = msgspec.structs.replace(self.task, worked_s=round(self.worked_s(), 3))
        self._log.publish(TaskUpdate(task=self.task))

    def move(self, status: TaskStatus, activity: str = "") -> None:
        self.set(msgspec.structs.replace(moved(self.task, status), activity=activity))

    def say(self, activity: str) -> None:
        self.set(msgspec.structs.replace(self.task, activity=activity))

    def turn_started(self) -> None:
        turn = self.task.step_count + 1
        self.set(msgspec.structs.replace(moved(self.task, "thinking"), step_count=turn, current_tool=None, activity=""))

    def count(self, usage: Usage) -> None:
        """Add a turn's usage. It is published with the change that follows: one event less a step."""
        self.task = msgspec.structs.replace(self.task, usage=added(self.task.usage, usage))

    def summarised(self) -> None:
        """The summary it was to make is there. Saved with the node of that, so that it is not made twice."""
        self.task = msgspec.structs.replace(self.task, summarises=False)

    def allow(self, limits: Limits) -> None:
        """Keep what a person allowed, for an engine that resumes the task."""
        allowance = Allowance(
            turns=limits.turns, minutes=limits.minutes, budget_usd=limits.budget_usd, tokens=limits.tokens
        )
        self.set(msgspec.structs.replace(self.task, allowance=allowance))

    def take_for(self, mode: TaskMode, decided: DecidedMode) -> None:
        """Show what the task is taken for; `mode` is `auto` where it has decided itself."""
        self.set(msgspec.structs.replace(self.task, mode=mode, decided=decided))

    def approach(self, limits: Iterable[LimitKind]) -> None:
        """Show which limits are near."""
        self.set(msgspec.structs.replace(self.task, near=tuple(limits)))

    def tool_started(self, call_id: str, tool: str, *, acts: bool) -> None:
        """`acts`: it does more than read."""
        self._tools[call_id] = tool
        self.task = msgspec.structs.replace(self.task, acting_calls=self.task.acting_calls + acts)
        self.settle()

    def tool_refused(self) -> None:
        self.set(msgspec.structs.replace(self.task, refused_calls=self.task.refused_calls + 1))

    def tool_ended(self, call_id: str) -> None:
        """With the last one the status stays until the next turn starts: one event less a step."""
        self._tools.pop(call_id, None)
        if self._tools:
            self.settle()

    def ask_raised(self, ask_id: str) -> None:
        self._asks.append(ask_id)
        self.settle()

    def ask_settled(self, ask_id: str) -> None:
        self._asks.remove(ask_id)
        self.settle()

    def settle(self) -> None:
        """Derive status, tool and ask from what is open: an ask shows before a running tool."""
        status: TaskStatus = "waiting_user" if self._asks else "tool_executing" if self._tools else "thinking"
        self.set(
            msgspec.structs.replace(
                moved(self.task, status),
                ask_id=self._asks[-1] if self._asks else None,
                current_tool=next(reversed(self._tools.values()), None),
                activity="stopping" if self.task.stopping else "",
            )
        )

    def worked_s(self) -> float:
        """Seconds it worked, in earlier engines too, without those it waited for a person."""
        now = time.monotonic()
        idle = self._idled + (now - self._idle_since if self._idle_since is not None else 0.0)
        return self._worked_before + now - self._started - idle

    def _is_idle(self) -> bool:
        return bool(self._held) or self.task.status in ("waiting_user", "paused")

    def _watch_idle(self, idle: bool) -> None:
        if idle and self._idle_since is None:
            self._idle_since = time.monotonic()
        elif not idle and self._idle_since is not None:
            self._idled += time.monotonic() - self._idle_since
            self._idle_since = None


def added(total: Usage, turn: Usage) -> Usage:
    """Costs add up where they are known; the sum is unknown only while nothing was."""
    costs = [usage.cost_usd for usage in (total, turn) if usage.cost_usd is not None]
    return Usage(
        input_tokens=total.input_tokens + turn.input_tokens,
        output_tokens=total.output_tokens + turn.output_tokens,
        cache_read_tokens=total.cache_read_tokens + turn.cache_read_tokens,
        cache_write_tokens=total.cache_write_tokens + turn.cache_write_tokens,
        cost_usd=sum(costs) if costs else None,
        seconds=total.seconds + turn.seconds,
        estimated=total.estimated or turn.estimated,
    )
