"""Events: one union. Those with a sequence number are durable; deltas have none and are not stored."""

from typing import Literal, TypeAlias, assert_never

from errand.protocol.agents import Agent, Personality
from errand.protocol.asks import Ask, Grant
from errand.protocol.background import BackgroundCommand
from errand.protocol.base import Wire
from errand.protocol.changes import Change
from errand.protocol.conversations import Conversation, Node
from errand.protocol.local_models import LocalModel
from errand.protocol.memory import EmbeddingModel, Fact
from errand.protocol.servers import ServerState
from errand.protocol.tasks.change import TaskChange
from errand.protocol.tasks.task import AgentPlan, Task


class ConversationUpdate(Wire, frozen=True, kw_only=True, tag="conversationUpdate"):
    """A conversation was created or changed. Replaces the one with the same id."""

    conversation: Conversation


class ConversationDeleted(Wire, frozen=True, kw_only=True, tag="conversationDeleted"):
    """A conversation was deleted permanently, with everything that belonged to it."""

    conversation_id: str


class AgentUpdate(Wire, frozen=True, kw_only=True, tag="agentUpdate"):
    """An agent was created or its head moved."""

    agent: Agent


class AgentDeleted(Wire, frozen=True, kw_only=True, tag="agentDeleted"):
    """An agent was deleted; its messages stay."""

    agent_id: str
    conversation_id: str


class TaskUpdate(Wire, frozen=True, kw_only=True, tag="taskUpdate"):
    """A task started or changed; sent to every client. The last one of a task has `ended_at` in its outcome.

    On a connection the first event of a task is this one; `taskChange` follows, with the groups that changed.
    """

    task: Task


class TaskMessage(Wire, frozen=True, kw_only=True, tag="taskMessage"):
    """A node was added or finished. Replaces the one with the same id."""

    node: Node


class TaskPlan(Wire, frozen=True, kw_only=True, tag="taskPlan"):
    """A turn's reply is complete: its plan. The nodes with its tool results follow."""

    conversation_id: str
    plan: AgentPlan


class AskUpdate(Wire, frozen=True, kw_only=True, tag="askUpdate"):
    """An ask was raised, answered or cancelled; sent to every client."""

    ask: Ask


class ChangeUpdate(Wire, frozen=True, kw_only=True, tag="changeUpdate"):
    """A task is about to change a file, a person undoes or redoes a change, or one failed (the same id again)."""

    change: Change


class PersonalityUpdate(Wire, frozen=True, kw_only=True, tag="personalityUpdate"):
    """A personality was created or changed; sent to every client."""

    personality: Personality


class PersonalityDeleted(Wire, frozen=True, kw_only=True, tag="personalityDeleted"):
    """A personality was deleted."""

    personality_id: str


class GrantUpdate(Wire, frozen=True, kw_only=True, tag="grantUpdate"):
    """A grant was given or revoked."""

    grant: Grant


class FactUpdate(Wire, frozen=True, kw_only=True, tag="factUpdate"):
    """A fact was proposed, pinned or changed; sent to every client."""

    fact: Fact


class FactRemoved(Wire, frozen=True, kw_only=True, tag="factRemoved"):
    """A fact was removed, or a proposed one declined."""

    fact_id: str


class McpUpdate(Wire, frozen=True, kw_only=True, tag="mcpUpdate"):
    """An MCP server was added, changed or removed, or its state or its tools have: `mcp/list` gives them."""

    name: str
    state: ServerState
    problem: str = ""


class BackgroundUpdate(Wire, frozen=True, kw_only=True, tag="backgroundUpdate"):
    """A background command of the conversation started, printed or ended: all of them as they are now.

    Those of an engine that died end with it, without this event: read `background/list` after a restart.
    """

    conversation_id: str
    commands: tuple[BackgroundCommand, ...]


class LocalModelUpdate(Wire, frozen=True, kw_only=True, tag="localModelUpdate"):
    """A model on this machine is downloaded, was installed or removed, or its server started or ended.

    Of a download each whole percent is said. `local_model/list` gives all models.
    """

    model: LocalModel


class EmbeddingModelUpdate(Wire, frozen=True, kw_only=True, tag="embeddingModelUpdate"):
    """The embedding model is downloaded, or may be offered to the person: a search had to do without it."""

    model: EmbeddingModel


Event: TypeAlias = (
    ConversationUpdate
    | ConversationDeleted
    | AgentUpdate
    | AgentDeleted
    | TaskUpdate
    | TaskMessage
    | TaskPlan
    | AskUpdate
    | ChangeUpdate
    | GrantUpdate
    | PersonalityUpdate
    | PersonalityDeleted
    | FactUpdate
    | FactRemoved
    | McpUpdate
    | BackgroundUpdate
    | LocalModelUpdate
    | EmbeddingModelUpdate
)


def conversation_of(event: Event | TaskChange) -> str | None:
    """Return the conversation that an event belongs to; None if it concerns all (grants, facts, personalities)."""
    match event:
        case ConversationUpdate(conversation=conversation):
            return conversation.id
        case AgentUpdate(agent=agent):
            return agent.conversation_id
        case TaskUpdate(task=task):
            return task.conversation_id
        case TaskMessage(node=node):
            return node.conversation_id
        case TaskPlan(conversation_id=conversation_id) | TaskChange(conversation_id=conversation_id):
            return conversation_id
        case ChangeUpdate(change=change):
            return change.conversation_id
        case AskUpdate(ask=ask):
            return ask.conversation_id
        case (
            ConversationDeleted(conversation_id=conversation_id)
            | AgentDeleted(conversation_id=conversation_id)
            | BackgroundUpdate(conversation_id=conversation_id)
        ):
            return conversation_id
        case GrantUpdate() | FactUpdate() | FactRemoved() | PersonalityUpdate() | PersonalityDeleted():
            return None
        case McpUpdate() | LocalModelUpdate() | EmbeddingModelUpdate():
            return None
        case _:
            assert_never(event)


class TextDelta(Wire, frozen=True, kw_only=True, tag="textDelta"):
    """A continuation of a streaming node: `text` goes at `offset` (in characters) of the block with index `block`.

    Sent about every 33 ms for each node. An `offset` of 0 on a block that has text restarts the block (a retry). A
    client whose text is not `offset` long missed a delta and waits for the finished node.
    """

    conversation_id: str
    task_id: str
    node_id: str
    block: int
    kind: Literal["text", "thinking", "toolCall"]
    offset: int
    text: str


class ToolOutput(Wire, frozen=True, kw_only=True, tag="toolOutput"):
    """Output of a running tool call so far, for display only; the result arrives as a node.

    `text` replaces the text of the call's previous `ToolOutput`. For long output it is the end.
    """

    conversation_id: str
    task_id: str
    call_id: str
    tool: str
    text: str


class PromptReading(Wire, frozen=True, kw_only=True, tag="promptReading"):
    """The model server has read `processed` of the `total` tokens of the request, for display only.

    Sent for servers that report it (llama.cpp), before the reply. In the last one `processed` is `total`.
    """

    conversation_id: str
    task_id: str
    processed: int
    total: int


Delta: TypeAlias = TextDelta | ToolOutput | PromptReading


class LogRecord(Wire, frozen=True, kw_only=True):
    """An event as it is stored and sent. `sequence` increases by one or more and never repeats within an epoch."""

    sequence: int
    epoch: str
    event: Event | TaskChange


class EventRecord(Wire, frozen=True, kw_only=True):
    """An event of the log, with its whole task."""

    sequence: int
    epoch: str
    event: Event


class Resync(Wire, frozen=True, kw_only=True):
    """The client's queue overflowed and events were dropped: subscribe again for a new snapshot."""

    reason: str
