"""The agents of the conversation, and the selected one, whose branch is shown and receives messages."""

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from errand.client.conversation.rows import Speaker
from errand.protocol.agents import (
    AGENT_CREATE,
    AGENT_DELETE,
    AGENT_SET_HEAD,
    Agent,
    AgentCreateParams,
    AgentIdParams,
    AgentSetHeadParams,
    Color,
    first_agent,
)
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    Conversation,
    ConversationChangeParams,
    FormerAgent,
    Node,
    TurnTaking,
)
from errand.window.stores.session import EngineSession


@dataclass(frozen=True, slots=True)
class NewAgent:
    """An empty name or model means that of the personality."""

    personality_id: str
    name: str = ""
    model: str = ""
    color: Color = ""


class AgentStore(QObject):
    """Emits `changed` when any of them changes, `selection_changed` when another one is selected.

    Emits `failed` with a refusal. `turns` is the turn order.
    """

    changed = Signal()
    selection_changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._agents: dict[str, Agent] = {}
        self._chosen: str | None = None
        self._former: tuple[FormerAgent, ...] = ()
        self._written: dict[str, str] = {}
        self.turns = TurnTaking()

    @property
    def all(self) -> tuple[Agent, ...]:
        """All agents, oldest first; of the sub-agents only a selected one."""
        listed = (agent for agent in self._agents.values() if agent.called_by is None or agent.id == self._chosen)
        return tuple(sorted(listed, key=lambda agent: (agent.created_at, agent.id)))

    @property
    def is_several(self) -> bool:
        return len(self.all) > 1

    @property
    def has_sub_agents(self) -> bool:
        return any(agent.called_by is not None for agent in self._agents.values())

    @property
    def shown(self) -> Agent | None:
        """The selected agent: the user's choice, else the first one; None until agents are known."""
        chosen = self._agents.get(self._chosen or "")
        return chosen or first_agent(self.all)

    @property
    def active(self) -> Agent | None:
        """The selected agent, or for a side-branch agent the agent it answers for."""
        selected = self.shown
        if selected is None or selected.beside is None:
            return selected
        return self._agents.get(selected.beside) or first_agent(self.all)

    @property
    def chosen_id(self) -> str | None:
        """The agent that the user selected; None if there was no choice."""
        return self._chosen

    @property
    def speakers(self) -> dict[str, Speaker]:
        """Names of current and former agents in the transcript, by id; empty for a single agent."""
        former = {agent.id: Speaker(agent.name, agent.color) for agent in self._former}
        present = {agent.id: Speaker(agent.name, agent.color, agent.model) for agent in self.all}
        speakers = former | present
        return speakers if len(speakers) > 1 else {}

    def note_node(self, node: Node) -> None:
        """A node was written; its agent is told of only at the end of the turn."""
        if node.author in self._agents:
            self._written[node.author] = node.id

    def position(self, agent: Agent) -> str | None:
        """Return the node below which an agent writes: its head, or the newest node that it has written since."""
        return self._written.get(agent.id, agent.head_id)

    def get(self, agent_id: str) -> Agent | None:
        return self._agents.get(agent_id)

    @property
    def is_in_round(self) -> bool:
        """True if the selected agent is at the first agent's node and replies by a turn order."""
        selected, first = self.shown, first_agent(self.all)
        together = selected is not None and first is not None and selected.head_id == first.head_id
        return together and self.turns.rule != "addressed"

    def named_in(self, text: str) -> frozenset[str]:
        """Ids of the agents that a text mentions. "@Coder 2" includes Coder: the engine distinguishes them."""
        lowered = text.casefold()
        return frozenset(agent.id for agent in self.all if f"@{agent.name.casefold()}" in lowered)

    def is_for_another(self, text: str, spoke_last: str | None) -> bool:
        """True if a text may go to another agent than the selected one."""
        selected, named = self.shown, self.named_in(text)
        if selected is None or sum(agent.beside is None for agent in self._agents.values()) < 2:
            return False
        if named:
            return named != frozenset({selected.id})
        if self.is_in_round:
            return self.turns.rule != "moderator" or self.turns.moderator_id != selected.id
        return (self._chosen or spoke_last or selected.id) != selected.id

    def show_agent(self, agent_id: str) -> None:
        """Select an agent: show its branch and send messages to it."""
        before = self.shown
        self._chosen = agent_id
        if self.shown != before:
            self.selection_changed.emit()
            self.changed.emit()

    def add(self, conversation_id: str, new: NewAgent) -> None:
        """Add an agent at the first agent's position, and select it."""
        params = AgentCreateParams(
            conversation_id=conversation_id,
            personality_id=new.personality_id,
            name=new.name or None,
            model=new.model,
            color=new.color,
        )
        self._session.spawn(self._add(params), self.failed.emit)

    def remove(self, agent_id: str) -> None:
        """Remove an agent; its messages stay."""
        self._session.spawn(self._remove(agent_id), self.failed.emit)

    def move_head(self, agent_id: str, node_id: str, *, to_leaf: bool = False) -> None:
        """Move an agent's head to this node, or to the end of the newest branch through it."""
        version = self._agents[agent_id].version
        params = AgentSetHeadParams(agent_id=agent_id, node_id=node_id, version=version, to_leaf=to_leaf)
        self._session.spawn(self._set_head(params), self.failed.emit)

    def continue_with(self, node_id: str) -> None:
        """Continue the conversation from the end of this branch, and show it, whichever agent wrote it."""
        agent = self.active
        if agent is not None:
            self.move_head(agent.id, node_id, to_leaf=True)
            self.show_agent(agent.id)

    def set_turns(self, conversation_id: str, turns: TurnTaking) -> None:
        """Change the turn order."""
        params = ConversationChangeParams(conversation_id=conversation_id, turn_taking=turns)
        self._session.spawn(self._set_turns(params), self.failed.emit)

    def put_conversation(self, conversation: Conversation) -> None:
        """Store the turn order and the former agents."""
        if (conversation.turn_taking, conversation.former) != (self.turns, self._former):
            self.turns, self._former = conversation.turn_taking, conversation.former
            self.changed.emit()

    def put_all(self, agents: Iterable[Agent]) -> None:
        """Replace all agents; the selection is dropped if its agent no longer exists."""
        agents_by_id = {agent.id: agent for agent in agents}
        if self._chosen not in agents_by_id:
            self._chosen = None
        self._written.clear()
        if agents_by_id != self._agents:
            self._agents = agents_by_id
            self.changed.emit()

    def put(self, agent: Agent) -> bool:
        """Store an agent; False for an older version than the known one."""
        before = self._agents.get(agent.id)
        if before is not None and agent.version < before.version:
            return False
        self._agents[agent.id] = agent
        self._written.pop(agent.id, None)
        if before != agent:
            self.changed.emit()
        return True

    def drop(self, agent_id: str) -> None:
        """Remove a deleted agent; if it was selected, the first one is selected again."""
        if self._agents.pop(agent_id, None) is None:
            return
        if self._chosen == agent_id:
            self._chosen = None
            self.selection_changed.emit()
        self.changed.emit()

    async def _add(self, params: AgentCreateParams) -> None:
        self.show_agent((await self._session.call(AGENT_CREATE, params)).agent.id)

    async def _set_head(self, params: AgentSetHeadParams) -> None:
        await self._session.call(AGENT_SET_HEAD, params)

    async def _set_turns(self, params: ConversationChangeParams) -> None:
        await self._session.call(CONVERSATION_CHANGE, params)

    async def _remove(self, agent_id: str) -> None:
        await self._session.call(AGENT_DELETE, AgentIdParams(agent_id=agent_id))
