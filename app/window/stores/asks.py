"""What waits for a person, of all conversations. Settled asks stay in their conversation only."""

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from app.protocol.asks import Ask, AskAnswerParams, Remember
from app.protocol.wire import ASK_ANSWER
from app.window.stores.session import Session


class AskStore(QObject):
    """`changed` says that an ask came or was settled; `failed` has the words for an answer that was not taken."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._waiting: dict[str, Ask] = {}

    def waiting(self) -> tuple[Ask, ...]:
        """Oldest first."""
        return tuple(sorted(self._waiting.values(), key=lambda ask: (ask.created_at, ask.id)))

    def of_task(self, task_id: str) -> tuple[Ask, ...]:
        return tuple(ask for ask in self.waiting() if ask.task_id == task_id)

    def of_conversation(self, conversation_id: str) -> tuple[Ask, ...]:
        return tuple(ask for ask in self.waiting() if ask.conversation_id == conversation_id)

    def answer(self, ask_id: str, *, text: str = "", allow: bool | None = None, remember: Remember = "once") -> None:
        """Settle an ask: see `AskAnswerParams` for what each kind takes."""
        params = AskAnswerParams(ask_id=ask_id, text=text, allow=allow, remember=remember)
        self._session.spawn(self.settle(params), self.failed.emit)

    async def settle(self, params: AskAnswerParams) -> None:
        """The same as a call. An answer that came too late is told by `failed`."""
        result = await self._session.call(ASK_ANSWER, params)
        if not result.won:
            by = f"by {result.ask.answered_by}" if result.ask.answered_by else "or is no longer needed"
            self.failed.emit(f"This was settled already {by}. Your answer was not used.")

    def put(self, ask: Ask) -> None:
        """Take a state that the engine sent."""
        before = self._waiting.get(ask.id)
        if ask.status == "waiting":
            self._waiting[ask.id] = ask
        else:
            self._waiting.pop(ask.id, None)
        if self._waiting.get(ask.id) != before:
            self.changed.emit()

    def put_snapshot(self, asks: Iterable[Ask]) -> None:
        """Take all that wait."""
        waiting = {ask.id: ask for ask in asks}
        if waiting != self._waiting:
            self._waiting = waiting
            self.changed.emit()
