"""The agent's to-do list, above the composer: one line, which unfolds to the whole list."""

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.tasks import TODO_STATES, current_item, is_all_done, todo_text
from errand.protocol.tasks.groups import TodoItem, TodoStatus
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.rows.disclosure import DisclosureButton, LinePart
from errand.window.theme.style import set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, set_hbox, set_vbox
from errand.window.widgets.labels import ElidedLabel

_ICONS: dict[TodoStatus, tuple[str, str]] = {
    "pending": ("square", "muted"),
    "in_progress": ("chevron-right", "accent"),
    "done": ("check", "done_mark"),
}
_MAX_LINES = 7
# What comes next matters more than what is done.
_LINES_BELOW = 3
# How long a list stays on screen after its task has ended with all of it done.
_LAST_LOOK_MS = 5_000


class TodoItemView(QWidget):
    """One line; the tool tip has the whole text."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._item = TodoItem(text="")
        self._icon = QLabel()
        self._text = ElidedLabel(theme)
        space = theme.tokens.space_close
        set_hbox(
            self, self._icon, fill(self._text), spacing=space, margins=(space + theme.tokens.icon_small, 1, space, 1)
        )
        theme.changed.connect(self._paint)

    def show_item(self, item: TodoItem) -> None:
        if item == self._item:
            return
        self._item = item
        text = escape_hidden_line(item.text)
        self._text.set_text(text)
        self._text.set_tone("muted" if item.status == "done" else "text")
        font = self._text.font()
        font.setBold(item.status == "in_progress")
        self._text.setFont(font)
        self.setAccessibleName(f"{TODO_STATES[item.status]}: {text}")
        set_tool_tip(self, text)
        self._paint()

    def _paint(self) -> None:
        name, tint = _ICONS[self._item.status]
        side = self._theme.tokens.icon_small
        self._icon.setPixmap(self._theme.icon(name, tint).pixmap(QSize(side, side), self.devicePixelRatio()))


class TodoView(QWidget):
    """Hidden without a list, and after a task that has done all of it. Emits `opened` when a person folds it."""

    opened = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._items: tuple[TodoItem, ...] = ()
        self._rows: list[TodoItemView] = []
        self._theme = theme
        self.line = DisclosureButton(theme)
        self.line.setChecked(True)
        inner = QWidget()
        self._list = QVBoxLayout(inner)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(0)
        self.scroll_area = QScrollArea()
        self.scroll_area.setAccessibleName(tr("To-do list"))
        self.scroll_area.setWidget(inner)
        self.scroll_area.setWidgetResizable(True)
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        set_vbox(self, self.line, self.scroll_area, spacing=theme.tokens.space_tight)
        self._last_look = QTimer(self, singleShot=True, interval=_LAST_LOOK_MS)
        self._last_look.timeout.connect(self.hide)
        self.line.clicked.connect(self._on_line_clicked)
        self.hide()

    @property
    def texts(self) -> tuple[str, ...]:
        """The lines of the list, as a screen reader reads them."""
        return tuple(row.accessibleName() for row in self._rows)

    def set_open(self, is_open: bool) -> None:
        self.line.setChecked(is_open)
        self.scroll_area.setVisible(is_open)

    def show_task(self, task: Task | None) -> None:
        """Show the list of a task."""
        items = task.todo if task is not None else ()
        is_over = task is not None and task.outcome.ended_at is not None
        if items != self._items:
            self._items = items
            self._show_items()
        if not items or (is_over and is_all_done(items)):
            if items and not self.isHidden():
                if not self._last_look.isActive():
                    self._last_look.start()
            else:
                self.hide()
            return
        self._last_look.stop()
        self.show()

    def _show_items(self) -> None:
        if not self._items:
            self.hide()
            return
        done = is_all_done(self._items)
        current = current_item(self._items)
        parts = [LinePart(todo_text(self._items), "text")]
        if current is not None:
            parts += [LinePart("·"), LinePart(escape_hidden_line(current.text), elides=True)]
        self.line.show_line("list-checks", "done_mark" if done else "accent", parts, can_open=True)
        while len(self._rows) > len(self._items):
            self._rows.pop().deleteLater()
        while len(self._rows) < len(self._items):
            self._rows.append(TodoItemView(self._theme))
            self._list.addWidget(self._rows[-1])
        for row, item in zip(self._rows, self._items, strict=True):
            row.show_item(item)
        self._fit()

    def _fit(self) -> None:
        """Resize to the height of the list, up to seven lines. A longer list scrolls, also with the keyboard."""
        height = self._rows[0].sizeHint().height()
        self.scroll_area.setFixedHeight(height * min(len(self._rows), _MAX_LINES))
        scrolls = len(self._rows) > _MAX_LINES
        self.scroll_area.setFocusPolicy(Qt.FocusPolicy.StrongFocus if scrolls else Qt.FocusPolicy.NoFocus)
        current = current_item(self._items)
        if scrolls and current is not None:
            QTimer.singleShot(0, self, self._show_current)

    def _show_current(self) -> None:
        current = current_item(self._items)
        if current is not None:
            row = self._rows[self._items.index(current)]
            self.scroll_area.ensureWidgetVisible(row, 0, _LINES_BELOW * row.height())

    def _on_line_clicked(self) -> None:
        self.set_open(self.line.isChecked())
        self.opened.emit(self.line.isChecked())
