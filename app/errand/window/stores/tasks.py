"""The newest state of every known task, its activity as text, and the unread ended tasks."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from PySide6.QtCore import QObject, Signal

from errand.client.texts.tasks import (
    is_unfinished,
    neutral_text,
    reading_text,
    tool_activity,
    unfinished_text,
)
from errand.protocol.events import PromptReading
from errand.protocol.tasks.task import Task, replace_fields
from errand.text.translation import tr
from errand.window.stores.window_state import WindowStateStore

# The number of ended tasks kept; older ones belong to the conversations that show them.
_MAX_ENDED = 1_000


class TaskStore(QObject):
    """Emits `taskUpdate` with each changed `Task`."""

    taskUpdate = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks: dict[str, Task] = {}
        self._at_work: dict[str, dict[str, Task]] = {}
        self._newest: dict[str, Task] = {}  # by conversation id and by agent id, which never collide
        self._reported_at: dict[str, float] = {}

    def get(self, task_id: str) -> Task | None:
        return self._tasks.get(task_id)

    def reported_at(self, task_id: str) -> float:
        """Return the time, by the monotonic clock, at which the engine reported how long a task has worked."""
        return self._reported_at.get(task_id, time.monotonic())

    def of_conversation(self, conversation_id: str) -> Task | None:
        """Return the task shown for a conversation: one that waits for a person, else a running one, else the
        newest.
        """
        own = self._at_work.get(conversation_id, {}).values()
        at_work = [task for task in own if task.origin.parent_id is None or task.activity.status == "waiting_user"]
        urgent = max(at_work, key=_display_priority, default=None)
        return urgent or self._newest.get(conversation_id)

    def at_work(self, conversation_id: str) -> tuple[Task, ...]:
        """Running and waiting tasks of a conversation, in the order of their start."""
        return tuple(sorted(self._at_work.get(conversation_id, {}).values(), key=_start_order))

    def of_agent(self, agent_id: str) -> Task | None:
        """Return the newest task of an agent."""
        return self._newest.get(agent_id)

    def running(self) -> tuple[Task, ...]:
        """Running and waiting tasks, newest first. Sub-agents end with their task."""
        return tuple(
            task
            for task in self._open_tasks()
            if task.activity.status != "interrupted" and task.origin.parent_id is None
        )

    def interrupted(self) -> tuple[Task, ...]:
        """Interrupted tasks, newest first."""
        return tuple(
            task
            for task in self._open_tasks()
            if task.activity.status == "interrupted" and task.origin.parent_id is None
        )

    def put(self, task: Task) -> None:
        """Store a task received from the engine."""
        before = self._tasks.get(task.id)
        if before == task:
            return
        if before is None or before.activity.worked_s != task.activity.worked_s:
            self._reported_at[task.id] = time.monotonic() - (_call_seconds(task) if before is None else 0.0)
        self._tasks[task.id] = task
        for owner_id in (task.conversation_id, task.agent_id) if task.origin.parent_id is None else (task.agent_id,):
            newest = self._newest.get(owner_id)
            if newest is None or newest.id == task.id or _start_order(newest) < _start_order(task):
                self._newest[owner_id] = task
        self._update_at_work(task)
        self._forget_old()
        self.taskUpdate.emit(task)

    def show_reading(self, reading: PromptReading) -> None:
        """Show how much of its request a model server has read, until the task's next change."""
        task = self._tasks.get(reading.task_id)
        if task is not None and task.activity.status == "thinking":
            self.put(replace_fields(task, detail=reading_text(reading)))

    def put_snapshot(self, tasks: Iterable[Task]) -> None:
        """Replace all tasks that have not ended: the snapshot lists all of them."""
        open_tasks = {task.id: task for task in tasks}
        for task in self._open_tasks():
            if task.id not in open_tasks:  # the database was replaced
                self._drop(task)
        for task in open_tasks.values():
            self.put(task)

    def _open_tasks(self) -> list[Task]:
        return sorted(
            (task for task in self._tasks.values() if task.outcome.ended_at is None), key=_start_order, reverse=True
        )

    def _update_at_work(self, task: Task) -> None:
        at_work = self._at_work.setdefault(task.conversation_id, {})
        if task.outcome.ended_at is None and task.activity.status != "interrupted":
            at_work[task.id] = task
        else:
            at_work.pop(task.id, None)
        if not at_work:
            del self._at_work[task.conversation_id]

    def _forget_old(self) -> None:
        if len(self._tasks) <= 2 * _MAX_ENDED:
            return
        ended = sorted((task for task in self._tasks.values() if task.outcome.ended_at is not None), key=_start_order)
        for task in ended[:-_MAX_ENDED]:
            self._drop(task)

    def _drop(self, task: Task) -> None:
        self._tasks.pop(task.id, None)
        self._reported_at.pop(task.id, None)
        self._at_work.get(task.conversation_id, {}).pop(task.id, None)
        for owner_id in (task.conversation_id, task.agent_id):
            newest = self._newest.get(owner_id)
            if newest is not None and newest.id == task.id:
                del self._newest[owner_id]


def _call_seconds(task: Task) -> float:
    """Return how long its call has been running, for a task that is first seen during a call."""
    started = (
        [call.started_at for call in task.activity.calls if call.ended_at is None]
        if task.outcome.ended_at is None
        else []
    )
    return max(0.0, (datetime.now(UTC) - max(started)).total_seconds()) if started else 0.0


def _display_priority(task: Task) -> tuple[bool, tuple[float, str]]:
    return task.activity.status == "waiting_user", _start_order(task)


def _start_order(task: Task) -> tuple[float, str]:
    return task.started_at.timestamp(), task.id


def is_interrupted(task: Task | None) -> bool:
    return task is not None and task.activity.status == "interrupted"


def task_activity(task: Task, writing: str = tr("Working")) -> str:
    """Return the current activity as text; the engine's own text where it gives one. `writing` is that of the model."""
    if task.activity.pausing and task.activity.status in ("running", "thinking", "tool_executing"):
        return tr("Pausing after this step")
    if task.outcome.ended_at is None and task.activity.detail:
        activity = tr(task.activity.detail)
        return activity[:1].upper() + activity[1:]
    if task.outcome.ended_at is not None:
        return _end_text(task)
    match task.activity.status:
        case "tool_executing":
            activity_text = tool_activity(task)
            return f"{activity_text[:1].upper()}{activity_text[1:]}"
        case "waiting_user":
            return tr("Waiting for you")
        case "paused":
            return tr("Paused")
        case "interrupted":
            return tr("Interrupted: the engine stopped")
        case "running" | "thinking" | "completed" | "cancelled" | "error":
            return tr("Stopping…") if task.activity.stopping else writing


def _end_text(task: Task) -> str:
    match task.outcome.stop_reason:
        case "completed" if is_unfinished(task):
            return unfinished_text(task)
        case "completed":
            return neutral_text(task) or tr("Done")
        case "manual_stop":
            return tr("Stopped")
        case "iteration_limit":
            return tr("Stopped: turn limit reached")
        case "time_limit":
            return tr("Stopped: time limit reached")
        case "budget_limit":
            return tr("Stopped: budget used up")
        case "token_limit":
            return tr("Stopped: token limit reached")
        case "day_limit":
            return tr("Stopped: daily limit reached")
        case "error" | None:
            return tr("Failed")


class UnreadStore(QObject):
    """A store of unread messages and ended tasks, of conversations that nobody looked at.

    What arrives in the active conversation counts as read. An end that is no success counts as a message, as does one
    without any: the conversation says how the task ended.
    """

    changed = Signal()

    def __init__(self, tasks: TaskStore, state: WindowStateStore, active_conversation_id: Callable[[], str]) -> None:
        super().__init__()
        self._tasks = tasks
        self._state = state
        self._active_conversation_id = active_conversation_id
        started_before = state.settings.seen_at > datetime.fromtimestamp(0, UTC)
        self._since = state.settings.seen_at if started_before else datetime.now(UTC)
        self._seen_ends: set[str] = set()
        self._unread: dict[str, tuple[str, int]] = {}  # by task: its conversation, and how many messages
        tasks.taskUpdate.connect(self._on_task_update)

    def finished(self) -> tuple[Task, ...]:
        """Unread ended tasks, newest first."""
        ended = [task for task in map(self._tasks.get, self._state.settings.unread) if task is not None]
        return tuple(reversed(ended))

    def count(self, conversation_id: str) -> int:
        """Return the unread messages of a conversation."""
        return sum(count for owner, count in self._unread.values() if owner == conversation_id)

    def counts(self) -> dict[str, int]:
        """Return the number of unread messages of each conversation that has some."""
        totals: Counter[str] = Counter()
        for conversation_id, count in self._unread.values():
            totals[conversation_id] += count
        return dict(totals)

    def mark_read(self, conversation_id: str) -> None:
        """Mark all messages and ends of a conversation as read."""
        ended = {task.id for task in self.finished() if task.conversation_id == conversation_id}
        self._mark_read(ended | {task_id for task_id, (owner, _) in self._unread.items() if owner == conversation_id})

    def dismiss(self, task_id: str) -> None:
        """Mark one task as read."""
        self._mark_read({task_id})

    def dismiss_all(self) -> None:
        """Mark all tasks that have ended as read."""
        self._mark_read(set(self._state.settings.unread))

    def _mark_read(self, task_ids: set[str]) -> None:
        settings = self._state.settings
        if not any(task_id in self._unread or task_id in settings.unread for task_id in task_ids):
            return
        settings.unread = [task_id for task_id in settings.unread if task_id not in task_ids]
        for task_id in task_ids:
            self._unread.pop(task_id, None)
            task = self._tasks.get(task_id)
            if task is None or task.outcome.ended_at is not None:
                settings.read_messages.pop(task_id, None)
            else:
                settings.read_messages[task_id] = task.progress.messages
        self._state.save_soon()
        self.changed.emit()

    def _on_task_update(self, task: Task) -> None:
        if task.origin.parent_id is not None or task.id in self._seen_ends:
            return
        is_active = task.conversation_id == self._active_conversation_id()
        has_changed = self._count(task, is_active=is_active)
        if task.outcome.ended_at is not None:
            has_changed = self._note_end(task, is_active=is_active) or has_changed
        if has_changed:
            self.changed.emit()

    def _count(self, task: Task, *, is_active: bool) -> bool:
        """Count its unread messages. What was read of a task at work is stored: it goes on without the window."""
        settings, written = self._state.settings, _messages(task)
        read = settings.read_messages.get(task.id)
        if read is None:
            is_news = task.started_at > self._since or (
                task.outcome.ended_at is not None and task.outcome.ended_at > self._since
            )
            read = 0 if is_news else written
        if is_active:
            read = written
        if task.outcome.ended_at is not None and read >= written:
            settings.read_messages.pop(task.id, None)
        elif settings.read_messages.get(task.id) != read:
            settings.read_messages[task.id] = read
            for old in tuple(settings.read_messages)[:-_MAX_ENDED]:
                del settings.read_messages[old]
            self._state.save_soon()
        before, unread = self._unread.pop(task.id, None), max(0, written - read)
        if unread:
            self._unread[task.id] = (task.conversation_id, unread)
        return before != self._unread.get(task.id)

    def _note_end(self, task: Task, *, is_active: bool) -> bool:
        settings = self._state.settings
        self._seen_ends.add(task.id)
        settings.seen_at = max(settings.seen_at, task.outcome.ended_at or settings.seen_at)
        self._state.save_soon()
        is_news = (
            task.outcome.ended_at is not None
            and task.outcome.ended_at > self._since
            and task.outcome.stop_reason != "manual_stop"
        )
        if is_news and not is_active and task.id not in settings.unread:
            settings.unread.append(task.id)
            return True
        return False


def _messages(task: Task) -> int:
    """Return the number of messages that its conversation shows of a task."""
    if task.outcome.ended_at is None or task.outcome.stop_reason == "manual_stop":
        return task.progress.messages
    return max(1, task.progress.messages + (task.outcome.stop_reason != "completed"))
