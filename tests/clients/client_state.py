"""A client's state from snapshots, events and deltas alone, and its differences from the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, assert_never

from errand.client.conversation.streamed_texts import StreamedTexts
from errand.client.subscription import Detail, FollowedScope
from errand.engine.server.session import ALL
from errand.engine.storage.database import Database
from errand.engine.tools.call_display import with_displays
from errand.protocol.agents import Agent, first_agent
from errand.protocol.asks import Ask, Grant
from errand.protocol.base import Wire
from errand.protocol.blocks import TextBlock, ThinkingBlock
from errand.protocol.conversations import Conversation, Node
from errand.protocol.engine import Snapshot
from errand.protocol.events import (
    AgentDeleted,
    AgentUpdate,
    AskUpdate,
    BackgroundUpdate,
    ChangeUpdate,
    ConversationDeleted,
    ConversationUpdate,
    Delta,
    EmbeddingModelUpdate,
    Event,
    FactRemoved,
    FactUpdate,
    GrantUpdate,
    LocalModelUpdate,
    McpUpdate,
    PersonalityDeleted,
    PersonalityUpdate,
    TaskMessage,
    TaskPlan,
    TaskUpdate,
    TextDelta,
)
from errand.protocol.tasks.task import Task

T = TypeVar("T", Conversation, Task, Ask, Agent, Node)

# No test creates more records, so a page contains all of them.
_ALL = 500
_PAGE = 50


@dataclass(slots=True)
class ClientState:
    """Records by id. `faults` are sentences about what no client should ever see."""

    conversations: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    agents: dict[str, Agent] = field(default_factory=dict[str, Agent])
    tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    asks: dict[str, Ask] = field(default_factory=dict[str, Ask])
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    grants: dict[str, Grant] = field(default_factory=dict[str, Grant])
    faults: list[str] = field(default_factory=list[str])
    _streamed: StreamedTexts = field(default_factory=StreamedTexts)

    def show(self, scope: str, detail: Detail, snapshot: Snapshot) -> None:
        """A snapshot replaces everything known of its scope."""
        if scope == ALL:
            self.conversations, self.tasks, self.asks, self.grants = {}, {}, {}, {}
            self.grants = {grant.id: grant for grant in snapshot.grants}
        else:
            self.tasks, self.asks = _without(self.tasks, scope), _without(self.asks, scope)
            self.agents, self.nodes = _without(self.agents, scope), _without(self.nodes, scope)
        self.conversations |= {record.id: record for record in snapshot.conversations}
        self.tasks |= {record.id: record for record in snapshot.tasks}
        self.asks |= {record.id: record for record in snapshot.asks}
        self.agents |= {record.id: record for record in snapshot.agents}
        self.nodes |= {record.id: record for record in snapshot.nodes}
        if detail == "summary" and snapshot.nodes:
            self.faults.append(f"a summary of {scope} held nodes")

    def apply(self, event: Event) -> None:
        match event:
            case ConversationUpdate(conversation=conversation):
                self.conversations[conversation.id] = conversation
            case ConversationDeleted(conversation_id=gone):
                self.conversations.pop(gone, None)
                self.tasks, self.asks = _without(self.tasks, gone), _without(self.asks, gone)
                self.agents, self.nodes = _without(self.agents, gone), _without(self.nodes, gone)
            case AgentUpdate(agent=agent):
                self.agents[agent.id] = agent
            case AgentDeleted(agent_id=gone):
                self.agents.pop(gone, None)
            case TaskUpdate(task=task):
                self.tasks[task.id] = task
            case TaskMessage(node=node):
                self._finish(node)
            case AskUpdate(ask=ask):
                self.asks[ask.id] = ask
            case GrantUpdate(grant=grant):
                self.grants[grant.id] = grant
            case (
                TaskPlan()
                | ChangeUpdate()
                | FactUpdate()
                | FactRemoved()
                | PersonalityUpdate()
                | PersonalityDeleted()
                | McpUpdate()
                | BackgroundUpdate()
                | LocalModelUpdate()
                | EmbeddingModelUpdate()
            ):
                pass
            case _:
                assert_never(event)

    def stream(self, delta: Delta) -> None:
        """Text at the expected offset is appended; a client that missed a delta waits for the finished node."""
        if not isinstance(delta, TextDelta) or delta.kind == "toolCall":
            return
        before = self._streamed.text(delta.node_id, delta.block)
        if self._streamed.add(delta) is None and delta.offset < len(before):
            self.faults.append(f"text of {delta.node_id} came at {delta.offset}, after {len(before)} characters")

    def _finish(self, node: Node) -> None:
        old = self.nodes.get(node.id)
        if old is not None and old.status != "streaming" and old != node:
            self.faults.append(f"the finished node {node.id} changed")
        self.nodes[node.id] = node
        if node.status == "streaming":
            return
        for index, block in enumerate(node.blocks):
            streamed = self._streamed.take(node.id, index)
            if isinstance(block, TextBlock | ThinkingBlock) and not block.text.startswith(streamed):
                self.faults.append(f"what was streamed of {node.id} is not how it begins")


def _without(records: dict[str, T], conversation_id: str) -> dict[str, T]:
    return {key: record for key, record in records.items() if _place(record) != conversation_id}


def _place(record: Conversation | Task | Ask | Agent | Node) -> str:
    return record.id if isinstance(record, Conversation) else record.conversation_id


async def differences(state: ClientState, follow: FollowedScope, database: Database) -> list[str]:
    """Differences between the subscribed scopes and the stored state, as text."""
    follows_all = follow.scope == ALL
    scope = None if follows_all else follow.scope
    stored = (await database.tasks.page(_ALL, scope)).tasks
    waiting = [ask for ask in await database.asks.waiting() if scope in (None, ask.conversation_id)]
    faults = _compare("task", {task.id: task for task in stored}, _of(state.tasks, scope))
    client_asks = {key: ask for key, ask in _of(state.asks, scope).items() if ask.status == "waiting"}
    faults += _compare("ask", {ask.id: ask for ask in waiting}, client_asks)
    if scope is None:
        conversations = (await database.conversations.page(limit=_ALL)).conversations
        faults += _compare(
            "conversation", {conversation.id: conversation for conversation in conversations}, state.conversations
        )
        faults += _compare("grant", {grant.id: grant for grant in await database.grants.valid()}, state.grants)
    else:
        agents = {agent.id: agent for agent in await database.agents.list(scope)}
        faults += _compare("agent", agents, _of(state.agents, scope))
    if scope is not None and follow.detail == "full":
        faults += await _node_differences(state, scope, database)
    return faults


async def _node_differences(state: ClientState, scope: str, database: Database) -> list[str]:
    """Every known node equals the stored one with displays, and the end of the first agent's branch is known."""
    client_nodes = _of(state.nodes, scope)
    stored = {key: node for key in client_nodes if (node := await database.nodes.get(key)) is not None}
    agent = first_agent(await database.agents.list(scope))
    if agent is not None and agent.head_id is not None:
        page, _ = await database.nodes.branch(agent.head_id, _PAGE)
        stored |= {node.id: node for node in page}
    return _compare("node", {key: with_displays(node) for key, node in stored.items()}, client_nodes)


def _of(records: dict[str, T], scope: str | None) -> dict[str, T]:
    return {key: record for key, record in records.items() if scope in (None, _place(record))}


def _compare(what: str, stored: Mapping[str, Wire], client_records: Mapping[str, Wire]) -> list[str]:
    missing = [f"{what} {key} is not known" for key in stored.keys() - client_records.keys()]
    extra = [f"{what} {key} is known and not stored" for key in client_records.keys() - stored.keys()]
    other = [
        f"{what} {key} is known as {client_records[key]}, stored as {stored[key]}"
        for key in stored.keys() & client_records.keys()
        if stored[key] != client_records[key]
    ]
    return missing + extra + other
