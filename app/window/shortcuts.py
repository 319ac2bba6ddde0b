"""Which keys do what: those of the table of actions, unless a person chose others, which are kept."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QKeySequence

from app.window.state import WindowState
from app.window.views.actions import ACTIONS, Action, ActionName

_FORM = QKeySequence.SequenceFormat
_FIXED = {
    "Alt+Return": "queues a message",
    "Alt+Enter": "queues a message",
    "Ctrl+C": "copies",
    "Ctrl+X": "cuts",
    "Ctrl+V": "pastes",
    "Ctrl+A": "selects everything",
    "Ctrl+Z": "takes back what was typed",
    "Ctrl+Shift+Z": "types again what was taken back",
    "Ctrl+Backspace": "deletes a word",
    "Ctrl+Del": "deletes a word",
    "Ctrl+Left": "moves by a word",
    "Ctrl+Right": "moves by a word",
    "Ctrl+Up": "goes to the message before",
    "Ctrl+Down": "goes to the message after",
    **{f"Ctrl+{number}": "goes to a tab by its number" for number in range(1, 10)},
}
_FUNCTION_KEYS = {f"F{number}" for number in range(1, 36)}


class Shortcuts(QObject):
    """Keys are written as in the table ("Ctrl+Shift+T"). No two actions have the same."""

    changed = Signal()

    def __init__(self, state: WindowState) -> None:
        super().__init__()
        self._state = state

    def keys(self, name: ActionName) -> tuple[str, ...]:
        """The first is the one shown."""
        own = self._state.kept.shortcuts.get(name)
        return _action(name).shortcuts if own is None else tuple(own)

    def shown(self, name: ActionName) -> str:
        """The keys as the platform writes them; "" for none."""
        return native(self.keys(name)[0]) if self.keys(name) else ""

    def is_changed(self, name: ActionName) -> bool:
        return self.keys(name) != _action(name).shortcuts

    @property
    def any_changed(self) -> bool:
        return any(self.is_changed(action.name) for action in ACTIONS)

    def holder(self, keys: str) -> Action | None:
        """The action that has these keys."""
        return next((action for action in ACTIONS if keys in self.keys(action.name)), None)

    def bind(self, name: ActionName, keys: str) -> None:
        """These keys alone; who had them loses them."""
        holder = self.holder(keys)
        if holder is not None:
            self._put(holder.name, tuple(known for known in self.keys(holder.name) if known != keys))
        self._put(name, (keys,))
        self._tell()

    def clear(self, name: ActionName) -> None:
        """No keys at all."""
        self._put(name, ())
        self._tell()

    def reset(self, name: ActionName) -> None:
        """The keys of the table, but for those that another action has by now."""
        taken = {key for action in ACTIONS if action.name != name for key in self.keys(action.name)}
        self._put(name, tuple(key for key in _action(name).shortcuts if key not in taken))
        self._tell()

    def reset_all(self) -> None:
        self._state.kept.shortcuts.clear()
        self._tell()

    def _put(self, name: ActionName, keys: tuple[str, ...]) -> None:
        kept = self._state.kept.shortcuts
        if keys == _action(name).shortcuts:
            kept.pop(name, None)
        else:
            kept[name] = list(keys)

    def _tell(self) -> None:
        self._state.save_soon()
        self.changed.emit()


def refusal(keys: str) -> str:
    """Why these keys cannot be given to an action, in a sentence; "" if they can."""
    if keys in _FIXED:
        return f"{native(keys)} {_FIXED[keys]}; that stays so."
    first = keys.split("+")[0]
    if first not in ("Ctrl", "Alt", "Meta") and keys.split("+")[-1] not in _FUNCTION_KEYS:
        return f"{native(keys)} is needed for writing and moving about. Add Ctrl or Alt, or take a function key."
    return ""


def native(keys: str) -> str:
    """Keys as the platform writes them."""
    return QKeySequence(keys).toString(_FORM.NativeText)


def _action(name: ActionName) -> Action:
    return next(action for action in ACTIONS if action.name == name)
