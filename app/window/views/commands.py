"""What each action does, as Qt's actions with their keys, in every window that takes them."""

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from app.window.shortcuts import Shortcuts
from app.window.views.actions import ACTIONS, Action, ActionName


class Commands(QObject):
    """`slots` has one for each action of the table; `go_to_tab` takes the number of a tab, from 1 to 9."""

    def __init__(
        self, slots: Mapping[ActionName, Callable[[], None]], go_to_tab: Callable[[int], None], shortcuts: Shortcuts
    ) -> None:
        super().__init__()
        self._slots = slots
        self._go_to_tab = go_to_tab
        self._shortcuts = shortcuts

    def do(self, name: ActionName) -> None:
        self._slots[name]()

    def add_to(self, window: QWidget) -> None:
        """Have the keys work in `window`."""
        self._add(window, ACTIONS)

    def add_to_own(self, window: QWidget) -> None:
        """Those of a conversation's own window: it has no tabs to move or pin."""
        self._add(window, tuple(action for action in ACTIONS if not action.of_tab))

    def _add(self, window: QWidget, actions: tuple[Action, ...]) -> None:
        for action in actions:
            entry = _KeyAction(action, self._shortcuts, window)
            entry.triggered.connect(partial(self.do, action.name))
            window.addAction(entry)
        for number in range(1, 10):
            shortcut = QShortcut(QKeySequence(f"Ctrl+{number}"), window)
            shortcut.activated.connect(partial(self._go_to_tab, number))


class _KeyAction(QAction):
    """Has the keys in force, whoever changes them."""

    def __init__(self, action: Action, shortcuts: Shortcuts, window: QWidget) -> None:
        super().__init__(action.text, window)
        self.setObjectName(action.name)
        self._name: ActionName = action.name
        self._keys = shortcuts
        shortcuts.changed.connect(self._on_keys_changed)
        self._on_keys_changed()

    def _on_keys_changed(self) -> None:
        self.setShortcuts([QKeySequence(keys) for keys in self._keys.keys(self._name)])
