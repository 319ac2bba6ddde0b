"""What each action does, as Qt's actions with their keys, in every window that takes them."""

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.window.shortcuts import Shortcuts
from app.window.views.actions import ACTIONS, Action, ActionName


class Commands(QObject):
    """`slots` has one for each action of the table."""

    def __init__(self, slots: Mapping[ActionName, Callable[[], None]], shortcuts: Shortcuts) -> None:
        super().__init__()
        self._slots = slots
        self._shortcuts = shortcuts

    def do(self, name: ActionName) -> None:
        self._slots[name]()

    def add_to(self, window: QWidget) -> None:
        """Have the keys work in `window`."""
        for action in ACTIONS:
            entry = _KeyAction(action, self._shortcuts, window)
            entry.triggered.connect(partial(self.do, action.name))
            window.addAction(entry)


class _KeyAction(QAction):
    """Has the keys in force, whoever changes them."""

    def __init__(self, action: Action, shortcuts: Shortcuts, window: QWidget) -> None:
        super().__init__(action.text, window)
        self._name: ActionName = action.name
        self._keys = shortcuts
        shortcuts.changed.connect(self._on_keys_changed)
        self._on_keys_changed()

    def _on_keys_changed(self) -> None:
        self.setShortcuts([QKeySequence(keys) for keys in self._keys.keys(self._name)])
