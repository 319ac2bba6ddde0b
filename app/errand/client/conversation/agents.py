"""The agents of a conversation, and the selected one, whose branch is shown and receives messages."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from errand.client.conversation.rows import Speaker
from errand.protocol.agents import Agent, first_agent
from errand.protocol.conversations import Conversation, FormerAgent, Node, TurnTaking


@dataclass(frozen=True, slots=True)
class AgentListeners:
    """Functions that are called right after a change.

    `changed` when any of the agents changes, `selection_changed` when another one is selected.
    """

    changed: Callable[[], None]
    selection_changed: Callable[[], None]


class ConversationAgents:
    """The agents as events tell of them; `turns` is the turn order."""

    def __init__(self, listeners: AgentListeners) -> None:
        self._listeners = listeners
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
        """Return True if a text may go to another agent than the selected one."""
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
            self._listeners.selection_changed()
            self._listeners.changed()

    def put_conversation(self, conversation: Conversation) -> None:
        """Store the turn order and the former agents."""
        if (conversation.turn_taking, conversation.former) != (self.turns, self._former):
            self.turns, self._former = conversation.turn_taking, conversation.former
            self._listeners.changed()

    def put_all(self, agents: Iterable[Agent]) -> None:
        """Replace all agents; the selection is dropped if its agent no longer exists."""
        agents_by_id = {agent.id: agent for agent in agents}
        if self._chosen not in agents_by_id:
            self._chosen = None
        self._written.clear()
        if agents_by_id != self._agents:
            self._agents = agents_by_id
            self._listeners.changed()

    def put(self, agent: Agent) -> bool:
        """Store an agent; False for an older version than the known one."""
        before = self._agents.get(agent.id)
        if before is not None and agent.version < before.version:
            return False
        self._agents[agent.id] = agent
        self._written.pop(agent.id, None)
        if before != agent:
            self._listeners.changed()
        return True

    def drop(self, agent_id: str) -> None:
        """Remove a deleted agent; if it was selected, the first one is selected again."""
        if self._agents.pop(agent_id, None) is None:
            return
        if self._chosen == agent_id:
            self._chosen = None
            self._listeners.selection_changed()
        self._listeners.changed()
