"""Translates the engine's events into a simple agent interface."""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from errand.client.conversation.streamed_texts import StreamedTexts
from errand.protocol import events
from errand.protocol.agents import Agent
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import Task

# The highest version of a new agent.
_NEW = 1


class Position(msgspec.Struct, frozen=True):
    """A node of a tree; a tree is a conversation. `node_id` null is the position before the first message."""

    tree_id: str
    node_id: str | None


class ChatUsage(msgspec.Struct, frozen=True):
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class AgentCreated(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    agent_id: str
    head: Position


class AgentData(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    agent: Agent


class AgentList(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    agents: tuple[Agent, ...]


class AgentDeleted(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    agent_id: str


class ChatStart(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """A person's message is stored at `user_position`; the agent's reply follows."""

    agent_id: str
    user_position: Position


class ChatContent(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """The next piece of an agent's reply."""

    agent_id: str
    content: str


class ChatComplete(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """An agent's reply is complete. `usage` sums all model calls since its `ChatStart`."""

    agent_id: str
    new_head: Position
    usage: ChatUsage


class HeadUpdated(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    agent_id: str
    old_head: Position
    new_head: Position


class Error(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """A chat failed or was ended early, or a reply restarts from its first word."""

    message: str


AgentEvent: TypeAlias = (
    AgentCreated | AgentData | AgentList | AgentDeleted | ChatStart | ChatContent | ChatComplete | HeadUpdated | Error
)


class AgentView:
    """Expects all records and deltas of one or more conversations, in order."""

    def __init__(self) -> None:
        self._heads: dict[str, Position] = {}
        self._agents: dict[str, str] = {}  # by task id
        self._task_ends: dict[str, Position] = {}  # the newest node by task id
        self._streamed = StreamedTexts()
        self._finished: set[str] = set()  # ids of nodes and tasks

    def data(self, agent: Agent) -> AgentData:
        """Return the data of an agent; remembers its head."""
        self._heads[agent.id] = _head(agent)
        return AgentData(agent=agent)

    def listed(self, agents: Iterable[Agent]) -> AgentList:
        return AgentList(agents=tuple(self.data(agent).agent for agent in agents))

    def record(self, event: events.Event) -> tuple[AgentEvent, ...]:
        match event:
            case events.AgentUpdate(agent=agent):
                return self._agent(agent)
            case events.AgentDeleted(agent_id=agent_id):
                self._heads.pop(agent_id, None)
                return (AgentDeleted(agent_id=agent_id),)
            case events.TaskMessage(node=node):
                return self._node(node)
            case events.TaskUpdate(task=task):
                return self._task(task)
            case _:
                return ()

    def delta(self, delta: events.Delta) -> tuple[AgentEvent, ...]:
        if not isinstance(delta, events.TextDelta) or delta.kind != "text" or delta.node_id in self._finished:
            return ()
        agent_id = self._agents.get(delta.task_id)
        effect = self._streamed.add(delta) if agent_id is not None else None
        if agent_id is None or effect is None:
            return ()
        again = (Error(message="The reply begins again."),) if effect == "restarts" else ()
        return (*again, ChatContent(agent_id=agent_id, content=delta.text))

    def _agent(self, agent: Agent) -> tuple[AgentEvent, ...]:
        old, new = self._heads.get(agent.id), _head(agent)
        self._heads[agent.id] = new
        if old is None:
            return (AgentCreated(agent_id=agent.id, head=new) if agent.version <= _NEW else AgentData(agent=agent),)
        return (HeadUpdated(agent_id=agent.id, old_head=old, new_head=new),) if old != new else ()

    def _node(self, node: Node) -> tuple[AgentEvent, ...]:
        if node.status == "streaming" or node.task_id is None or node.id in self._finished:
            return ()
        self._finished.add(node.id)
        position = Position(tree_id=node.conversation_id, node_id=node.id)
        self._task_ends[node.task_id] = position
        agent_id = self._agents.get(node.task_id, node.author)
        if node.is_from_person:
            return (ChatStart(agent_id=agent_id, user_position=position),)
        return tuple(self._final_events(node, agent_id)) if node.role == "assistant" else ()

    def _final_events(self, node: Node, agent_id: str) -> Iterable[AgentEvent]:
        """Yield the parts of a finished reply that did not arrive as deltas."""
        for index, block in enumerate(node.blocks):
            if isinstance(block, TextBlock):
                streamed = self._streamed.take(node.id, index)
                rest = block.text[len(streamed) :] if block.text.startswith(streamed) else block.text
                if rest:
                    yield ChatContent(agent_id=agent_id, content=rest)

    def _task(self, task: Task) -> tuple[AgentEvent, ...]:
        is_new = task.id not in self._finished
        self._agents[task.id] = task.agent_id
        if task.outcome.ended_at is None or not is_new:
            return ()
        self._finished.add(task.id)
        if task.outcome.stop_reason != "completed":
            return (
                Error(message=task.outcome.error or f"The chat ended before its time: {task.outcome.stop_reason}."),
            )
        nowhere = Position(tree_id=task.conversation_id, node_id=None)
        head = self._task_ends.pop(task.id, nowhere)
        used = task.progress.usage
        usage = ChatUsage(used.input_tokens, used.output_tokens, used.cost_usd)
        return (ChatComplete(agent_id=task.agent_id, new_head=head, usage=usage),)


def _head(agent: Agent) -> Position:
    return Position(tree_id=agent.conversation_id, node_id=agent.head_id)
