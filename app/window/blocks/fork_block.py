"""The switch at a place where the conversation goes on in several ways: `‹ 2/3 ›`."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.rows import ForkRow, Row
from app.window.theme.look import set_tip
from app.window.theme.theme import Theme
from app.window.widgets.icon_button import IconButton
from app.window.widgets.text_label import TextLabel


class ForkBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: ForkRow | None = None
        self._previous = IconButton(theme, "chevron-left", "Previous version")
        self._next = IconButton(theme, "chevron-right", "Next version")
        self._place = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(theme.tokens.space_tight)
        self._line.addStretch()
        for widget in (self._previous, self._place, self._next):
            self._line.addWidget(widget)
        self._line.addStretch()
        self._previous.clicked.connect(self._on_previous_clicked)
        self._next.clicked.connect(self._on_next_clicked)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, ForkRow)
        self._row = row
        self._line.setStretch(0, 1 if row.is_user else 0)
        self._line.setStretch(4, 0 if row.is_user else 1)
        self._place.setText(f"{row.number}/{row.count}")
        words = f"Version {row.number} of {row.count}"
        self._place.setAccessibleName(words)
        set_tip(self._place, words)
        self.setAccessibleName(words)
        self._show_way(self._previous, row.previous_id, "Previous version")
        self._show_way(self._next, row.next_id, "Next version")

    def _show_way(self, button: IconButton, node_id: str | None, name: str) -> None:
        assert self._row is not None
        why = self.intents.branches.locked() if self._row.locked else ""
        set_tip(button, why or name)
        button.setAccessibleDescription(why)
        had_focus = button.hasFocus()
        button.setEnabled(node_id is not None and not self._row.locked)
        if had_focus and not button.isEnabled():  # else the keyboard would be nowhere
            other = self._next if button is self._previous else self._previous
            other.setEnabled(not self._row.locked)
            other.setFocus()

    def _on_previous_clicked(self) -> None:
        assert self._row is not None
        if self._row.previous_id is not None:
            self._switch(self._row.previous_id)

    def _on_next_clicked(self) -> None:
        assert self._row is not None
        if self._row.next_id is not None:
            self._switch(self._row.next_id)

    def _switch(self, node_id: str) -> None:
        self.resized.emit()  # what follows becomes another one: the view stays here, also where it stood at the end
        self.intents.branches.switch(node_id)
