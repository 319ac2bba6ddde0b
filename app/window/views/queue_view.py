"""What waits to be read by the agent, above the input: one line each, in the order in which it will be read."""

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.protocol.tasks import Queued
from app.window.stores.queue import QueueStore
from app.window.theme.theme import Theme
from app.window.views.queue_row import QueueRow

_MOST_LINES = 4


class QueueView(QScrollArea):
    """Hidden while nothing waits. `left` when the keyboard was in an entry and there is none to go on to."""

    left = Signal()

    def __init__(self, store: QueueStore, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Waiting texts")
        self._store = store
        self._theme = theme
        self._rows: dict[str, QueueRow] = {}
        self._inner = QWidget()
        self._column = QVBoxLayout(self._inner)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.setWidget(self._inner)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.hide()

    @property
    def rows(self) -> tuple[QueueRow, ...]:
        """From the top."""
        return tuple(self._rows.values())

    def show_entries(self) -> None:
        """Show what waits now; the entry that has the keyboard keeps it."""
        entries = self._store.entries
        focused = self._focused_place()
        self._drop({entry.id for entry in entries})
        self._rows = {entry.id: self._rows.get(entry.id) or self._make(entry) for entry in entries}
        for place, entry in enumerate(entries):
            row = self._rows[entry.id]
            if self._column.indexOf(row) != place:
                self._column.insertWidget(place, row)
            row.show_entry(entry, *self._store.place(entry.id))
        for before, after in zip(self.rows, self.rows[1:], strict=False):
            QWidget.setTabOrder(before, after)
        self.setVisible(bool(entries))
        self._fit()
        if focused is not None and self._focused_place() is None:
            self._focus(focused)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.height())

    def _make(self, entry: Queued) -> QueueRow:
        row = QueueRow(self._theme, self._inner)
        row.edited.connect(partial(self._store.edit, entry.id))
        row.send_asked.connect(partial(self._store.send_now, entry.id))
        row.moved.connect(partial(self._store.move, entry.id))
        row.remove_asked.connect(partial(self._store.remove, entry.id))
        row.stepped.connect(partial(self._on_stepped, entry.id))
        row.resized.connect(self._fit)
        return row

    def _drop(self, kept: set[str]) -> None:
        """A text that was being changed when the agent read it is not lost: the store gives it back."""
        for queued_id in self._rows.keys() - kept:
            row = self._rows.pop(queued_id)
            self._column.removeWidget(row)
            changed = row.changed_text
            row.hide()
            row.deleteLater()
            if changed is not None:
                self._store.edit(queued_id, changed)

    def _fit(self) -> None:
        """As high as what it shows, up to four lines and an open editor."""
        heights = [_height(row) for row in self.rows]
        editors = sum(_height(row) for row in self.rows if row.is_editing)
        line = min(heights, default=0)
        self.setFixedHeight(min(sum(heights), _MOST_LINES * line + editors))

    def _focused_place(self) -> int | None:
        focus = self.window().focusWidget()
        places = (place for place, row in enumerate(self.rows) if focus is row or row.isAncestorOf(focus))
        return next(places, None)

    def _focus(self, place: int) -> None:
        if not self.rows:
            self.left.emit()
            return
        row = self.rows[min(place, len(self.rows) - 1)]
        row.setFocus()
        self.ensureWidgetVisible(row, 0, 0)

    def _on_stepped(self, queued_id: str, by: int) -> None:
        place = list(self._rows).index(queued_id) + by
        if place >= len(self._rows):
            self.left.emit()
        elif place >= 0:
            self._focus(place)


def _height(row: QueueRow) -> int:
    return max(row.sizeHint().height(), row.minimumHeight())
