"""All actions of the window, their keyboard shortcuts (default and chosen), and the QActions of a window."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from errand.text.translation import tr
from errand.window.stores.window_state import WindowStateStore
from errand.window.widgets.buttons import native_keys

ActionName = Literal[
    "new_task",
    "stop",
    "stop_all",
    "pause",
    "next_ask",
    "allow_once",
    "palette",
    "search",
    "find",
    "find_next",
    "find_previous",
    "tree",
    "review",
    "summarise",
    "approvals",
    "ask_models",
    "compare",
    "add_agent",
    "export",
    "undo_archive",
    "close_tab",
    "reopen_tab",
    "next_tab",
    "previous_tab",
    "move_tab_left",
    "move_tab_right",
    "pin_tab",
    "all_tabs",
    "own_window",
    "next_pane",
    "sidebar",
    "zoom_in",
    "zoom_out",
    "zoom_reset",
    "tour",
    "settings",
    "settings_models",
    "settings_personalities",
    "settings_permissions",
    "settings_tools",
    "settings_skills",
    "settings_appearance",
    "settings_data",
    "usage",
    "memory",
    "remember",
    "recall",
    "theme",
    "shortcuts",
    "quick",
    "quick_key",
    "quit",
]

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
_REPEATS: frozenset[ActionName] = frozenset(
    ("find_next", "find_previous", "next_tab", "previous_tab", "zoom_in", "zoom_out")
)
_FUNCTION_KEYS = {f"F{number}" for number in range(1, 36)}


@dataclass(frozen=True, slots=True)
class Action:
    """An action of the user; the main window has a slot for each name. The first of `shortcuts` is shown.

    `in_palette` is false for actions that make no sense there. `of_tab` is true for actions that need tabs.
    """

    name: ActionName
    text: str
    shortcuts: tuple[str, ...]
    in_palette: bool = True
    of_tab: bool = False


ACTIONS = (
    Action("new_task", tr("New task"), ("Ctrl+T", "Ctrl+N")),
    Action("stop", tr("Stop task"), ("Ctrl+.",)),
    Action("stop_all", tr("Stop all tasks in this conversation"), ()),
    Action("pause", tr("Pause or resume the task"), ("Ctrl+P",)),
    Action("next_ask", tr("Go to the next request"), ("Ctrl+J",)),
    Action("allow_once", tr("Allow once"), ("Ctrl+Return", "Ctrl+Enter")),
    Action("palette", tr("Search actions, conversations and settings"), ("Ctrl+K",), False),
    Action("search", tr("Search all conversations"), ("Ctrl+Shift+F",)),
    Action("find", tr("Search this conversation"), ("Ctrl+F",)),
    Action("find_next", tr("Next result"), ("F3", "Ctrl+G"), False),
    Action("find_previous", tr("Previous result"), ("Shift+F3", "Ctrl+Shift+G"), False),
    Action("tree", tr("Show or hide branches"), ("Ctrl+Shift+B",)),
    Action("review", tr("Review changed files"), ("Ctrl+Shift+R",)),
    Action("ask_models", tr("Ask several models"), ()),
    Action("compare", tr("Compare models"), ()),
    Action("add_agent", tr("Add agent"), ()),
    Action("summarise", tr("Summarise earlier messages"), ()),
    Action("approvals", tr("Choose approval mode"), ()),
    Action("export", tr("Export this conversation"), ()),
    Action("undo_archive", tr("Undo archiving"), ("Ctrl+Alt+Z",)),
    Action("close_tab", tr("Close tab"), ("Ctrl+W",)),
    Action("reopen_tab", tr("Reopen closed tab"), ("Ctrl+Shift+T",)),
    Action("next_tab", tr("Next tab"), ("Ctrl+Tab", "Ctrl+PgDown")),
    Action("previous_tab", tr("Previous tab"), ("Ctrl+Shift+Tab", "Ctrl+PgUp")),
    Action("move_tab_left", tr("Move tab left"), ("Ctrl+Shift+PgUp",), of_tab=True),
    Action("move_tab_right", tr("Move tab right"), ("Ctrl+Shift+PgDown",), of_tab=True),
    Action("pin_tab", tr("Pin or unpin tab"), ("Ctrl+Shift+P",), of_tab=True),
    Action("all_tabs", tr("Search open tabs"), ("Ctrl+Shift+A",)),
    Action("own_window", tr("Open in new window or move back"), ("Ctrl+Shift+D",)),
    Action("next_pane", tr("Focus next pane"), ("F6",)),
    Action("sidebar", tr("Show or hide sidebar"), ("Ctrl+B",)),
    Action("zoom_in", tr("Zoom in"), ("Ctrl+=", "Ctrl++")),
    Action("zoom_out", tr("Zoom out"), ("Ctrl+-",)),
    Action("zoom_reset", tr("Reset zoom"), ("Ctrl+0",)),
    Action("tour", tr("Play the tour"), ()),
    Action("settings", tr("Settings"), ("Ctrl+,",)),
    Action("settings_models", tr("Settings: models and keys"), ()),
    Action("settings_personalities", tr("Settings: personalities"), ()),
    Action("settings_permissions", tr("Settings: permissions"), ()),
    Action("settings_tools", tr("Settings: tools and MCP servers"), ()),
    Action("settings_skills", tr("Settings: skills"), ()),
    Action("settings_appearance", tr("Settings: appearance, theme and fonts"), ()),
    Action("settings_data", tr("Settings: data, import and export"), ()),
    Action("usage", tr("Usage"), ("Ctrl+U",)),
    Action("memory", tr("Memory"), ("Ctrl+M",)),
    Action("remember", tr("Include in memory or leave out"), ()),
    Action("recall", tr("Use memory here or not"), ()),
    Action("theme", tr("Toggle light and dark theme"), ()),
    Action("shortcuts", tr("Keyboard shortcuts"), ("Ctrl+/",)),
    Action("quick", tr("Quick task"), ("Ctrl+Shift+N",)),
    Action("quick_key", tr("Set a global shortcut for quick tasks"), ()),
    Action("quit", tr("Quit Errand"), ("Ctrl+Q",)),
)


class ShortcutStore(QObject):
    """Keys are in the format of the table ("Ctrl+Shift+T"). No two actions share keys."""

    changed = Signal()

    def __init__(self, state: WindowStateStore) -> None:
        super().__init__()
        self._state = state

    def keys(self, name: ActionName) -> tuple[str, ...]:
        """The first is the one shown."""
        own = self._state.settings.shortcuts.get(name)
        return _action(name).shortcuts if own is None else tuple(own)

    def display_text(self, name: ActionName) -> str:
        """The keys in the platform's notation; "" for none."""
        return native_keys(self.keys(name)[0]) if self.keys(name) else ""

    def is_changed(self, name: ActionName) -> bool:
        return self.keys(name) != _action(name).shortcuts

    @property
    def any_changed(self) -> bool:
        return any(self.is_changed(action.name) for action in ACTIONS)

    def holder(self, keys: str) -> Action | None:
        """The action that has these keys."""
        return next((action for action in ACTIONS if keys in self.keys(action.name)), None)

    def bind(self, name: ActionName, keys: str) -> None:
        """Assign only these keys; removes them from another action."""
        holder = self.holder(keys)
        if holder is not None:
            self._set_keys(holder.name, tuple(sequence for sequence in self.keys(holder.name) if sequence != keys))
        self._set_keys(name, (keys,))
        self._save_and_notify()

    def clear(self, name: ActionName) -> None:
        """Remove all keys."""
        self._set_keys(name, ())
        self._save_and_notify()

    def reset(self, name: ActionName) -> None:
        """Restore the default keys, except those that another action has now."""
        taken = {key for action in ACTIONS if action.name != name for key in self.keys(action.name)}
        self._set_keys(name, tuple(key for key in _action(name).shortcuts if key not in taken))
        self._save_and_notify()

    def reset_all(self) -> None:
        self._state.settings.shortcuts.clear()
        self._save_and_notify()

    def _set_keys(self, name: ActionName, keys: tuple[str, ...]) -> None:
        shortcuts = self._state.settings.shortcuts
        if keys == _action(name).shortcuts:
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


def _action(name: ActionName) -> Action:
    return next(action for action in ACTIONS if action.name == name)


class WindowActions(QObject):
    """`slots` has one for each action of the table; `go_to_tab` takes the number of a tab, from 1 to 9."""

    def __init__(
        self, slots: Mapping[ActionName, Callable[[], None]], go_to_tab: Callable[[int], None], shortcuts: ShortcutStore
    ) -> None:
        super().__init__()
        self._slots = slots
        self._go_to_tab = go_to_tab
        self._shortcuts = shortcuts

    def trigger(self, name: ActionName) -> None:
        self._slots[name]()

    def add_to(self, window: QWidget) -> None:
        """Make the shortcuts work in `window`."""
        self._add(window, ACTIONS)

    def add_to_conversation_window(self, window: QWidget) -> None:
        """Add the actions of a separate conversation window, which has no tabs to move or pin."""
        self._add(window, tuple(action for action in ACTIONS if not action.of_tab))

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
        self.setAutoRepeat(action.name in _REPEATS)
        self._name: ActionName = action.name
        self._keys = shortcuts
        shortcuts.changed.connect(self._on_keys_changed)
        self._on_keys_changed()

    def _on_keys_changed(self) -> None:
        self.setShortcuts([QKeySequence(keys) for keys in self._keys.keys(self._name)])
