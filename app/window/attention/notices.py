"""Which notices there are to be now: one for each ask and each end that the person does not have before them."""

from collections.abc import Callable
from datetime import UTC, datetime

from PySide6.QtCore import QObject, QTimer, Signal

from app.protocol.asks import Ask
from app.protocol.tasks import Task
from app.window.attention.notice import Notice, of_ask, of_ended, of_many
from app.window.stores.stores import Stores

_MOST_ENDS = 3
_MOST_ASKS = 10
_GATHER_MS = 150


class NoticeStore(QObject):
    """`wanted` gives all of them as a tuple whenever it is another one. What was there before it began is no news.

    `in_front` is the conversation before a person's eyes: "" while no window of ours has the keyboard.
    """

    wanted = Signal(object)
    opened = Signal(str)

    def __init__(self, stores: Stores, in_front: Callable[[], str], is_active: Callable[[], bool]) -> None:
        super().__init__()
        self._stores = stores
        self._in_front = in_front
        self._is_active = is_active
        self._since = datetime.now(UTC)
        self._last: tuple[Notice, ...] = ()
        self._ended: dict[str, Task] = {}
        self._burst: dict[str, Task] = {}
        self._told: set[str] = set()
        self._seen: set[str] = set()
        self._gathering = QTimer(self)
        self._gathering.setSingleShot(True)
        self._gathering.setInterval(_GATHER_MS)
        self._gathering.timeout.connect(self._on_gathered)
        stores.tasks.taskUpdate.connect(self._on_task_update)
        stores.asks.changed.connect(self._gathering.start)

    def close(self) -> None:
        """Nothing is told from now on: the window that is asked what is in front goes."""
        self._stores.tasks.taskUpdate.disconnect(self._on_task_update)
        self._stores.asks.changed.disconnect(self._gathering.start)
        self._gathering.stop()

    def look_again(self) -> None:
        """Another conversation, or another window, has come to the front."""
        if self._is_active():
            self._burst.clear()  # the inbox in the window tells them
        front = self._in_front()
        self._ended = {known: task for known, task in self._ended.items() if task.conversation_id != front}
        self._gathering.start()

    def act(self, key: str, button: str) -> None:
        """A button of a notice was pressed."""
        notice = next((notice for notice in self._last if notice.key == key), None)
        if notice is None:
            return
        ask = next((ask for ask in self._stores.asks.waiting() if ask.id == key), None)
        kind, _, number = button.partition(" ")
        if ask is not None and kind in ("allow", "deny"):
            self._stores.asks.answer(ask.id, allow=kind == "allow")
        elif ask is not None and kind == "choice":
            self._stores.asks.answer(ask.id, text=ask.choices[int(number)])
        else:
            self.opened.emit(notice.conversation_id)

    def _on_task_update(self, task: Task) -> None:
        if task.ended_at is None:
            self._forget_earlier(task)
            return
        is_news = task.ended_at > self._since and task.stop_reason != "manual_stop" and task.id not in self._told
        self._told.add(task.id)
        if is_news and task.conversation_id != self._in_front():
            self._ended[task.id] = task
            self._gathering.start()

    def _forget_earlier(self, begun: Task) -> None:
        """A conversation that works again has nothing to tell of its last end."""
        for known, task in tuple(self._ended.items()):
            if task.conversation_id == begun.conversation_id:
                del self._ended[known]
                self._gathering.start()

    def _on_gathered(self) -> None:
        if len(self._ended) > _MOST_ENDS or (self._burst and self._ended):
            self._burst |= self._ended
            self._ended.clear()
        asks = [of_ask(ask, self._title_of(ask)) for ask in self._news()[-_MOST_ASKS:]]
        ends = [of_ended(task, self._title(task.conversation_id, task.prompt)) for task in self._ended.values()]
        many = [of_many(tuple(self._burst.values()))] if self._burst else []
        wanted = (*asks, *ends, *many)
        if wanted != self._last:
            self._last = wanted
            self.wanted.emit(wanted)

    def _news(self) -> list[Ask]:
        """An ask that was looked at and left is told no second time."""
        front, waiting = self._in_front(), self._stores.asks.waiting()
        looked_at = {ask.id for ask in waiting if ask.conversation_id == front}
        self._seen = (self._seen | looked_at) & {ask.id for ask in waiting}
        return [ask for ask in waiting if ask.created_at > self._since and ask.id not in self._seen]

    def _title_of(self, ask: Ask) -> str:
        task = self._stores.tasks.get(ask.task_id)
        return self._title(ask.conversation_id, task.prompt if task else "")

    def _title(self, conversation_id: str, otherwise: str) -> str:
        known = self._stores.conversations.get(conversation_id)
        return known.title if known else otherwise
