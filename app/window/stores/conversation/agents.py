"""The agents of the conversation, and the one that is looked at: its branch is shown and written to."""

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.protocol.agents import (
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
from app.protocol.conversations import (
    CONVERSATION_CHANGE,
    Conversation,
    ConversationChangeParams,
    FormerAgent,
    TurnTaking,
)
from app.window.rows.row import Speaker
from app.window.stores.session import EngineSession


@dataclass(frozen=True, slots=True)
class NewAgent:
    """An empty name is the personality's; an empty model too."""

    personality_id: str
    name: str = ""
    model: str = ""
    color: Color = ""


class AgentStore(QObject):
    """`changed` at every news of them, `turned` when another one is looked at; `failed` has the words for a refusal.

    `turns` says how they take turns.
    """

    changed = Signal()
    turned = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._known: dict[str, Agent] = {}
        self._chosen: str | None = None
        self._former: tuple[FormerAgent, ...] = ()
        self.turns = TurnTaking()

    @property
    def all(self) -> tuple[Agent, ...]:
        """Oldest first."""
        return tuple(sorted(self._known.values(), key=lambda agent: (agent.created_at, agent.id)))

    @property
    def is_several(self) -> bool:
        return len(self._known) > 1

    @property
    def shown(self) -> Agent | None:
        """Who is looked at: whom a person chose, else the first; None until the engine has told of any."""
        chosen = self._known.get(self._chosen or "")
        return chosen or first_agent(self.all)

    @property
    def active(self) -> Agent | None:
        """Who takes turns in the place of the one that is looked at: of one beside another that other one."""
        shown = self.shown
        if shown is None or shown.beside is None:
            return shown
        return self._known.get(shown.beside) or first_agent(self.all)

    @property
    def chosen_id(self) -> str | None:
        """Whom a person chose; None where they left it to the conversation."""
        return self._chosen

    @property
    def speakers(self) -> dict[str, Speaker]:
        """How the transcript names them and those who left, by id; of one alone there is nothing to be told."""
        former = {agent.id: Speaker(agent.name, agent.color) for agent in self._former}
        here = {agent.id: Speaker(agent.name, agent.color, agent.model) for agent in self._known.values()}
        every = former | here
        return every if len(every) > 1 else {}

    def get(self, agent_id: str) -> Agent | None:
        return self._known.get(agent_id)

    @property
    def is_in_round(self) -> bool:
        """Whether who is looked at stands with the first one, and the turns say who speaks there."""
        shown, first = self.shown, first_agent(self.all)
        together = shown is not None and first is not None and shown.head_id == first.head_id
        return together and self.turns.rule != "addressed"

    def named_in(self, text: str) -> frozenset[str]:
        """The ids of those whom a text names with @; of "@Coder 2" also Coder: the engine tells them apart."""
        lowered = text.casefold()
        return frozenset(agent.id for agent in self._known.values() if f"@{agent.name.casefold()}" in lowered)

    def is_for_another(self, text: str, spoke_last: str | None) -> bool:
        """Whether a text may go to another one of several than the one that is looked at."""
        shown, named = self.shown, self.named_in(text)
        if shown is None or sum(agent.beside is None for agent in self._known.values()) < 2:
            return False
        if named:
            return named != frozenset({shown.id})
        if self.is_in_round:
            return self.turns.rule != "moderator" or self.turns.moderator_id != shown.id
        return (self._chosen or spoke_last or shown.id) != shown.id

    def show_agent(self, agent_id: str) -> None:
        """Show this one's branch from now on, and speak to it."""
        before = self.shown
        self._chosen = agent_id
        if self.shown != before:
            self.turned.emit()
            self.changed.emit()

    def add(self, conversation_id: str, new: NewAgent) -> None:
        """Have one more take part, from where the first one stands, and look at it."""
        params = AgentCreateParams(
            conversation_id=conversation_id,
            personality_id=new.personality_id,
            name=new.name or None,
            model=new.model,
            color=new.color,
        )
        self._session.spawn(self._add(params), self.failed.emit)

    def remove(self, agent_id: str) -> None:
        """It takes part no longer; what it wrote stays."""
        self._session.spawn(self._remove(agent_id), self.failed.emit)

    def move_head(self, agent_id: str, node_id: str, *, to_leaf: bool = False) -> None:
        """Have one go on from this node, or from the end of the newest branch through it."""
        version = self._known[agent_id].version
        params = AgentSetHeadParams(agent_id=agent_id, node_id=node_id, version=version, to_leaf=to_leaf)
        self._session.spawn(self._bring(params), self.failed.emit)

    def continue_with(self, node_id: str) -> None:
        """Have the conversation go on from the end of this branch, and show it, whoever wrote it."""
        agent = self.active
        if agent is not None:
            self.move_head(agent.id, node_id, to_leaf=True)
            self.show_agent(agent.id)

    def take_turns(self, conversation_id: str, turns: TurnTaking) -> None:
        """Have them speak by another rule from now on."""
        params = ConversationChangeParams(conversation_id=conversation_id, turn_taking=turns)
        self._session.spawn(self._take_turns(params), self.failed.emit)

    def put_conversation(self, conversation: Conversation) -> None:
        """Take the rule that the engine told, and who took part before."""
        if (conversation.turn_taking, conversation.former) != (self.turns, self._former):
            self.turns, self._former = conversation.turn_taking, conversation.former
            self.changed.emit()

    def take(self, agents: Iterable[Agent]) -> None:
        """All there are, as the engine told at one moment; of one who is gone no choice is left."""
        known = {agent.id: agent for agent in agents}
        if self._chosen not in known:
            self._chosen = None
        if known != self._known:
            self._known = known
            self.changed.emit()

    def put(self, agent: Agent) -> bool:
        """Take one as it is now; False for news that is older than what is known."""
        before = self._known.get(agent.id)
        if before is not None and agent.version < before.version:
            return False
        self._known[agent.id] = agent
        if before != agent:
            self.changed.emit()
        return True

    def drop(self, agent_id: str) -> None:
        """One is gone; who looked at it looks at the first again."""
        if self._known.pop(agent_id, None) is None:
            return
        if self._chosen == agent_id:
            self._chosen = None
            self.turned.emit()
        self.changed.emit()

    async def _add(self, params: AgentCreateParams) -> None:
        self.show_agent((await self._session.call(AGENT_CREATE, params)).agent.id)

    async def _bring(self, params: AgentSetHeadParams) -> None:
        await self._session.call(AGENT_SET_HEAD, params)

    async def _take_turns(self, params: ConversationChangeParams) -> None:
        await self._session.call(CONVERSATION_CHANGE, params)

    async def _remove(self, agent_id: str) -> None:
        await self._session.call(AGENT_DELETE, AgentIdParams(agent_id=agent_id))
