"""A button that shows an action's keys and takes new ones: press it, then press the keys."""

from PySide6.QtCore import QEvent, QKeyCombination, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QPushButton

from app.window.theme.look import set_look, set_tip

_MODIFIERS = (Qt.Key.Key_Control, Qt.Key.Key_Shift, Qt.Key.Key_Alt, Qt.Key.Key_Meta, Qt.Key.Key_AltGr)
_CLEARING = (Qt.Key.Key_Backspace, Qt.Key.Key_Delete)


class KeyButton(QPushButton):
    """`recorded` gives keys as the table of actions writes them, `cleared` when they are taken away. Esc leaves."""

    recorded = Signal(str)
    cleared = Signal()

    def __init__(self, action: str) -> None:
        super().__init__()
        self._action = action
        self._shown = ""
        self._records = False
        self.setAutoDefault(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_look(self, "look", "plain")
        self.clicked.connect(self._on_clicked)

    def show_keys(self, keys: str) -> None:
        """What the platform calls them; "" for none."""
        self._shown = keys
        self._show(records=False)

    def event(self, event: QEvent) -> bool:
        """While it records, no key is a shortcut, and Tab is a key as any other."""
        if self._records and isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress:
                self._take(event)
                return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._show(records=False)
        super().focusOutEvent(event)

    def _take(self, event: QKeyEvent) -> None:
        if event.key() in _MODIFIERS:
            return
        self._show(records=False)
        plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if plain == Qt.KeyboardModifier.NoModifier and event.key() == Qt.Key.Key_Escape:
            return
        if plain == Qt.KeyboardModifier.NoModifier and event.key() in _CLEARING:
            self.cleared.emit()
            return
        pressed = QKeySequence(QKeyCombination(plain, _named(event)))
        self.recorded.emit(pressed.toString(QKeySequence.SequenceFormat.PortableText))

    def _show(self, *, records: bool) -> None:
        self._records = records
        text = "Press the keys …" if records else self._shown or "None"
        self.setText(text)
        self.setAccessibleName(f"{self._action}: {text}")
        set_tip(self, "Esc leaves it as it is, Backspace takes the keys away" if records else "Press to change")

    def _on_clicked(self) -> None:
        self._show(records=True)


def _named(event: QKeyEvent) -> Qt.Key:
    """Shift+Tab comes under a name of its own."""
    return Qt.Key.Key_Tab if event.key() == Qt.Key.Key_Backtab else Qt.Key(event.key())
