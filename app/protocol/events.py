"""Events: one union. Those with a sequence number are durable; deltas have none and are not stored."""

from typing import Literal, TypeAlias

from app.protocol.agents import Agent, Personality
from app.protocol.asks import Ask, Grant
from app.protocol.base import Wire
from app.protocol.conversations import Conversation, Node
from app.protocol.tasks import AgentPlan, Task


class ConversationUpdate(Wire, frozen=True, kw_only=True, tag="conversationUpdate"):
    """A conversation was made or changed. Replaces the one with the same id."""

    conversation: Conversation


class ConversationDeleted(Wire, frozen=True, kw_only=True, tag="conversationDeleted"):
    """A conversation is gone for good, with all that belonged to it."""

    conversation_id: str


class AgentUpdate(Wire, frozen=True, kw_only=True, tag="agentUpdate"):
    """An agent was made or its head moved."""

    agent: Agent


class AgentDeleted(Wire, frozen=True, kw_only=True, tag="agentDeleted"):
    """An agent is gone; what it wrote stays."""

    agent_id: str
    conversation_id: str


class TaskUpdate(Wire, frozen=True, kw_only=True, tag="taskUpdate"):
    """A task started or changed; comes to every client. The last one of a task has `ended_at` set."""

    task: Task


class TaskMessage(Wire, frozen=True, kw_only=True, tag="taskMessage"):
    """A node was added or finished. Replaces the one with the same id."""

    node: Node


class TaskPlan(Wire, frozen=True, kw_only=True, tag="taskPlan"):
    """A turn's reply is complete: its plan. The nodes of its tool results follow."""

    conversation_id: str
    plan: AgentPlan


class AskUpdate(Wire, frozen=True, kw_only=True, tag="askUpdate"):
    """An ask was raised, answered or cancelled; comes to every client."""

    ask: Ask


class PersonalityUpdate(Wire, frozen=True, kw_only=True, tag="personalityUpdate"):
    """A personality was made or changed; comes to every client."""

    personality: Personality


class PersonalityDeleted(Wire, frozen=True, kw_only=True, tag="personalityDeleted"):
    """A personality is gone."""

    personality_id: str


class GrantUpdate(Wire, frozen=True, kw_only=True, tag="grantUpdate"):
    """A grant was given or revoked."""

    grant: Grant


Event: TypeAlias = (
    ConversationUpdate
    | ConversationDeleted
    | AgentUpdate
    | AgentDeleted
    | TaskUpdate
    | TaskMessage
    | TaskPlan
    | AskUpdate
    | GrantUpdate
    | PersonalityUpdate
    | PersonalityDeleted
)


class TextDelta(Wire, frozen=True, kw_only=True, tag="textDelta"):
    """More of a streaming node: `text` goes at `offset` (in characters) of the block with index `block`.

    About every 33 ms for each node. An `offset` of 0 on a block that has text means: it starts anew (a retry). A
    client whose text is not `offset` long missed a piece and waits for the finished node.
    """

    conversation_id: str
    task_id: str
    node_id: str
    block: int
    kind: Literal["text", "thinking", "toolCall"]
    offset: int
    text: str


class ToolOutput(Wire, frozen=True, kw_only=True, tag="toolOutput"):
    """What a running tool call shows so far, for showing only; the result comes as a node.

    `text` replaces that of the call's `ToolOutput` before: of long output it is the end.
    """

    conversation_id: str
    task_id: str
    call_id: str
    tool: str
    text: str


Delta: TypeAlias = TextDelta | ToolOutput


class EventRecord(Wire, frozen=True, kw_only=True):
    """An event as the log holds it: `sequence` grows by one or more, never repeats within an epoch."""

    sequence: int
    epoch: str
    event: Event


class Resync(Wire, frozen=True, kw_only=True):
    """The client's queue overflowed: events were dropped, subscribe again for a new snapshot."""

    reason: str
