"""The palette: every action and conversation, found by typing."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.window.shortcuts import Shortcuts
from app.window.stores.conversations import ConversationsStore
from app.window.theme.theme import Theme
from app.window.views.actions import ACTIONS, Action
from app.window.views.picker import Choice, PickerDialog

_MOST_CONVERSATIONS = 200
_TITLE = "Find an action or a conversation"


class Palette(QObject):
    """`action_chosen` gives an action's name, `conversation_chosen` an id."""

    action_chosen = Signal(str)
    conversation_chosen = Signal(str)

    def __init__(self, conversations: ConversationsStore, theme: Theme, shortcuts: Shortcuts) -> None:
        super().__init__()
        self._conversations = conversations
        self._theme = theme
        self._shortcuts = shortcuts

    def open_over(self, window: QWidget) -> None:
        actions = [self._choice(action) for action in ACTIONS if action.in_palette]
        picker = PickerDialog(self._theme, _TITLE, (*actions, *self._chats()), window)
        picker.chosen.connect(self._on_chosen)
        picker.open_over(window)

    def _chats(self) -> list[Choice]:
        store = self._conversations
        shown = map(store.at, range(min(store.count(), _MOST_CONVERSATIONS)))
        return [Choice(f"open {conversation.id}", conversation.title, "conversation") for conversation in shown]

    def _choice(self, action: Action) -> Choice:
        return Choice(f"do {action.name}", action.text, self._shortcuts.shown(action.name))

    def _on_chosen(self, key: str) -> None:
        kind, _, name = key.partition(" ")
        if kind == "open":
            self.conversation_chosen.emit(name)
        else:
            self.action_chosen.emit(name)
