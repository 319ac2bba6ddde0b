"""The text field of the composer: Enter, Shift+Enter, Alt+Enter and Shift+Tab, height by content, drops and pastes."""

import re
from math import ceil

from PySide6.QtCore import QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QFontMetricsF, QInputMethodEvent, QKeyEvent, QResizeEvent, QTextOption
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QWidget

from errand.window.views.composer.drop_payload import can_attach
from errand.window.widgets.input.field_keys import CompositionKeys, ControlEnter, is_control_enter

_MAX_LINES = 12
_BLINKS_MS = 10_000
_LONG_WORD = re.compile(r"\S{2000}")
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_TAB_REASONS = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
_STEPS: dict[int, int] = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_PAGES: dict[int, int] = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}


class PromptEditView(QPlainTextEdit):
    """Emits `submitted` on Enter, `queued` on Alt+Enter, `edit_last_requested` on Up in an empty field.

    With text in the field Ctrl+Enter is Enter; without, it is the window's.
    Emits `composed` when what an input method composes has changed: meanwhile no key is a command.
    Emits `page_requested` on Page Up (-1) and Page Down (1), unless the text itself is longer than the field.
    Emits `history_step_requested` on Ctrl+Up (-1, an older message) and Ctrl+Down (1), and `content_dropped`
    with the QMimeData of pasted or dropped content that is not text, or too long. Emits `mode_cycle_requested` on
    Shift+Tab, unless the focus came by Tab and nothing was typed since: then the focus goes on to the control before.
    """

    submitted = Signal()
    queued = Signal()
    edit_last_requested = Signal()
    history_step_requested = Signal(int)
    page_requested = Signal(int)
    mode_cycle_requested = Signal()
    content_dropped = Signal(object)
    focused = Signal(bool)
    composed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabChangesFocus(True)
        ControlEnter(self)
        self.composition = CompositionKeys(self)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._is_walked_through = False
        self._is_long = False  # the text is longer than the field
        self._flash_ms = 0  # the flash time before the caret stopped blinking
        self._blink_timeout = QTimer(self, singleShot=True, interval=_BLINKS_MS)
        self._blink_timeout.timeout.connect(self.stop_blinking)
        self.document().documentLayout().documentSizeChanged.connect(self._on_document_size)
        self._fit_height()

    @property
    def has_text(self) -> bool:
        """True if the text, with what is being composed, has more than whitespace. Stops at the first such line."""
        if self.is_composing:
            return True
        block = self.document().firstBlock()
        while block.isValid():
            if block.text().strip():
                return True
            block = block.next()
        return False

    @property
    def is_composing(self) -> bool:
        """True while an input method holds text that is not in the document yet."""
        return bool(self.composition.preedit)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        super().inputMethodEvent(event)
        self.composed.emit()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return can_attach(source) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if can_attach(source):
            self.content_dropped.emit(source)
        else:
            self._wrap_for(source.text())
            super().insertFromMimeData(source)

    def stop_blinking(self) -> None:
        """Stop blinking after a while without typing, since each blink wakes the CPU."""
        self._blink_timeout.stop()
        if self.hasFocus() and not self._flash_ms:
            self._flash_ms = QApplication.cursorFlashTime()
            QApplication.setCursorFlashTime(0)

    def _blink(self, *, again: bool = True) -> None:
        """Blink at the system's rate; with `again`, stop after a while without typing."""
        if self._flash_ms:
            QApplication.setCursorFlashTime(self._flash_ms)
            self._flash_ms = 0
        if again:
            self._blink_timeout.start()
        else:
            self._blink_timeout.stop()

    def focusNextPrevChild(self, next: bool) -> bool:
        if next or self._is_walked_through:
            return super().focusNextPrevChild(next)
        self.mode_cycle_requested.emit()
        return True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._blink()
        self._is_walked_through = self._is_walked_through and not event.text()
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        is_enter = event.key() in _ENTER and modifiers == Qt.KeyboardModifier.NoModifier
        if is_enter or (is_control_enter(event) and self.has_text):
            self.submitted.emit()
        elif event.key() in _ENTER and modifiers == Qt.KeyboardModifier.AltModifier:
            self.queued.emit()
        elif event.key() in _STEPS and modifiers == Qt.KeyboardModifier.ControlModifier:
            self.history_step_requested.emit(_STEPS[event.key()])
        elif event.key() in _PAGES and not modifiers and not self._is_long:
            self.page_requested.emit(_PAGES[event.key()])
        elif event.key() == Qt.Key.Key_Up and self.document().isEmpty():
            self.edit_last_requested.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_height()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._is_walked_through = event.reason() in _TAB_REASONS
        self._blink()
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._blink(again=False)
        self.focused.emit(False)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.height())

    def setPlainText(self, text: str) -> None:
        self._wrap_for(text)
        super().setPlainText(text)

    def _wrap_for(self, text: str) -> None:
        """Wrap anywhere: in a word of 50,000 characters, Qt needs 0.3 s per key to find word boundaries."""
        if _LONG_WORD.search(text):
            self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)

    def _on_document_size(self) -> None:
        self._fit_height()

    def _fit_height(self) -> None:
        """Set the height. The size of a plain text document is in lines."""
        lines = max(1, round(self.document().size().height()))
        self._is_long = lines > _MAX_LINES
        bars = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(bars.ScrollBarAsNeeded if self._is_long else bars.ScrollBarAlwaysOff)
        margins = 2 * ceil(self.document().documentMargin()) + self.height() - self.contentsRect().height()
        height = ceil(min(_MAX_LINES, lines) * QFontMetricsF(self.font()).lineSpacing()) + margins
        if height != self.height():
            self.setFixedHeight(height)
