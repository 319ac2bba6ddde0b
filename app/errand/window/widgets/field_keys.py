"""Keys that belong to the text field they are typed in, before any shortcut of the window."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QTextEdit, QWidget

_ENTER_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


def holds_text(widget: QWidget | None) -> bool:
    """Return whether a person has written something in this field."""
    match widget:
        case QLineEdit():
            return not widget.isReadOnly() and bool(widget.text())
        case QPlainTextEdit() | QTextEdit():
            return not widget.isReadOnly() and not widget.document().isEmpty()
        case _:
            return False


def is_control_enter(event: QKeyEvent) -> bool:
    modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    return event.key() in _ENTER_KEYS and modifiers == Qt.KeyboardModifier.ControlModifier


class ControlEnter(QObject):
    """Ctrl+Enter in a field with text goes to the field, not to a shortcut of the window or a card around it."""

    def __init__(self, field: QWidget) -> None:
        super().__init__(field)
        self._field = field
        field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent) or not is_control_enter(event) or not holds_text(self._field):
            return False
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.type() == QEvent.Type.KeyPress and isinstance(self._field, QLineEdit):
            self._field.returnPressed.emit()
            return True  # Qt's own field would pass the key on
        return False
