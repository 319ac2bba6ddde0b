"""A part of the inbox: a heading with a count, its entries, and a way to see more of them."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.inbox_row import InboxEntry, InboxRow
from app.window.widgets.text_label import TextLabel

_MOST_ROWS = 6


class InboxSection(QWidget):
    """Nothing at all while it has no entry. `clear_asked` by the button in its heading, named `clear`: for all."""

    clear_asked = Signal()
    resized = Signal()

    def __init__(self, title: str, make_row: Callable[[InboxEntry], InboxRow], theme: Theme, clear: str = "") -> None:
        super().__init__()
        self._title = title
        self._make_row = make_row
        self._shows_all = False
        self._entries: list[InboxEntry] = []
        self._rows: dict[str, InboxRow] = {}
        tokens = theme.tokens
        self._heading = TextLabel(theme, title, size=tokens.size_small, tone="muted", bold=True)
        self._more = push_button("", "quiet")
        self._more.clicked.connect(self._on_more)
        top = QHBoxLayout()
        around = 0 if clear else tokens.space_tight  # a button is higher than the words alone
        top.setContentsMargins(tokens.space_close, 2 * around, 0, around)
        top.addWidget(self._heading, 1)
        if clear:
            button = push_button(clear, "quiet")
            button.setAccessibleName(f"{clear}: {title.lower()}")
            button.clicked.connect(self.clear_asked)
            top.addWidget(button)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addLayout(top)
        self._column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        self._show()

    @property
    def rows(self) -> tuple[InboxRow, ...]:
        """Those on the screen, from above."""
        shown = self._entries if self._shows_all else self._entries[:_MOST_ROWS]
        return tuple(self._rows[entry.key] for entry in shown)

    def show_entries(self, entries: list[InboxEntry]) -> None:
        """Rows stay while their entry lives, so that the focus stays where it is when another one comes."""
        if entries == self._entries:
            return
        self._entries = entries
        self._show()

    def _show(self) -> None:
        shown = self._entries if self._shows_all else self._entries[:_MOST_ROWS]
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
                row.show()  # the layout would only at the next turn of the loop
            if row.entry != entry:
                row.show_entry(entry)
        hidden = len(self._entries) - len(shown)
        self._heading.setText(f"{self._title} ({len(self._entries)})")
        self._more.setText(f"Show {hidden} more" if hidden else "Show fewer")
        self._more.setAccessibleName(f"{self._more.text()}: {self._title.lower()}")
        self._more.setVisible(len(self._entries) > _MOST_ROWS)
        self.setVisible(bool(self._entries))

    def _on_more(self) -> None:
        self._shows_all = not self._shows_all
        self._show()
        self.resized.emit()
