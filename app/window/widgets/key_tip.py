"""The tool tip of a control that keys press too: it names the keys that are in force when it is shown."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from app.window.theme.look import set_tip


class KeyTip(QObject):
    """`words` and the keys of the window's action of the name `action`; the words alone if it has none."""

    def __init__(self, control: QWidget, words: str, action: str) -> None:
        super().__init__(control)
        self._control = control
        self._words = words
        self._action = action
        set_tip(control, words)
        control.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip:
            keys = self._keys()
            set_tip(self._control, f"{self._words} ({keys})" if keys else self._words)
        return False

    def _keys(self) -> str:
        entries = (entry for entry in self._control.window().actions() if entry.objectName() == self._action)
        return "".join(entry.shortcut().toString(QKeySequence.SequenceFormat.NativeText) for entry in entries)
