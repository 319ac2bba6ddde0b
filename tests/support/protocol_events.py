"""Asks and tasks with current times, as the engine would send them."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from errand.protocol.asks import Approval, Ask, AskKind, GrantedCall, GrantOffer
from errand.protocol.blocks import Block
from errand.protocol.conversations import Node, NodeStatus, Role
from errand.protocol.tasks.groups import (
    TaskActivity,
    TaskOutcome,
    TaskProgress,
    TaskRequest,
    TaskStatus,
    TaskStopReason,
)
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage

_STATUSES: dict[TaskStopReason, TaskStatus] = {"completed": "completed", "manual_stop": "cancelled"}

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def at_work(task_id: str = "task_1", conversation_id: str = "conv_1", *, activity: str = "") -> Task:
    return Task(
        id=task_id,
        conversation_id=conversation_id,
        agent_id="agent_1",
        started_at=datetime.now(UTC),
        request=TaskRequest(prompt=f"The work of {task_id}", model="scripted/tour", workspace="/tmp"),
        activity=TaskActivity(status="thinking", detail=activity),
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
        started_at=datetime.now(UTC),
        request=TaskRequest(prompt=f"The work of {task_id}", model="scripted/tour", workspace="/tmp"),
        activity=TaskActivity(status=_STATUSES.get(reason, "error")),
        outcome=TaskOutcome(stop_reason=reason, summary=summary, error=error, ended_at=datetime.now(UTC)),
    )


def ask(ask_id: str = "ask_1", conversation_id: str = "conv_1", *, kind: AskKind = "approval") -> Ask:
    """An approval whose text is short enough for a notification, or an ask of another kind."""
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


def task(
    status: TaskStatus = "thinking",
    *,
    stop_reason: TaskStopReason | None = None,
    summary: str = "",
    error: str | None = None,
    activity: str = "",
    stopping: bool = False,
    identifier: str = "task_1",
) -> Task:
    """A task of 3 turns that took 4.2 seconds; it has ended if it has a stop reason."""
    return Task(
        id=identifier,
        conversation_id="conversation_1",
        agent_id="agent_1",
        started_at=START,
        request=TaskRequest(prompt="count the files", model="scripted/test", workspace="/work"),
        activity=TaskActivity(status=status, detail=activity, stopping=stopping),
        outcome=TaskOutcome(
            stop_reason=stop_reason,
            summary=summary,
            error=error,
            ended_at=START + timedelta(seconds=4.2) if stop_reason else None,
        ),
        progress=TaskProgress(step_count=3, usage=Usage(input_tokens=1200, output_tokens=34, cost_usd=0.0012)),
    )


def node(
    role: Role, *blocks: Block, identifier: str = "node_1", status: NodeStatus = "complete", error: str | None = None
) -> Node:
    return Node(
        id=identifier,
        conversation_id="conversation_1",
        parent_id=None,
        role=role,
        author="agent_1",
        blocks=blocks,
        status=status,
        created_at=START,
        task_id="task_1",
        turn=1,
        error=error,
    )


def question(*choices: str, text: str = "Which tone?") -> Ask:
    return _ask("question", text, choices, None)


def approval(command: str = "rm -r build", remembered: str | None = "rm -r build") -> Ask:
    what = Approval(
        tool="shell",
        call_id="call_1",
        text="Run a command.",
        rule="commands ask",
        risk="high",
        command=command,
        working_dir="/work",
        writes=("/work/build",),
        offers=() if remembered is None else (exact_offer(command, "/tmp"),),
    )
    return _ask("approval", "May it run this?", (), what)


def exact_offer(command: str, folder: str) -> GrantOffer:
    return GrantOffer(
        kind="exact",
        calls=(GrantedCall(operation="run", command=command, working_dir=folder),),
        scopes=("conversation", "workspace"),
        covers=f"Exactly this command, in {folder}.",
        example=command,
        not_covered=f"{command} --help",
    )


def limit() -> Ask:
    return _ask("limit", "The limit of 50 turns is reached. Go on?", ("Go on", "Stop here"), None)


def _ask(
    kind: Literal["question", "approval", "limit"], text: str, choices: tuple[str, ...], what: Approval | None
) -> Ask:
    return Ask(
        id="ask_1",
        task_id="task_1",
        conversation_id="conversation_1",
        kind=kind,
        text=text,
        created_at=START,
        choices=choices,
        approval=what,
    )
