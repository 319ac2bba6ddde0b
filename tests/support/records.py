"""Records to store: plain ones, with what a test cares about."""

from datetime import UTC, datetime

from app.protocol.agents import Agent
from app.protocol.asks import Ask
from app.protocol.blocks import TextBlock
from app.protocol.conversations import Conversation, Node, NodeStatus
from app.protocol.grants import Grant
from app.protocol.tasks import Task

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def conversation(conversation_id: str = "c1", at: datetime = NOW, archived: bool = False) -> Conversation:
    return Conversation(id=conversation_id, title="A title", created_at=NOW, updated_at=at, archived=archived)


def node(
    node_id: str,
    parent_id: str | None = None,
    conversation_id: str = "c1",
    text: str = "Hello.",
    status: NodeStatus = "complete",
) -> Node:
    return Node(
        id=node_id,
        conversation_id=conversation_id,
        parent_id=parent_id,
        role="assistant",
        author="a1",
        blocks=(TextBlock(text=text),),
        status=status,
        created_at=NOW,
    )


def agent(agent_id: str = "a1", version: int = 0, head_id: str | None = None, at: datetime = NOW) -> Agent:
    return Agent(
        id=agent_id,
        conversation_id="c1",
        personality_id="assistant",
        name="Assistant",
        head_id=head_id,
        version=version,
        created_at=at,
    )


def task(
    task_id: str = "t1", step_count: int = 0, started_at: datetime = NOW, ended_at: datetime | None = None
) -> Task:
    return Task(
        id=task_id,
        conversation_id="c1",
        agent_id="a1",
        prompt="Do it.",
        status="completed" if ended_at else "running",
        model="scripted/tour",
        workspace="/tmp",
        started_at=started_at,
        step_count=step_count,
        ended_at=ended_at,
    )


def ask(ask_id: str = "k1", at: datetime = NOW) -> Ask:
    return Ask(id=ask_id, task_id="t1", conversation_id="c1", kind="question", text="Which?", created_at=at)


def grant(grant_id: str = "g1") -> Grant:
    return Grant(
        id=grant_id,
        tool="shell",
        exact="make test",
        scope="workspace",
        scope_id="/tmp/project",
        created_at=NOW,
        created_by="local",
        ask_id="k1",
    )
