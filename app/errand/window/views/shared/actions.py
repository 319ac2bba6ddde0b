"""Actions of a window: their keyboard shortcuts, default and chosen, and their QActions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from errand.text.translation import tr
from errand.window.stores.window_state import WindowStateStore
from errand.window.widgets.buttons import native_keys

_KEY_FORMAT = QKeySequence.SequenceFormat
_FIXED = {
    "Alt+Return": tr("queues the message"),
    "Alt+Enter": tr("queues the message"),
    "Shift+Tab": tr("switches the approval mode"),
    "Ctrl+C": "copies",
    "Ctrl+X": "cuts",
    "Ctrl+V": "pastes",
    "Ctrl+A": tr("selects everything"),
    "Ctrl+Z": tr("undoes typing"),
    "Ctrl+Shift+Z": tr("redoes typing"),
    "Ctrl+Backspace": tr("deletes a word"),
    "Ctrl+Del": tr("deletes a word"),
    "Ctrl+Left": tr("moves by one word"),
    "Ctrl+Right": tr("moves by one word"),
    "Ctrl+Up": tr("goes to the previous message"),
    "Ctrl+Down": tr("goes to the next message"),
    "F7": tr("goes to the next change"),
    "Shift+F7": tr("goes to the previous change"),
    **{f"Ctrl+{number}": tr("switches to a tab") for number in range(1, 10)},
}
_FUNCTION_KEYS = {f"F{number}" for number in range(1, 36)}


@dataclass(frozen=True, slots=True)
class Action:
    """An action of the user. The first of `shortcuts` is shown.

    `in_palette` is false for actions that make no sense there. `of_tab` is true for actions that need tabs, `repeats`
    for those that a held key does again and again.
    """

    name: str
    text: str
    shortcuts: tuple[str, ...] = ()
    in_palette: bool = True
    of_tab: bool = False
    repeats: bool = False


class ShortcutStore(QObject):
    """Keys are in the format of the table ("Ctrl+Shift+T"). No two actions share keys."""

    changed = Signal()

    def __init__(self, state: WindowStateStore, actions: Sequence[Action]) -> None:
        super().__init__()
        self.actions = tuple(actions)
        self._by_name = {action.name: action for action in actions}
        self._state = state

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys, of which the first is the one shown."""
        own = self._state.settings.shortcuts.get(name)
        return self._by_name[name].shortcuts if own is None else tuple(own)

    def display_text(self, name: str) -> str:
        """Return the keys in the platform's notation; "" for none."""
        return native_keys(self.keys(name)[0]) if self.keys(name) else ""

    def is_changed(self, name: str) -> bool:
        return self.keys(name) != self._by_name[name].shortcuts

    @property
    def any_changed(self) -> bool:
        return any(self.is_changed(action.name) for action in self.actions)

    def holder(self, keys: str) -> Action | None:
        """Return the action that has these keys."""
        return next((action for action in self.actions if keys in self.keys(action.name)), None)

    def bind(self, name: str, keys: str) -> None:
        """Assign only these keys; removes them from another action."""
        holder = self.holder(keys)
        if holder is not None:
            self._set_keys(holder.name, tuple(sequence for sequence in self.keys(holder.name) if sequence != keys))
        self._set_keys(name, (keys,))
        self._save_and_notify()

    def clear(self, name: str) -> None:
        """Remove all keys."""
        self._set_keys(name, ())
        self._save_and_notify()

    def reset(self, name: str) -> None:
        """Restore the default keys, except those that another action has now."""
        taken = {key for action in self.actions if action.name != name for key in self.keys(action.name)}
        self._set_keys(name, tuple(key for key in self._by_name[name].shortcuts if key not in taken))
        self._save_and_notify()

    def reset_all(self) -> None:
        self._state.settings.shortcuts.clear()
        self._save_and_notify()

    def _set_keys(self, name: str, keys: tuple[str, ...]) -> None:
        shortcuts = self._state.settings.shortcuts
        if keys == self._by_name[name].shortcuts:
            shortcuts.pop(name, None)
        else:
            shortcuts[name] = list(keys)

    def _save_and_notify(self) -> None:
        self._state.save_soon()
        self.changed.emit()


def shortcut_conflict(keys: str) -> str:
    """Why these keys cannot be assigned to an action, as a sentence; "" if they can."""
    if keys in _FIXED:
        return tr("{keys} is reserved: it {use}.").format(keys=native_keys(keys), use=_FIXED[keys])
    first = keys.split("+")[0]
    if first not in ("Ctrl", "Alt", "Meta") and keys.split("+")[-1] not in _FUNCTION_KEYS:
        return tr("{keys} is needed for typing and navigation. Add Ctrl or Alt, or use a function key.").format(
            keys=native_keys(keys)
        )
    return ""


class WindowActions(QObject):
    """`slots` has one for each action of `shortcuts`; `go_to_tab` takes the number of a tab, from 1 to 9."""

    def __init__(
        self, slots: Mapping[str, Callable[[], None]], go_to_tab: Callable[[int], None], shortcuts: ShortcutStore
    ) -> None:
        super().__init__()
        self._slots = slots
        self._go_to_tab = go_to_tab
        self._shortcuts = shortcuts

    def trigger(self, name: str) -> None:
        self._slots[name]()

    def add_to(self, window: QWidget) -> None:
        """Make the shortcuts work in `window`."""
        self._add(window, self._shortcuts.actions)

    def add_to_conversation_window(self, window: QWidget) -> None:
        """Add the actions of a separate conversation window, which has no tabs to move or pin."""
        self._add(window, tuple(action for action in self._shortcuts.actions if not action.of_tab))

    def _add(self, window: QWidget, actions: tuple[Action, ...]) -> None:
        for action in actions:
            entry = _KeyAction(action, self._shortcuts, window)
            entry.triggered.connect(partial(self.trigger, action.name))
            window.addAction(entry)
        for number in range(1, 10):
            shortcut = QShortcut(QKeySequence(f"Ctrl+{number}"), window)
            shortcut.activated.connect(partial(self._go_to_tab, number))


class _KeyAction(QAction):
    """Keeps its shortcuts in sync with the store."""

    def __init__(self, action: Action, shortcuts: ShortcutStore, window: QWidget) -> None:
        super().__init__(action.text, window)
        self.setObjectName(action.name)
        self.setAutoRepeat(action.repeats)
        self._name = action.name
        self._keys = shortcuts
        shortcuts.changed.connect(self._on_keys_changed)
        self._on_keys_changed()

    def _on_keys_changed(self) -> None:
        self.setShortcuts([QKeySequence(keys) for keys in self._keys.keys(self._name)])
