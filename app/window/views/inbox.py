"""What waits, was interrupted, has finished and runs, of all conversations, on top of the sidebar."""

from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.client.characters import plain
from app.protocol.asks import Ask
from app.protocol.tasks import Task
from app.window.blocks.one_line import markdown_line
from app.window.stores.stores import Stores
from app.window.theme.theme import Theme
from app.window.unread import UnreadStore
from app.window.views.activity import activity_of
from app.window.views.asked import asked_line
from app.window.views.inbox_row import InboxEntry, InboxRow
from app.window.views.inbox_section import InboxSection
from app.window.widgets.pulse import Pulse
from app.window.widgets.state_dot import state_of

_LONGEST_DETAIL = 200  # characters
_PAUSE_MS = 33
"""Two frames: fifty tasks at work change a thousand times a second."""


class InboxView(QWidget):
    """Up and Down go between the entries, Enter goes there; an ask is shown and settled in its place.

    `resized` when it has become higher or lower, `reached` with the entry that has the keyboard now.
    """

    opened = Signal(str)
    stop_asked = Signal(str)
    resume_asked = Signal(str)
    resized = Signal()
    reached = Signal(QWidget)

    def __init__(self, stores: Stores, unread: UnreadStore, theme: Theme, pulse: Pulse) -> None:
        super().__init__()
        self._stores = stores
        self._unread = unread
        self._theme = theme
        self._pulse = pulse
        self._waiting = InboxSection("Waiting for you", self._make_row, theme)
        self._interrupted = InboxSection("Interrupted", self._make_row, theme, "Resume all")
        self._finished = InboxSection("Finished", self._make_row, theme, "Clear")
        self._running = InboxSection("Running", self._make_row, theme)
        self._sections = (self._waiting, self._interrupted, self._finished, self._running)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self._show)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        for section in self._sections:
            column.addWidget(section)
            section.resized.connect(self._lay_out_now)
        self._connect()
        self._show()

    @property
    def rows(self) -> tuple[InboxRow, ...]:
        """From above."""
        return tuple(row for section in self._sections for row in section.rows)

    @property
    def lines(self) -> tuple[str, ...]:
        """What stands there, for people who cannot see it and for tests."""
        return tuple(row.text for row in self.rows)

    def _connect(self) -> None:
        stores = self._stores
        for signal in (
            stores.asks.changed,
            stores.tasks.taskUpdate,
            stores.conversations.reset,
            stores.conversations.changed,
            self._unread.changed,
        ):
            signal.connect(self._on_changed)
        self._interrupted.clear_asked.connect(self._on_resume)
        self._finished.clear_asked.connect(self._unread.dismiss_all)

    def _on_changed(self) -> None:
        if not self._pause.isActive():
            self._pause.start()

    def _show(self) -> None:
        groups = self._stores.asks.groups()
        asking = {ask.task_id for group in groups for ask in group}
        tasks = self._stores.tasks
        running, interrupted = (
            [self._of_running(task) for task in some if task.id not in asking]
            for some in (tasks.running(), tasks.interrupted())
        )
        self._waiting.show_entries([self._of_asks(group) for group in groups])
        self._finished.show_entries([self._of_finished(task) for task in self._unread.finished()])
        self._running.show_entries(running)
        self._interrupted.show_entries(interrupted)
        self._lay_out_now()

    def _lay_out_now(self) -> None:
        """Qt would hand a new height up one level for each turn of the loop: a gap stood below for some frames."""
        for place in (*self.rows, *self._sections, self):
            layout = place.layout()
            if layout is not None:
                layout.activate()
        self.resized.emit()

    def _of_asks(self, asks: tuple[Ask, ...]) -> InboxEntry:
        first = asks[0]
        text = plain(first.text)
        title = self._title(first.conversation_id, text) if len(asks) == 1 else f"{len(asks)} × {text}"
        return InboxEntry(first.id, first.conversation_id, "waiting", title, asked_line(first), first.task_id, asks)

    def _of_finished(self, task: Task) -> InboxEntry:
        said = markdown_line(task.summary, _LONGEST_DETAIL) if task.summary else ""
        detail = said or task.error or activity_of(task)
        title = self._title(task.conversation_id, task.prompt)
        button = ("x", "Dismiss")
        return InboxEntry(task.id, task.conversation_id, state_of(task), title, detail, task.id, button=button)

    def _of_running(self, task: Task) -> InboxEntry:
        title, detail = self._title(task.conversation_id, task.prompt), activity_of(task)
        button, enabled = ("circle-stop", "Stop"), not task.stopping
        return InboxEntry(
            task.id, task.conversation_id, state_of(task), title, detail, task.id, button=button, enabled=enabled
        )

    def _title(self, conversation_id: str, otherwise: str) -> str:
        known = self._stores.conversations.get(conversation_id)
        return known.title if known else otherwise

    def _make_row(self, entry: InboxEntry) -> InboxRow:
        row = InboxRow(entry, self._theme, self._pulse)
        row.opened.connect(partial(self._on_opened, row))
        row.ended.connect(partial(self._on_ended, row))
        row.decided.connect(partial(self._on_decided, row))
        row.answered.connect(partial(self._on_answered, row))
        row.unfolded.connect(partial(self._on_unfolded, row))
        row.moved.connect(partial(self._on_moved, row))
        return row

    def _on_opened(self, row: InboxRow) -> None:
        self.opened.emit(row.entry.conversation_id)

    def _on_ended(self, row: InboxRow) -> None:
        """A task at work is stopped, one that has ended is put away."""
        task = self._stores.tasks.get(row.entry.task_id)
        if task is None or task.ended_at is not None:
            self._unread.dismiss(row.entry.task_id)
        else:
            self.stop_asked.emit(row.entry.task_id)

    def _on_resume(self) -> None:
        """All of them: one alone is resumed in its conversation."""
        for task in self._stores.tasks.interrupted():
            self.resume_asked.emit(task.id)

    def _on_decided(self, row: InboxRow, allow: bool) -> None:
        self._stores.asks.answer_all(row.entry.key, allow=allow)

    def _on_answered(self, row: InboxRow, text: str) -> None:
        self._stores.asks.answer(row.entry.key, text=text)

    def _on_moved(self, row: InboxRow, by: int) -> None:
        rows = self.rows
        place = rows.index(row) + by if row in rows else 0
        if 0 <= place < len(rows):
            rows[place].setFocus(Qt.FocusReason.TabFocusReason)
            self.reached.emit(rows[place])

    def _on_unfolded(self, row: InboxRow) -> None:
        """One at a time: the others close."""
        for other in self.rows:
            if other is not row:
                other.fold()
        self._lay_out_now()
        self.reached.emit(row)
