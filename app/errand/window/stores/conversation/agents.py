"""The agents of a conversation as a store with Qt signals, and the commands that change them."""

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from errand.client.conversation.agents import AgentListeners, ConversationAgents
from errand.protocol.agents import (
    AGENT_CREATE,
    AGENT_DELETE,
    AGENT_SET_HEAD,
    AgentCreateParams,
    AgentIdParams,
    AgentSetHeadParams,
    Color,
)
from errand.protocol.conversations import CONVERSATION_CHANGE, ConversationChangeParams, TurnTaking
from errand.window.stores.session import EngineSession


@dataclass(frozen=True, slots=True)
class NewAgent:
    """An empty name or model means that of the personality."""

    personality_id: str
    name: str = ""
    model: str = ""
    color: Color = ""


class AgentStore(ConversationAgents, QObject):
    """Emits `changed` when any of them changes, `selection_changed` when another one is selected.

    Emits `failed` with a refusal.
    """

    changed = Signal()
    selection_changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        QObject.__init__(self)
        ConversationAgents.__init__(self, AgentListeners(self.changed.emit, self.selection_changed.emit))
        self._session = session

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
        self._session.send(AGENT_DELETE, AgentIdParams(agent_id=agent_id), self.failed.emit)

    def move_head(self, agent_id: str, node_id: str, *, to_leaf: bool = False) -> None:
        """Move an agent's head to this node, or to the end of the newest branch through it."""
        agent = self.get(agent_id)
        assert agent is not None, "only agents of the conversation are moved"
        params = AgentSetHeadParams(agent_id=agent_id, node_id=node_id, version=agent.version, to_leaf=to_leaf)
        self._session.send(AGENT_SET_HEAD, params, self.failed.emit)

    def continue_with(self, node_id: str) -> None:
        """Continue the conversation from the end of this branch, and show it, whichever agent wrote it."""
        agent = self.active
        if agent is not None:
            self.move_head(agent.id, node_id, to_leaf=True)
            self.show_agent(agent.id)

    def set_turns(self, conversation_id: str, turns: TurnTaking) -> None:
        """Change the turn order."""
        params = ConversationChangeParams(conversation_id=conversation_id, turn_taking=turns)
        self._session.send(CONVERSATION_CHANGE, params, self.failed.emit)

    async def _add(self, params: AgentCreateParams) -> None:
        self.show_agent((await self._session.call(AGENT_CREATE, params)).agent.id)
