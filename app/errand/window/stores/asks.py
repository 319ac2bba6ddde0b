"""Open asks of all conversations, and the valid grants (remembered permissions)."""

from collections.abc import Iterable

import msgspec
from PySide6.QtCore import QObject, Signal

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.asks import asked_text
from errand.protocol.asks import (
    ASK_ANSWER,
    GRANT_REVOKE,
    Ask,
    AskAnswerParams,
    Grant,
    GrantRevokeParams,
)
from errand.protocol.events import ConversationDeleted, GrantUpdate
from errand.text.translation import tr
from errand.window.stores.session import EngineSession


class AskStore(QObject):
    """Emits `changed` when an ask is raised or settled, and `failed` with a text when an answer is refused."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._waiting: dict[str, Ask] = {}

    def waiting(self) -> tuple[Ask, ...]:
        """Open asks, oldest first."""
        return tuple(sorted(self._waiting.values(), key=lambda ask: (ask.created_at, ask.id)))

    def of_task(self, task_id: str) -> tuple[Ask, ...]:
        return tuple(ask for ask in self.waiting() if ask.task_id == task_id)

    def of_conversation(self, conversation_id: str) -> tuple[Ask, ...]:
        return tuple(ask for ask in self.waiting() if ask.conversation_id == conversation_id)

    def equal_to(self, ask: Ask) -> tuple[Ask, ...]:
        """Open asks that are equal to this approval, oldest first, including `ask` itself."""
        return tuple(other for other in self.waiting() if other.id == ask.id or is_equal(other, ask))

    def groups(self) -> tuple[tuple[Ask, ...], ...]:
        """Open asks in groups of equal ones, sorted by the oldest ask of each group."""
        groups: dict[object, list[Ask]] = {}
        for ask in self.waiting():
            groups.setdefault(_ask_content(ask), []).append(ask)
        return tuple(map(tuple, groups.values()))

    def answer_all(self, params: AskAnswerParams) -> None:
        """Settle an ask, and all asks equal to it, in the same way."""
        ask = self._waiting.get(params.ask_id)
        for other in (params.ask_id,) if ask is None else tuple(equal.id for equal in self.equal_to(ask)):
            self.answer(msgspec.structs.replace(params, ask_id=other))

    def answer(self, params: AskAnswerParams) -> None:
        """Settle an ask. `AskAnswerParams` describes what each kind takes. An approval is bound to what it showed."""
        ask = self._waiting.get(params.ask_id)
        if ask is not None and ask.approval is not None:
            params = msgspec.structs.replace(params, basis=ask.approval.basis)
        self._session.spawn(self.send_answer(params), self.failed.emit)

    async def send_answer(self, params: AskAnswerParams) -> None:
        """Settle an ask and wait for the engine. Emits `failed` if another answer came first."""
        result = await self._session.call(ASK_ANSWER, params)
        if not result.won:
            if result.ask.answered_by:
                reason = tr("Already answered by {who}. Your answer was not used.").format(who=result.ask.answered_by)
            else:
                reason = tr("No longer needed. Your answer was not used.")
            self.failed.emit(reason)

    def put(self, ask: Ask) -> None:
        """Store an ask received from the engine."""
        before = self._waiting.get(ask.id)
        if ask.status == "waiting":
            self._waiting[ask.id] = ask
        else:
            self._waiting.pop(ask.id, None)
        if self._waiting.get(ask.id) != before:
            self.changed.emit()

    def put_snapshot(self, asks: Iterable[Ask]) -> None:
        """Replace all open asks."""
        waiting = {ask.id: ask for ask in asks}
        if waiting != self._waiting:
            self._waiting = waiting
            self.changed.emit()


def is_equal(ask: Ask, other: Ask) -> bool:
    """Return True for approvals with equal command, folder, paths, preview and reason."""
    return _ask_content(ask) == _ask_content(other)


def _ask_content(ask: Ask) -> object:
    """Return the grouping key.

    A question or a limit is only equal to itself, since an equal text may have another meaning.
    """
    return ask.id if ask.approval is None else msgspec.structs.replace(ask.approval, call_id="")


def ask_summary(ask: Ask) -> str:
    asked = ask.approval or ask.unknown
    return asked_text(ask) if asked is None else escape_hidden_line(asked.command or asked.text)


class GrantStore(QObject):
    """Emits `changed` after each event, and `failed` with a text when a call is refused."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._grants: dict[str, Grant] = {}

    @property
    def all(self) -> tuple[Grant, ...]:
        return tuple(sorted(self._grants.values(), key=lambda grant: (grant.created_at, grant.id), reverse=True))

    def revoke(self, grant_id: str) -> None:
        self._session.send(GRANT_REVOKE, GrantRevokeParams(grant_id=grant_id), self.failed.emit)

    def put_snapshot(self, grants: Iterable[Grant]) -> None:
        """Replace all valid grants."""
        self._grants = {grant.id: grant for grant in grants}
        self.changed.emit()

    def apply(self, event: GrantUpdate | ConversationDeleted) -> None:
        """Apply an event. Deleting a conversation removes its grants."""
        match event:
            case GrantUpdate(grant=grant) if grant.revoked_at is None:
                self._grants[grant.id] = grant
            case GrantUpdate(grant=grant):
                self._grants.pop(grant.id, None)
            case ConversationDeleted(conversation_id=conversation_id):
                self._grants = {
                    name: grant for name, grant in self._grants.items() if grant.scope_id != conversation_id
                }
        self.changed.emit()
