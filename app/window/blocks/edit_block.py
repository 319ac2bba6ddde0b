"""A person's message while it is edited in its place: Enter sends it anew, Esc leaves it as it was."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.blocks.edit_field import EditField
from app.window.rows import EditRow, Row
from app.window.theme.look import push_button, set_look, set_tip
from app.window.theme.theme import Theme
from app.window.widgets.card import Card
from app.window.widgets.text_label import TextLabel

_HINT = "It is sent beside the old one, in a branch of its own."


class EditBlock(Block):
    """What was typed is kept by the message's id, for when the block scrolls out of view."""

    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        tokens = theme.tokens
        self._row: EditRow | None = None
        self._field = EditField()
        self._field.setFont(theme.font(tokens.size_base))
        self._field.setAccessibleName("Edit your message")
        set_look(self._field, "look", "bare")
        self._send = push_button("Send", "primary")
        cancel = push_button("Cancel", "quiet")
        line = QHBoxLayout()
        line.setSpacing(tokens.space_close)
        hint = TextLabel(theme, _HINT, size=tokens.size_small, tone="muted")
        hint.setWordWrap(True)
        line.addWidget(hint, 1)
        line.addWidget(cancel)
        line.addWidget(self._send)
        card = Card(theme)
        card.body.addWidget(self._field)
        card.body.addLayout(line)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(card)
        self._field.textChanged.connect(self._on_text_changed)
        self._field.grown.connect(self._on_grown)
        self._field.submitted.connect(self._on_sent)
        self._field.cancelled.connect(self._on_cancelled)
        self._send.clicked.connect(self._on_sent)
        cancel.clicked.connect(self._on_cancelled)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, EditRow)
        text = self.intents.branches.draft(row.node.id, row.text)
        if text != self._field.toPlainText():  # else the cursor would jump when only the lock changes
            self._row = None  # the text that is put there was not typed
            self._field.setPlainText(text)
            self._field.moveCursor(self._field.textCursor().MoveOperation.End)
        self._row = row
        self._show_send()

    def markdown(self) -> str:
        return self._field.toPlainText()

    def height_for(self, width: int) -> int:
        self._field.fit(width - 2 * self.theme.tokens.space_wide)
        return super().height_for(width)

    def take_focus(self) -> None:
        self._field.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_send(self) -> None:
        why = self.intents.branches.locked() if self._row is not None and self._row.locked else ""
        self._send.setEnabled(bool(self._field.toPlainText().strip()) and not why)
        set_tip(self._send, why or "Enter")

    def _on_text_changed(self) -> None:
        if self._row is not None:
            self.intents.branches.keep_draft(self._row.node.id, self._field.toPlainText())
            self._show_send()

    def _on_grown(self) -> None:
        if self._row is not None:
            self.resized.emit()

    def _on_sent(self) -> None:
        text = self._field.toPlainText().strip()
        if self._row is not None and text:
            self.intents.branches.resend(self._row.node, text)

    def _on_cancelled(self) -> None:
        if self._row is not None:
            self.intents.branches.keep_draft(self._row.node.id, self._row.text)
            self.intents.branches.end_edit()
