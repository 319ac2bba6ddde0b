"""What each action does, as Qt's actions with their keys, in every window that takes them."""

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.window.views.actions import ACTIONS, ActionName


class Commands(QObject):
    """`slots` has one for each action of the table."""

    def __init__(self, slots: Mapping[ActionName, Callable[[], None]]) -> None:
        super().__init__()
        self._slots = slots

    def do(self, name: ActionName) -> None:
        self._slots[name]()

    def add_to(self, window: QWidget) -> None:
        """Have the keys work in `window`."""
        for action in ACTIONS:
            entry = QAction(action.text, window)
            entry.setShortcuts([QKeySequence(keys) for keys in action.shortcuts])
            entry.triggered.connect(partial(self.do, action.name))
            window.addAction(entry)
