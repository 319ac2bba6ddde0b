"""Creates, deletes and moves the agents of conversations."""

import re
from datetime import UTC, datetime

import msgspec

from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.participants import checked_name, unused_name
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.locks import AgentLocks, KeyedLock
from errand.engine.agent.tasks.task_target import NO_TITLE, make_workspace, new_conversation
from errand.engine.core.errors import Conflict, InvalidParams, NotFound
from errand.engine.core.ids import new_id
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.storage.records.agents import ASSISTANT
from errand.protocol.agents import Agent, AgentCreateParams, AgentSetHeadParams, Personality, first_agent
from errand.protocol.conversations import Conversation, FormerAgent
from errand.protocol.events import AgentDeleted, AgentUpdate, ConversationUpdate
from errand.system.paths import Paths

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MAX_AGENTS = 100


class ConversationAgents:
    def __init__(
        self, log: EventLog, database: Database, changes: ConversationChanges, locks: AgentLocks, paths: Paths
    ) -> None:
        self._log = log
        self._database = database
        self._changes = changes
        self._locks = locks
        self._paths = paths
        self._conversation_locks = KeyedLock()

    async def get(self, agent_id: str) -> Agent:
        agent = await self._database.agents.get(agent_id)
        if agent is None:
            raise NotFound(f"There is no agent {agent_id!r}.")
        return agent

    async def create(self, params: AgentCreateParams) -> Agent:
        """Create an agent, in a new conversation if `params` name none. A known agent id returns the existing agent."""
        if params.agent_id is not None:
            _check_id(params.agent_id)
        if params.node_id is not None and params.conversation_id is None:
            raise InvalidParams("nodeId goes with the conversationId of its conversation.")
        async with self._conversation_locks.lock(params.conversation_id or params.agent_id or new_id("agent")):
            stored = await self._database.agents.get(params.agent_id) if params.agent_id is not None else None
            if stored is None:
                return await self._create(params)
        if params.conversation_id not in (None, stored.conversation_id):
            raise Conflict(f"The id {stored.id!r} is that of an agent of another conversation; choose a new id.")
        return stored

    async def create_on_side_branch(self, agent: Agent, node_id: str | None, model: str | None = None) -> Agent:
        """Create an agent of the same personality that answers for `agent` on a side branch."""
        async with self._conversation_locks.lock(agent.conversation_id):
            conversation = await self._conversation(agent.conversation_id)
            await self._check_node(node_id, conversation)
            others = await self._database.agents.list(conversation.id)
            another = msgspec.structs.replace(
                agent,
                id=new_id("agent"),
                name=unused_name(agent.name, (other.name for other in others)),
                head_id=node_id,
                version=1,
                created_at=datetime.now(UTC),
                model=model or agent.model,
                beside=agent.beside or agent.id,
            )
            await self._store(another)
        return another

    async def delete(self, agent_id: str) -> None:
        """Delete an agent permanently; its messages stay under its name. Raises `AgentBusy` while it runs a task.

        A conversation without its moderator falls back to the rule `addressed`.
        """
        agent = await self.get(agent_id)
        await self._locks.acquire(agent)
        try:
            await self._changes.change(agent.conversation_id, lambda conversation: _without_agent(agent, conversation))
            self._log.publish(AgentDeleted(agent_id=agent.id, conversation_id=agent.conversation_id))
            await self._log.flush()
        finally:
            self._locks.release(agent.id)

    async def set_head(self, params: AgentSetHeadParams) -> Agent:
        """Move an idle agent within its conversation. Raises `AgentBusy` or, after another move, `Conflict`.

        With `to_leaf` it moves to the newest leaf below the node.
        """
        agent = await self.get(params.agent_id)
        node = await self._database.nodes.get(params.node_id)
        if node is None or node.conversation_id != agent.conversation_id:
            raise NotFound(f"There is no node {params.node_id!r} in the agent's conversation.")
        await self._locks.acquire(agent)
        try:
            branch = BranchWriter(await self._locks.current(agent), self._log)
            target = await self._database.trees.newest_leaf(node.id) if params.to_leaf else node.id
            branch.set_head(target, params.version)
            await self._log.flush()
        finally:
            self._locks.release(agent.id)
        return branch.agent

    async def _create(self, params: AgentCreateParams) -> Agent:
        personality = await self._personality(params.personality_id or ASSISTANT.id)
        name = personality.name if params.name is None else checked_name(params.name)
        if params.conversation_id is None:
            conversation, others = await new_conversation(NO_TITLE, params.workspace, self._paths), ()
        else:
            conversation = await self._conversation(params.conversation_id)
            others = await self._database.agents.list(conversation.id)
        if sum(other.beside is None for other in others) >= _MAX_AGENTS:
            raise InvalidParams(f"This conversation has {_MAX_AGENTS} agents already. Take one away first.")
        await self._check_node(params.node_id, conversation)
        agent = Agent(
            id=params.agent_id or new_id("agent"),
            conversation_id=conversation.id,
            personality_id=personality.id,
            name=unused_name(name, (other.name for other in others)),
            head_id=params.node_id or await self._default_head(conversation, others),
            version=1,
            created_at=datetime.now(UTC),
            model=params.model,
            color=params.color or personality.color,
            owner=conversation.owner,
        )
        await self._store(agent, opens=conversation if params.conversation_id is None else None)
        return agent

    async def _store(self, agent: Agent, *, opens: Conversation | None = None) -> None:
        """Store and announce an agent, and the conversation it opens. Raises `NotFound` if its conversation is gone."""
        await self._locks.acquire(agent)
        try:
            if opens is not None:
                await make_workspace(opens)
                self._log.publish(ConversationUpdate(conversation=opens))
            else:
                await self._conversation(agent.conversation_id)
            self._log.publish(AgentUpdate(agent=agent))
            await self._log.flush()
        finally:
            self._locks.release(agent.id)

    async def _default_head(self, conversation: Conversation, others: tuple[Agent, ...]) -> str | None:
        first = first_agent(others)
        return first.head_id if first is not None else await self._database.nodes.newest(conversation.id)

    async def _personality(self, personality_id: str) -> Personality:
        personality = await self._database.personalities.get(personality_id)
        if personality is None:
            raise NotFound(f"There is no personality {personality_id!r}. Choose another.")
        return personality

    async def _conversation(self, conversation_id: str) -> Conversation:
        conversation = await self._database.conversations.get(conversation_id)
        if conversation is None:
            raise NotFound(f"There is no conversation {conversation_id!r}.")
        return conversation

    async def _check_node(self, node_id: str | None, conversation: Conversation) -> None:
        node = await self._database.nodes.get(node_id) if node_id is not None else None
        if node_id is not None and (node is None or node.conversation_id != conversation.id):
            raise NotFound(f"There is no node {node_id!r} in conversation {conversation.id!r}.")


def _without_agent(agent: Agent, conversation: Conversation) -> Conversation:
    former = FormerAgent(id=agent.id, name=agent.name, color=agent.color)
    if agent.head_id is not None and former not in conversation.former:
        conversation = msgspec.structs.replace(conversation, former=(*conversation.former, former))
    turns = conversation.turn_taking
    if turns.moderator_id != agent.id:
        return conversation
    turns = msgspec.structs.replace(
        turns, rule="addressed" if turns.rule == "moderator" else turns.rule, moderator_id=None
    )
    return msgspec.structs.replace(conversation, turn_taking=turns)


def _check_id(agent_id: str) -> None:
    if not _ID.fullmatch(agent_id):
        raise InvalidParams("agentId: 1 to 100 letters, digits, `-` and `_`.")
