"""Appends nodes to one branch and moves the agent's head with them. visible_history.py reads a branch."""

from datetime import UTC, datetime

import msgspec

from errand.engine.core.errors import Conflict, StorageError
from errand.engine.core.ids import new_id
from errand.engine.event_log import EventLog
from errand.engine.storage.records import agents
from errand.engine.storage.sql.journal import JournalChange
from errand.engine.storage.sql.statements import Write
from errand.protocol.agents import Agent
from errand.protocol.blocks import Block
from errand.protocol.conversations import Node, NodeStatus, Position, Role
from errand.protocol.events import AgentUpdate, TaskMessage
from errand.protocol.usage import Usage


class BranchWriter:
    """An agent's position in its conversation. New nodes are children of `position`, which stays in one tree.

    The stored head always points to the newest node; `announce_head` notifies the clients.
    """

    def __init__(self, agent: Agent, log: EventLog) -> None:
        self.agent: Agent = agent
        self.position = Position(conversation_id=agent.conversation_id, node_id=agent.head_id)
        self._log = log
        self._newest: JournalChange | None = None
        self._saved_head = agent.head_id
        self._unsaved: dict[str, Node] = {}
        self._announced = self._stored = agent.version

    def draft(
        self,
        role: Role,
        author: str,
        blocks: tuple[Block, ...],
        *,
        task_id: str | None = None,
        turn: int = 0,
        status: NodeStatus = "complete",
        model: str = "",
        usage: Usage | None = None,
        error: str | None = None,
        node_id: str | None = None,
    ) -> Node:
        """Return a node at the current position; it joins the tree only with `append`."""
        return Node(
            id=node_id or new_id("node"),
            conversation_id=self.position.conversation_id,
            parent_id=self.position.node_id,
            role=role,
            author=author,
            blocks=blocks,
            status=status,
            created_at=datetime.now(UTC),
            task_id=task_id,
            turn=turn,
            model=model,
            usage=usage,
            error=error,
        )

    def append(self, node: Node, *also: Write) -> None:
        """Add a node to the tree and advance to it; the same id again replaces a streaming node.

        `also` is committed atomically with it.
        """
        self._publish(node, also)
        self.position = self.position.advance(node.id)

    def show(self, node: Node) -> None:
        """Publish a node that is still streaming; append its final version before any other node."""
        self._publish(node, ())

    async def save(self, *, durable: bool = True) -> None:
        """Return when all nodes are committed, see `Journal.flush`. Raises `StorageError` if one failed to save."""
        await self._log.flush(durable=durable)
        if self._unsaved:  # an earlier flush has reported the reason
            raise StorageError("Not saved: the last messages of this task. Everything saved before is kept.")

    def take_back(self) -> None:
        """Return to the newest stored node; discards nodes that could not be saved."""
        self._newest = None
        self._unsaved.clear()
        self.position = Position(conversation_id=self.agent.conversation_id, node_id=self._saved_head)
        self.agent = msgspec.structs.replace(self.agent, head_id=self._saved_head, version=self.agent.version + 1)

    def _publish(self, node: Node, also: tuple[Write, ...]) -> None:
        agent = self.agent if self.agent.head_id == node.id else self._with_head(node.id)
        self._newest = self._log.publish(
            TaskMessage(node=node),
            also=(agents.save_agent(agent), *also),
            on_commit=lambda: self._on_saved(node),
            after=self._newest,
        )
        # Only after the log has accepted the node: a rejected node must not become a parent.
        self.agent = agent
        self._stored = agent.version
        self._unsaved[node.id] = node

    def _on_saved(self, node: Node) -> None:
        self._saved_head = node.id
        if self._unsaved.get(node.id) is node:
            del self._unsaved[node.id]

    def announce_head(self) -> None:
        """Send the agent's head to the clients: once per turn, not for every node."""
        if self._announced != self.agent.version:
            self._announced = self.agent.version
            is_stored = self._stored == self.agent.version
            self._newest = self._log.publish(AgentUpdate(agent=self.agent), after=self._newest, is_stored=is_stored)

    def set_head(self, node_id: str, version: int) -> None:
        """Move the head if `version` is still the agent's version. Raises `Conflict` otherwise."""
        if version != self.agent.version:
            raise Conflict(f"The agent has moved on: its version is {self.agent.version}, not {version}.")
        self.position = self.position.advance(node_id)
        self.agent = self._with_head(node_id)
        self._saved_head = node_id
        self.announce_head()

    def _with_head(self, node_id: str) -> Agent:
        return msgspec.structs.replace(self.agent, head_id=node_id, version=self.agent.version + 1)
