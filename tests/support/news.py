"""Asks and tasks of this moment, as the engine would tell them: what a person at another window is told."""

from datetime import UTC, datetime

from app.protocol.asks import Approval, Ask, AskKind
from app.protocol.tasks import Task, TaskStatus, TaskStopReason

_STATUSES: dict[TaskStopReason, TaskStatus] = {"completed": "completed", "manual_stop": "cancelled"}


def at_work(task_id: str = "task_1", conversation_id: str = "conv_1", *, activity: str = "") -> Task:
    return Task(
        id=task_id,
        conversation_id=conversation_id,
        agent_id="agent_1",
        prompt=f"The work of {task_id}",
        status="thinking",
        model="scripted/tour",
        workspace="/tmp",
        started_at=datetime.now(UTC),
        activity=activity,
    )


def ended(
    task_id: str = "task_1",
    reason: TaskStopReason = "completed",
    conversation_id: str = "conv_1",
    *,
    summary: str = "",
    error: str | None = None,
) -> Task:
    return Task(
        id=task_id,
        conversation_id=conversation_id,
        agent_id="agent_1",
        prompt=f"The work of {task_id}",
        status=_STATUSES.get(reason, "error"),
        model="scripted/tour",
        workspace="/tmp",
        started_at=datetime.now(UTC),
        stop_reason=reason,
        summary=summary,
        error=error,
        ended_at=datetime.now(UTC),
    )


def ask(ask_id: str = "ask_1", conversation_id: str = "conv_1", *, kind: AskKind = "approval") -> Ask:
    """An approval whose text is short enough for a notice, or another kind."""
    approval = Approval(tool="shell", call_id="call_1", text="Run it", rule="it writes", risk="medium", command="make")
    return Ask(
        id=ask_id,
        task_id="task_1",
        conversation_id=conversation_id,
        kind=kind,
        text="Which <b>colour</b> & why?",
        created_at=datetime.now(UTC),
        choices=("Blue", "Green") if kind == "question" else (),
        approval=approval if kind == "approval" else None,
    )
