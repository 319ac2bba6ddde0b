"""All stores of a window, and the one `match` that passes each event of the engine to the stores concerned."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from errand.protocol.asks import Ask
from errand.protocol.conversations import Conversation, Node
from errand.protocol.engine import HealthUpdate, Snapshot
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
    PromptReading,
    TaskMessage,
    TaskPlan,
    TaskUpdate,
)
from errand.protocol.tasks.task import Task
from errand.window.stores.asks import AskStore, GrantStore
from errand.window.stores.catalog import PersonalityStore, SandboxStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.conversation_list import ConversationListStore
from errand.window.stores.local_models import LocalModelStore
from errand.window.stores.memory.embedding_model import EmbeddingModelStore
from errand.window.stores.memory.facts import FactStore
from errand.window.stores.session import EngineSession
from errand.window.stores.tasks import TaskStore
from errand.window.stores.tools import ToolStore

if TYPE_CHECKING:
    from errand.client.connection import Connection


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Stores:
    """Made by `make_stores`. The caller of `open` must `close` the conversation."""

    session: EngineSession
    tasks: TaskStore
    asks: AskStore
    conversations: ConversationListStore
    personalities: PersonalityStore
    grants: GrantStore
    sandbox: SandboxStore
    tools: ToolStore
    facts: FactStore
    local_models: LocalModelStore
    embedding_model: EmbeddingModelStore
    _opened: list[ConversationStore] = field(default_factory=list[ConversationStore])

    def open(self, conversation_id: str | None, agent_id: str | None = None) -> ConversationStore:
        """Open a conversation, or a new one for None. Its content is loaded later: see `ConversationStore.loaded`.

        `agent_id` selects an agent; an unknown id is ignored.
        """
        store = ConversationStore(self.session, self.tasks, self.asks, conversation_id)
        if agent_id is not None:
            store.agents.show_agent(agent_id)
        conversation = self.conversations.get(conversation_id) if conversation_id is not None else None
        if conversation is not None:
            store.put_conversation(conversation)
        self._opened.append(store)
        if self.session.is_connected:  # otherwise they are loaded after connecting
            store.load()
        return store

    def close(self, store: ConversationStore) -> None:
        """Close an opened conversation; its task keeps running."""
        self._opened.remove(store)
        store.close()
        if store.conversation_id is not None and not self._of(store.conversation_id):
            self.session.spawn(self.session.unfollow(store.conversation_id))

    def apply(self, event: Event) -> None:
        """Pass an event to the stores concerned."""
        match event:
            case ConversationUpdate(conversation=conversation):
                self._put_conversation(conversation)
            case TaskUpdate(task=task):
                self._put_task(task)
            case AskUpdate(ask=ask):
                self._put_ask(ask)
            case TaskMessage(node=node):
                self._put_node(node)
            case AgentUpdate() | AgentDeleted():
                self._put_agent(event)
            case ConversationDeleted(conversation_id=conversation_id):
                self.conversations.drop(conversation_id)
                self.grants.apply(event)
            case PersonalityUpdate() | PersonalityDeleted() | McpUpdate() | LocalModelUpdate():
                self._apply_offer(event)
            case GrantUpdate():
                self.grants.apply(event)
            case EmbeddingModelUpdate():
                self.embedding_model.apply(event)
            case FactUpdate() | FactRemoved():
                self.facts.apply(event)
            case BackgroundUpdate(conversation_id=conversation_id, commands=commands):
                for store in self._of(conversation_id):
                    store.background.put(commands)
            case ChangeUpdate() | TaskPlan():
                pass  # what shows changes asks for them; the transcript shows the effects of a plan
            case _:
                assert_never(event)

    def _apply_offer(self, event: PersonalityUpdate | PersonalityDeleted | McpUpdate | LocalModelUpdate) -> None:
        """Pass on what changes the tools, personalities or models that are offered."""
        match event:
            case LocalModelUpdate():
                self.local_models.apply(event)
            case McpUpdate():
                self.tools.on_event()
            case PersonalityUpdate() | PersonalityDeleted():
                self.personalities.apply(event)
                self.tools.on_event()

    def apply_delta(self, delta: Delta) -> None:
        if isinstance(delta, PromptReading):
            self.tasks.show_reading(delta)
            return
        for store in self._opened:
            if store.conversation_id == delta.conversation_id:
                store.put_delta(delta)

    def apply_health(self, update: HealthUpdate) -> None:
        """Update running tasks: while nothing can be saved they are paused without an event."""
        for task in update.tasks:
            self._put_task(task)

    def apply_snapshot(self, snapshot: Snapshot) -> None:
        self.tasks.put_snapshot(snapshot.tasks)
        self.asks.put_snapshot(snapshot.asks)
        self.grants.put_snapshot(snapshot.grants)
        self.facts.load()
        self.conversations.load()

    def follow_again(self) -> None:
        """Reload every opened conversation, since events were lost."""
        for store in self._opened:
            store.load()

    def _put_conversation(self, conversation: Conversation) -> None:
        self.conversations.put(conversation)
        for store in self._of(conversation.id):
            store.put_conversation(conversation)

    def _put_agent(self, event: AgentUpdate | AgentDeleted) -> None:
        match event:
            case AgentUpdate(agent=agent):
                for store in self._of(agent.conversation_id):
                    store.put_agent(agent)
            case AgentDeleted(agent_id=agent_id, conversation_id=conversation_id):
                for store in self._of(conversation_id):
                    store.agents.drop(agent_id)

    def _put_task(self, task: Task) -> None:
        self.tasks.put(task)
        for store in self._of(task.conversation_id):
            store.put_task(task)

    def _put_node(self, node: Node) -> None:
        for store in self._of(node.conversation_id):
            store.put_node(node)

    def _put_ask(self, ask: Ask) -> None:
        self.asks.put(ask)
        for store in self._of(ask.conversation_id):
            store.put_ask(ask)

    def _of(self, conversation_id: str | None) -> list[ConversationStore]:
        if conversation_id is None:
            return []
        return [store for store in self._opened if store.conversation_id == conversation_id]


def make_stores(connect: Callable[[], "Awaitable[Connection]"]) -> Stores:
    """Return the stores of one window. `connect` finds or starts an engine; `session.start()` connects."""
    session = EngineSession(connect)
    stores = Stores(
        session,
        TaskStore(),
        AskStore(session),
        ConversationListStore(session),
        PersonalityStore(session),
        GrantStore(session),
        SandboxStore(session),
        ToolStore(session),
        FactStore(session),
        LocalModelStore(session),
        EmbeddingModelStore(session),
    )
    session.event_received.connect(stores.apply)
    session.delta_received.connect(stores.apply_delta)
    session.health_changed.connect(stores.apply_health)
    session.snapshot.connect(stores.apply_snapshot)
    session.resync.connect(stores.follow_again)
    return stores
