"""Editing a person's message in place."""

from math import ceil

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from errand.client.conversation.rows import EditMessageRow
from errand.text.translation import tr
from errand.window.rows.base import RowActions, RowKind, RowView, Spacing, text_estimate
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.buttons import native_keys
from errand.window.widgets.containers import Card
from errand.window.widgets.input.field_keys import ControlEnter, is_control_enter
from errand.window.widgets.labels import TextLabel

_MAX_LINES = 16
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)

_HINT = tr("Creates a new branch; the original is kept.")


class MessageEditField(QPlainTextEdit):
    """`height_changed` is emitted when its height changed."""

    submitted = Signal()
    cancelled = Signal()
    height_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        ControlEnter(self)
        self.document().setDocumentMargin(0)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().documentLayout().documentSizeChanged.connect(self._on_document_size)

    def fit(self, width: int) -> None:
        """Set the height needed for the text at this width; a widget that was never shown does not know its width."""
        self.document().setTextWidth(width)
        self._on_document_size()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        is_enter = event.key() in _ENTER and modifiers == Qt.KeyboardModifier.NoModifier
        if is_enter or is_control_enter(event):
            self.submitted.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def _on_document_size(self) -> None:
        """The size of a plain text document is in lines; each line is a whole number of pixels high."""
        lines = max(1, round(self.document().size().height()))
        margins = 2 * ceil(self.document().documentMargin()) + 2
        height = min(_MAX_LINES, lines) * ceil(QFontMetricsF(self.font()).lineSpacing()) + margins
        bars = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(bars.ScrollBarAsNeeded if lines > _MAX_LINES else bars.ScrollBarAlwaysOff)
        if height != self.height():
            self.setFixedHeight(height)
            self.height_changed.emit()


class EditMessageView(RowView[EditMessageRow]):
    """The draft is stored by message id, in case the row scrolls out of view."""

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        tokens = theme.tokens
        self._row: EditMessageRow | None = None
        self._field = MessageEditField()
        self._field.setFont(theme.font(tokens.size_base))
        self._field.setAccessibleName(tr("Edit message"))
        set_style(self._field, "look", "bare")
        self._send = push_button(tr("Send"), "primary")
        cancel = push_button(tr("Cancel"), "quiet")
        hint = TextLabel(theme, _HINT, size=tokens.size_small, tone="muted")
        hint.setWordWrap(True)
        card = Card(theme)
        card.body.addWidget(self._field)
        card.body.addLayout(hbox(fill(hint), cancel, self._send, spacing=tokens.space_close))
        set_vbox(self, card)
        self._field.textChanged.connect(self._on_text_changed)
        self._field.height_changed.connect(self._on_height_changed)
        self._field.submitted.connect(self._on_sent)
        self._field.cancelled.connect(self._on_cancelled)
        self._send.clicked.connect(self._on_sent)
        cancel.clicked.connect(self._on_cancelled)

    def set_row(self, row: EditMessageRow) -> None:
        text = self.row_actions.branches.drafts.get(row.node.id, row.text)
        if text != self._field.toPlainText():  # otherwise the cursor would jump when only the lock changes
            self._row = None  # this text was not typed by the user
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
        why = self.row_actions.branches.locked if self._row is not None and self._row.locked else ""
        self._send.setEnabled(bool(self._field.toPlainText().strip()) and not why)
        set_tool_tip(self._send, why or native_keys("Enter"))

    def _on_text_changed(self) -> None:
        if self._row is not None:
            self.row_actions.branches.drafts[self._row.node.id] = self._field.toPlainText()
            self._show_send()

    def _on_height_changed(self) -> None:
        if self._row is not None:
            self.resized.emit()

    def _on_sent(self) -> None:
        text = self._field.toPlainText().strip()
        if self._row is not None and text:
            self.row_actions.branches.resend(self._row.node, text)

    def _on_cancelled(self) -> None:
        if self._row is not None:
            self.row_actions.branches.drafts[self._row.node.id] = self._row.text
            self.row_actions.branches.end_edit()


def _estimate(row: EditMessageRow, width: int, tokens: DesignTokens) -> int:
    return tokens.space_far + 2 * tokens.space_normal + text_estimate(row.text, width * 4 // 5, tokens)


EDIT_MESSAGE = RowKind(EditMessageRow, EditMessageView, spacing=lambda row: Spacing.EDIT, estimate=_estimate)
