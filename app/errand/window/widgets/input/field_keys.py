"""Keys that belong to the text field they are typed in, before any shortcut of the window."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QGuiApplication, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QTextEdit, QWidget

_ENTER_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
# What a window does with them would lose the composition, or happen beside it.
_COMMAND_KEYS = frozenset(
    (
        *_ENTER_KEYS,
        *(Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Escape, Qt.Key.Key_Up, Qt.Key.Key_Down),
        *(Qt.Key.Key_PageUp, Qt.Key.Key_PageDown),
    )
)
_COMMAND_MODIFIERS = (
    Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
)


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


class CompositionKeys(QObject):
    """While an input method composes text in `field`, no key is a command: not of the window, nor of the field.

    Korean and Japanese keyboards hold a syllable back until it is complete; the input method has those keys.
    """

    def __init__(self, field: QWidget) -> None:
        super().__init__(field)
        self._field = field
        self._preedit = ""
        self._placeholder = ""
        field.installEventFilter(self)

    @property
    def preedit(self) -> str:
        """The text that is being composed."""
        if isinstance(self._field, QPlainTextEdit | QTextEdit):
            return self._field.textCursor().block().layout().preeditAreaText()
        return self._preedit

    def commit(self) -> None:
        """Put what is being composed into the field."""
        if self.preedit:
            QGuiApplication.inputMethod().commit()
        if preedit := self.preedit:  # without an input method that takes the order
            event = QInputMethodEvent("", [])
            event.setCommitString(preedit)
            QApplication.sendEvent(self._field, event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event:
            case QInputMethodEvent():
                self._preedit = event.preeditString()
                self._hide_placeholder()
            case QKeyEvent() if self.preedit and event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            case QKeyEvent() if self.preedit and event.type() == QEvent.Type.KeyPress:
                return event.key() in _COMMAND_KEYS or bool(event.modifiers() & _COMMAND_MODIFIERS)
            case _:
                if event.type() == QEvent.Type.FocusOut:
                    self._preedit = ""
        return False

    def _hide_placeholder(self) -> None:
        """Qt paints it below the composition."""
        if not isinstance(self._field, QPlainTextEdit | QTextEdit):
            return
        if self._preedit and self._field.placeholderText():
            self._placeholder = self._field.placeholderText()
            self._field.setPlaceholderText("")
        elif not self._preedit and self._placeholder:
            self._field.setPlaceholderText(self._placeholder)
            self._placeholder = ""


def guard_compositions(application: QApplication) -> None:
    """Watch each text field from the first time it has the focus."""
    application.focusChanged.connect(_guard)


def _guard(_before: QWidget | None, focused: QWidget | None) -> None:
    if focused is None or not focused.testAttribute(Qt.WidgetAttribute.WA_InputMethodEnabled):
        return
    if focused.findChild(CompositionKeys, options=Qt.FindChildOption.FindDirectChildrenOnly) is None:
        CompositionKeys(focused)
