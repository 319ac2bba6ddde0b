"""What waits for the person and what runs, of all conversations, on top of the sidebar."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.protocol.asks import Ask
from app.protocol.tasks import Task
from app.window.stores.stores import Stores
from app.window.theme.theme import Theme
from app.window.unread import UnreadStore
from app.window.views.activity import activity_of
from app.window.views.inbox_row import InboxRow
from app.window.widgets.pulse import Pulse
from app.window.widgets.state_dot import State, state_of
from app.window.widgets.text_label import TextLabel

_MOST_ROWS = 6


@dataclass(frozen=True, slots=True)
class _Entry:
    key: str
    conversation_id: str
    state: State
    title: str
    detail: str
    task_id: str = ""
    stopping: bool = False


class InboxView(QWidget):
    """Rows are kept while their entry lives, so that the focus stays where it is when another one comes."""

    opened = Signal(str)
    stop_asked = Signal(str)

    def __init__(self, stores: Stores, unread: UnreadStore, theme: Theme, pulse: Pulse) -> None:
        super().__init__()
        self._stores = stores
        self._unread = unread
        self._waiting = _Section("Waiting for you", self._make_row(theme, pulse, can_stop=False), theme)
        self._running = _Section("Running", self._make_row(theme, pulse, can_stop=True), theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addWidget(self._waiting)
        column.addWidget(self._running)
        stores.asks.changed.connect(self._on_changed)
        stores.tasks.taskUpdate.connect(self._on_changed)
        stores.conversations.reset.connect(self._on_changed)
        stores.conversations.changed.connect(self._on_changed)
        unread.changed.connect(self._on_changed)
        self._on_changed()

    @property
    def lines(self) -> tuple[str, ...]:
        """What stands there, for people who cannot see it and for tests."""
        return (*self._waiting.lines, *self._running.lines)

    def _on_changed(self) -> None:
        waiting = [self._of_ask(ask) for ask in self._stores.asks.waiting()]
        waiting += [self._of_finished(task) for task in self._unread.finished()]
        asking = {entry.task_id for entry in waiting}
        running = [self._of_running(task) for task in self._stores.tasks.running() if task.id not in asking]
        self._waiting.show_entries(waiting)
        self._running.show_entries(running)
        self._lay_out_now()

    def _lay_out_now(self) -> None:
        """Qt would hand a new height up one level for each turn of the loop: a gap stood below for some frames."""
        for place in (self._waiting, self._running, self, self.parentWidget()):
            layout = place.layout() if place is not None else None  # pyright: ignore[reportUnnecessaryComparison] -- no parent while it is made
            if layout is not None:
                layout.activate()

    def _of_ask(self, ask: Ask) -> _Entry:
        title = self._title(ask.conversation_id, ask.text)
        return _Entry(ask.id, ask.conversation_id, "waiting", title, ask.text, ask.task_id)

    def _of_finished(self, task: Task) -> _Entry:
        detail = task.summary or task.error or activity_of(task)
        title = self._title(task.conversation_id, task.prompt)
        return _Entry(task.id, task.conversation_id, state_of(task), title, detail, task.id)

    def _of_running(self, task: Task) -> _Entry:
        title = self._title(task.conversation_id, task.prompt)
        detail = activity_of(task)
        return _Entry(task.id, task.conversation_id, state_of(task), title, detail, task.id, task.stopping)

    def _title(self, conversation_id: str, otherwise: str) -> str:
        known = self._stores.conversations.get(conversation_id)
        return known.title if known else otherwise

    def _make_row(self, theme: Theme, pulse: Pulse, *, can_stop: bool) -> "Callable[[_Entry], InboxRow]":
        def make(entry: _Entry) -> InboxRow:
            row = InboxRow(theme, pulse, can_stop=can_stop)
            row.opened.connect(lambda: self.opened.emit(entry.conversation_id))
            row.stopped.connect(lambda: self.stop_asked.emit(entry.task_id))
            return row

        return make


class _Section(QWidget):
    """A heading and its rows; nothing at all while there are none."""

    def __init__(self, title: str, make_row: Callable[[_Entry], InboxRow], theme: Theme) -> None:
        super().__init__()
        self._title = title
        self._make_row = make_row
        self._rows: dict[str, InboxRow] = {}
        self._heading = TextLabel(theme, title, size=theme.tokens.size_small, tone="muted", bold=True)
        tokens = theme.tokens
        self._heading.setContentsMargins(tokens.space_close, tokens.space_close, 0, tokens.space_tight)
        self._more = TextLabel(theme, size=tokens.size_small, tone="muted")
        self._more.setContentsMargins(tokens.space_close, 0, 0, 0)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self._heading)
        self._column.addWidget(self._more)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(row.text for row in self._rows.values())

    def show_entries(self, entries: list[_Entry]) -> None:
        shown = entries[:_MOST_ROWS]
        for key in self._rows.keys() - {entry.key for entry in shown}:
            row = self._rows.pop(key)
            self._column.removeWidget(row)
            row.hide()  # what pulses in it stops
            row.deleteLater()
        for place, entry in enumerate(shown, start=1):
            row = self._rows.get(entry.key)
            if row is None:
                row = self._rows[entry.key] = self._make_row(entry)
            if self._column.indexOf(row) != place:
                self._column.insertWidget(place, row)
            row.show_entry(entry.state, entry.title, entry.detail, stopping=entry.stopping)
        self._heading.setText(f"{self._title} ({len(entries)})")
        self._more.setText(f"and {len(entries) - len(shown)} more")
        self._more.setVisible(len(entries) > len(shown))
        self.setVisible(bool(entries))
