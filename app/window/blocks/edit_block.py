"""A person's message while it is edited in its place: Enter sends it anew, Esc leaves it as it was."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.rows import EditRow, Row
from app.window.theme.look import push_button, set_look
from app.window.theme.theme import Theme
from app.window.views.prompt_edit import PromptEdit
from app.window.widgets.card import Card
from app.window.widgets.text_label import TextLabel

_HINT = "It is sent beside the old one, in a branch of its own."


class EditBlock(Block):
    """What was typed is kept by the message's id, for when the block scrolls out of view."""

    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        tokens = theme.tokens
        self._row: EditRow | None = None
        self._field = _EditField()
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
        self._field.document().documentLayout().documentSizeChanged.connect(self._on_size_changed)
        self._field.submitted.connect(self._on_sent)
        self._field.queued.connect(self._on_sent)
        self._field.cancelled.connect(self._on_cancelled)
        self._send.clicked.connect(self._on_sent)
        cancel.clicked.connect(self._on_cancelled)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, EditRow)
        self._row = None  # the text that is put there was not typed
        self._field.setPlainText(self.intents.branches.draft(row.node.id, row.text))
        self._field.moveCursor(self._field.textCursor().MoveOperation.End)
        self._row = row
        self._show_send()

    def markdown(self) -> str:
        return self._field.toPlainText()

    def take_focus(self) -> None:
        self._field.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_send(self) -> None:
        why = self.intents.branches.locked()
        self._send.setEnabled(bool(self._field.toPlainText().strip()) and not why)
        self._send.setToolTip(why or "Enter")

    def _on_text_changed(self) -> None:
        if self._row is not None:
            self.intents.branches.keep_draft(self._row.node.id, self._field.toPlainText())
            self._show_send()

    def _on_size_changed(self) -> None:
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


class _EditField(PromptEdit):
    """`cancelled` at Esc, which stops the task everywhere else."""

    cancelled = Signal()

    def event(self, event: QEvent) -> bool:
        is_escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if is_escape and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        elif event.key() == Qt.Key.Key_Up:
            QPlainTextEdit.keyPressEvent(self, event)  # an empty field here brings nothing back
        else:
            super().keyPressEvent(event)
