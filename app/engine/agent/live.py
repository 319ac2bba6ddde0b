"""A task under way and its publishing: the only place that changes a task's record while it works."""

from datetime import UTC, datetime

import msgspec

from app.engine.agent.task import moved
from app.engine.broadcast import EventLog
from app.protocol.events import TaskUpdate
from app.protocol.tasks import Task, TaskStatus


class LiveTask:
    """Holds the newest record of one task; every change goes to the log, and so to storage and all clients."""

    def __init__(self, task: Task, log: EventLog) -> None:
        self.task = task
        self._log = log
        self._tools: dict[str, str] = {}
        self._asks: list[str] = []

    def set(self, task: Task) -> None:
        if task != self.task:
            self.task = task
            self._log.publish(TaskUpdate(task=task))

    def move(self, status: TaskStatus, activity: str = "") -> None:
        self.set(msgspec.structs.replace(moved(self.task, status), activity=activity))

    def say(self, activity: str) -> None:
        self.set(msgspec.structs.replace(self.task, activity=activity))

    def tool_started(self, call_id: str, tool: str) -> None:
        self._tools[call_id] = tool
        self._settle()

    def tool_ended(self, call_id: str) -> None:
        """The status stays at tool_executing until the next model call says otherwise: one event less a step."""
        self._tools.pop(call_id, None)
        if self._tools:
            self._settle()

    def ask_raised(self, ask_id: str) -> None:
        self._asks.append(ask_id)
        self._settle()

    def ask_settled(self, ask_id: str) -> None:
        self._asks.remove(ask_id)
        self._settle()

    def _settle(self) -> None:
        """Derive status, tool and ask from what is open: an ask shows before a running tool."""
        status: TaskStatus = "waiting_user" if self._asks else "tool_executing" if self._tools else "running"
        self.set(
            msgspec.structs.replace(
                moved(self.task, status),
                ask_id=self._asks[-1] if self._asks else None,
                current_tool=next(reversed(self._tools.values()), None),
                activity="",
            )
        )

    def seconds(self) -> float:
        """Since the start, waiting included."""
        return (datetime.now(UTC) - self.task.started_at).total_seconds()
