"""The inbox: asks, interrupted, finished and running tasks of all conversations, in sections."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from errand.client.safe_text import plain
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.tasks.task import Task
from errand.text.translation import tr, trn
from errand.window.stores.asks import ask_summary
from errand.window.stores.stores import Stores
from errand.window.stores.tasks import UnreadStore, task_activity
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.sidebar.inbox_row import InboxEntry, InboxRowView
from errand.window.widgets.labels import TextLabel, markdown_line
from errand.window.widgets.pulse import PulseTimer
from errand.window.widgets.status_dot import dot_state

_MAX_ROWS = 6

_MAX_DETAIL = 200  # characters
_THROTTLE_MS = 33
"""Two frames: fifty running tasks change a thousand times a second."""


class InboxSectionView(QWidget):
    """Hidden while it has no entries. The button `clear` in its heading emits `clear_requested` for all entries."""

    clear_requested = Signal()
    resized = Signal()

    def __init__(
        self, title: str, make_row: Callable[[InboxEntry], InboxRowView], theme: Theme, clear: str = ""
    ) -> None:
        super().__init__()
        self._title = title
        self._make_row = make_row
        self._shows_all = False
        self._entries: list[InboxEntry] = []
        self._rows: dict[str, InboxRowView] = {}
        tokens = theme.tokens
        self._heading = TextLabel(theme, title, size=tokens.size_small, tone="muted", bold=True)
        self._more = push_button("", "quiet")
        self._more.clicked.connect(self._on_more)
        top = QHBoxLayout()
        around = 0 if clear else tokens.space_tight  # a button is higher than the text alone
        top.setContentsMargins(tokens.space_close, 2 * around, 0, around)
        top.addWidget(self._heading, 1)
        if clear:
            button = push_button(clear, "quiet")
            button.setAccessibleName(f"{clear}: {title}")
            button.clicked.connect(self.clear_requested)
            top.addWidget(button)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addLayout(top)
        self._column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        self._show()

    @property
    def rows(self) -> tuple[InboxRowView, ...]:
        """The visible rows, from the top."""
        visible_entries = self._entries if self._shows_all else self._entries[:_MAX_ROWS]
        return tuple(self._rows[entry.key] for entry in visible_entries)

    def set_title(self, title: str) -> None:
        self._title = title
        self._show()

    def show_entries(self, entries: list[InboxEntry]) -> None:
        """Reuses the rows of existing entries, so that the focus stays when an entry is added."""
        if entries == self._entries:
            return
        self._entries = entries
        self._show()

    def _show(self) -> None:
        visible_entries = self._entries if self._shows_all else self._entries[:_MAX_ROWS]
        for key in self._rows.keys() - {entry.key for entry in visible_entries}:
            row = self._rows.pop(key)
            self._column.removeWidget(row)
            row.hide()  # stops its pulse
            row.deleteLater()
        for number, entry in enumerate(visible_entries, start=1):
            row = self._rows.get(entry.key)
            if row is None:
                row = self._rows[entry.key] = self._make_row(entry)
            if self._column.indexOf(row) != number:
                self._column.insertWidget(number, row)
                row.show()  # the layout would only show it in the next iteration of the event loop
            if row.entry != entry:
                row.show_entry(entry)
        hidden = len(self._entries) - len(visible_entries)
        self._heading.setText(f"{self._title} ({len(self._entries)})")
        self._more.setText(trn("Show {n} more", "Show {n} more", hidden) if hidden else tr("Show fewer"))
        self._more.setAccessibleName(f"{self._more.text()}: {self._title}")
        self._more.setVisible(len(self._entries) > _MAX_ROWS)
        self.setVisible(bool(self._entries))

    def _on_more(self) -> None:
        self._shows_all = not self._shows_all
        self._show()
        self.resized.emit()


class InboxView(QWidget):
    """Up and Down move between the entries, Enter opens; an ask is shown and settled inline.

    `resized` is emitted when the height changed, `entry_focused` gives the entry that received the focus.
    """

    opened = Signal(str)
    stop_requested = Signal(str)
    resume_requested = Signal(str)
    resized = Signal()
    entry_focused = Signal(QWidget)

    def __init__(self, stores: Stores, unread: UnreadStore, theme: Theme, pulse: PulseTimer) -> None:
        super().__init__()
        self._stores = stores
        self._unread = unread
        self._theme = theme
        self._pulse = pulse
        self._waiting = InboxSectionView(tr("Waiting for you"), self._make_row, theme)
        self._interrupted = InboxSectionView(tr("Interrupted"), self._make_row, theme, tr("Resume all"))
        self._finished = InboxSectionView(tr("Finished"), self._make_row, theme, tr("Clear"))
        self._running = InboxSectionView(tr("Running"), self._make_row, theme)
        self._sections = (self._waiting, self._interrupted, self._finished, self._running)
        self._throttle = QTimer(self)
        self._throttle.setSingleShot(True)
        self._throttle.setInterval(_THROTTLE_MS)
        self._throttle.timeout.connect(self._show)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        for section in self._sections:
            column.addWidget(section)
            section.resized.connect(self._lay_out_now)
        self._connect()
        self._show()

    @property
    def rows(self) -> tuple[InboxRowView, ...]:
        """Return the rows from the top."""
        return tuple(row for section in self._sections for row in section.rows)

    @property
    def lines(self) -> tuple[str, ...]:
        """The visible texts, for screen readers and tests."""
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
        stores.session.state_changed.connect(self._on_connection_changed)
        self._interrupted.clear_requested.connect(self._on_resume_all)
        self._finished.clear_requested.connect(self._unread.dismiss_all)

    def _on_connection_changed(self) -> None:
        self._running.set_title(tr("Last seen running") if self._is_lost else tr("Running"))
        self._on_changed()

    @property
    def _is_lost(self) -> bool:
        """True while nothing is known of the tasks: they may run on, or have ended with the engine."""
        return self._stores.session.state == "lost"

    def _on_changed(self) -> None:
        if not self._throttle.isActive():
            self._throttle.start()

    def _show(self) -> None:
        groups = self._stores.asks.groups()
        asking = {ask.task_id for group in groups for ask in group}
        tasks = self._stores.tasks
        running, interrupted = (
            [self._running_entry(task) for task in some if task.id not in asking]
            for some in (tasks.running(), tasks.interrupted())
        )
        self._waiting.show_entries([self._ask_entry(group) for group in groups])
        self._finished.show_entries([self._finished_entry(task) for task in self._unread.finished()])
        self._running.show_entries(running)
        self._interrupted.show_entries(interrupted)
        self._lay_out_now()

    def _lay_out_now(self) -> None:
        """Qt would propagate a new height one level per event loop iteration, with a gap below for some frames."""
        for widget in (*self.rows, *self._sections, self):
            layout = widget.layout()
            if layout is not None:
                layout.activate()
        self.resized.emit()

    def _ask_entry(self, asks: tuple[Ask, ...]) -> InboxEntry:
        first = asks[0]
        text = plain(first.text)
        title = self._title(first.conversation_id, text) if len(asks) == 1 else f"{len(asks)} × {text}"
        return InboxEntry(first.id, first.conversation_id, "waiting", title, ask_summary(first), first.task_id, asks)

    def _finished_entry(self, task: Task) -> InboxEntry:
        summary = markdown_line(task.outcome.summary, _MAX_DETAIL) if task.outcome.summary else ""
        detail = summary or task.outcome.error or task_activity(task)
        title = self._title(task.conversation_id, task.request.prompt)
        button = ("x", tr("Dismiss"))
        return InboxEntry(task.id, task.conversation_id, dot_state(task), title, detail, task.id, button=button)

    def _running_entry(self, task: Task) -> InboxEntry:
        title, button = self._title(task.conversation_id, task.request.prompt), ("circle-stop", tr("Stop"))
        state, detail, enabled = dot_state(task), task_activity(task), not task.activity.stopping
        if self._is_lost:
            state, detail, enabled = "idle", tr("No connection to the engine"), False
        return InboxEntry(task.id, task.conversation_id, state, title, detail, task.id, button=button, enabled=enabled)

    def _title(self, conversation_id: str, default: str) -> str:
        conversation = self._stores.conversations.get(conversation_id)
        return conversation.title if conversation else default

    def _make_row(self, entry: InboxEntry) -> InboxRowView:
        row = InboxRowView(entry, self._theme, self._pulse)
        row.opened.connect(partial(self._on_opened, row))
        row.button_clicked.connect(partial(self._on_button_clicked, row))
        row.decided.connect(partial(self._on_approval_decided, row))
        row.continued.connect(self._stores.asks.answer)
        row.answered.connect(partial(self._on_answered, row))
        row.expanded.connect(partial(self._on_expanded, row))
        row.step_requested.connect(partial(self._on_step_requested, row))
        return row

    def _on_opened(self, row: InboxRowView) -> None:
        self.opened.emit(row.entry.conversation_id)

    def _on_button_clicked(self, row: InboxRowView) -> None:
        """Stops a running task; dismisses an ended one."""
        task = self._stores.tasks.get(row.entry.task_id)
        if task is None or task.outcome.ended_at is not None:
            self._unread.dismiss(row.entry.task_id)
        else:
            self.stop_requested.emit(row.entry.task_id)

    def _on_resume_all(self) -> None:
        """Resumes all of them: a single one is resumed in its conversation."""
        for task in self._stores.tasks.interrupted():
            self.resume_requested.emit(task.id)

    def _on_approval_decided(self, row: InboxRowView, allow: bool) -> None:
        self._stores.asks.answer_all(AskAnswerParams(ask_id=row.entry.key, allow=allow))

    def _on_answered(self, row: InboxRowView, text: str) -> None:
        self._stores.asks.answer(AskAnswerParams(ask_id=row.entry.key, text=text))

    def _on_step_requested(self, row: InboxRowView, by: int) -> None:
        rows = self.rows
        number = rows.index(row) + by if row in rows else 0
        if 0 <= number < len(rows):
            rows[number].setFocus(Qt.FocusReason.TabFocusReason)
            self.entry_focused.emit(rows[number])

    def _on_expanded(self, row: InboxRowView) -> None:
        """Only one at a time: collapses the others."""
        for other in self.rows:
            if other is not row:
                other.collapse()
        self._lay_out_now()
        self.entry_focused.emit(row)
