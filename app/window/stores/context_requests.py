"""What a person asks for of a model's context: to keep a message, to summarise, another text for a summary."""

from collections.abc import Coroutine
from uuid import uuid4

from PySide6.QtCore import QObject, Signal, SignalInstance

from app.protocol.context import ConversationSummariseParams, SummaryEditParams
from app.protocol.conversations import Conversation, ConversationChangeParams
from app.protocol.wire import CONVERSATION_CHANGE, CONVERSATION_EDIT_SUMMARY, CONVERSATION_SUMMARISE
from app.window.stores.agents import AgentStore
from app.window.stores.requests import Requests
from app.window.stores.session import Session
from app.window.stores.tasks import is_working

_AT_WORK = "The agent is at work. Wait until it is done, or stop it."
_NOTHING = "Nothing was said here yet."


class ContextRequests(QObject):
    """`kept_changed` says that other messages are kept. A refusal is told by `requests.failed`."""

    _kept_changed = Signal()

    def __init__(self, session: Session, agents: AgentStore, requests: Requests) -> None:
        super().__init__()
        self._session = session
        self._agents = agents
        self._requests = requests
        self._kept: frozenset[str] = frozenset()

    @property
    def kept_changed(self) -> SignalInstance:
        return self._kept_changed

    def put_conversation(self, conversation: Conversation) -> None:
        kept = frozenset(conversation.kept)
        if kept != self._kept:
            self._kept = kept
            self._kept_changed.emit()

    def is_kept(self, node_id: str) -> bool:
        return node_id in self._kept

    def keep(self, node_id: str) -> None:
        if self._requests.conversation_id is not None:
            self._change(ConversationChangeParams(conversation_id=self._requests.conversation_id, keep_node_id=node_id))

    def release(self, node_id: str) -> None:
        if self._requests.conversation_id is not None:
            self._change(
                ConversationChangeParams(conversation_id=self._requests.conversation_id, release_node_id=node_id)
            )

    def change_summary(self, node_id: str, text: str) -> None:
        params = SummaryEditParams(node_id=node_id, text=text)
        self._spawn(self._session.call(CONVERSATION_EDIT_SUMMARY, params))

    @property
    def locked(self) -> str:
        """Why nothing can be summarised now, in words; empty when it can."""
        if self._requests.conversation_id is None:
            return _NOTHING
        task = self._requests.task
        return _AT_WORK if task is not None and is_working(task) else ""

    def summarise(self) -> None:
        """Have the older part of the branch that is shown summarised."""
        conversation_id, agent = self._requests.conversation_id, self._agents.shown
        if self.locked or conversation_id is None or agent is None:
            self._requests.failed.emit(self.locked or _NOTHING)
            return
        params = ConversationSummariseParams(
            conversation_id=conversation_id, agent_id=agent.id, task_id=f"task_{uuid4().hex}"
        )
        self._requests.once_placed(
            lambda: self._spawn(self._session.call(CONVERSATION_SUMMARISE, params)), self._requests.failed.emit
        )

    def _change(self, params: ConversationChangeParams) -> None:
        self._spawn(self._session.call(CONVERSATION_CHANGE, params))

    def _spawn(self, work: Coroutine[None, None, object]) -> None:
        self._session.spawn(_done(work), self._requests.failed.emit)


async def _done(work: Coroutine[None, None, object]) -> None:
    """What comes of it comes as events."""
    await work
