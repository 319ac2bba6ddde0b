"""The command palette: every action, conversation and setting, found by typing."""

from dataclasses import dataclass
from typing import Literal, assert_never

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from errand.protocol.conversations import Conversation
from errand.protocol.settings import Setting
from errand.text.translation import tr
from errand.window.stores.catalog import SettingsStore
from errand.window.stores.conversation_list import ConversationListStore, TitleSearchStore
from errand.window.stores.session import EngineSession
from errand.window.theme.theme import Theme
from errand.window.views.shared.actions import Action, ShortcutStore
from errand.window.views.shared.picker import PickerDialog, PickerItem

_MAX_CONVERSATIONS = 200
_TITLE = tr("Search actions, conversations and settings")


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of an item: the name of an action or a setting, or the id of a conversation."""

    kind: Literal["action", "conversation", "setting"]
    name: str

    @property
    def key(self) -> str:
        return f"{self.kind} {self.name}"


class CommandPalette(QObject):
    """Emits the name of the chosen action, the id of the conversation, or the name of the setting.

    Conversations that are not loaded are searched while the user types.
    """

    action_chosen = Signal(str)
    conversation_chosen = Signal(str)
    setting_chosen = Signal(str)

    def __init__(
        self,
        conversations: ConversationListStore,
        session: EngineSession,
        theme: Theme,
        shortcuts: ShortcutStore,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._conversations = conversations
        self._titles = TitleSearchStore(session)
        self._declared = SettingsStore(session)
        self._picker: PickerDialog | None = None
        self._targets: dict[str, _Target] = {}
        self._theme = theme
        self._titles.searched.connect(self._on_titles_found)
        self._declared.loaded.connect(self._on_settings_found)
        self._shortcuts = shortcuts

    def open_over(self, window: QWidget, *, has_tabs: bool) -> None:
        self._targets.clear()
        offered = (
            action for action in self._shortcuts.actions if action.in_palette and (has_tabs or not action.of_tab)
        )
        actions = [self._action_item(action) for action in offered]
        picker = PickerDialog(self._theme, _TITLE, (*actions, *self._conversation_items()), window)
        picker.chosen.connect(self._on_chosen)
        picker.typed.connect(self._titles.search)
        picker.finished.connect(self._on_closed)
        self._picker = picker
        picker.open_over(window)
        self._declared.load()

    def _conversation_items(self) -> list[PickerItem]:
        store = self._conversations
        recent = map(store.at, range(min(store.count(), _MAX_CONVERSATIONS)))
        return [self._conversation_item(conversation) for conversation in recent]

    def _action_item(self, action: Action) -> PickerItem:
        return self._item(_Target("action", action.name), action.text, self._shortcuts.display_text(action.name))

    def _conversation_item(self, conversation: Conversation) -> PickerItem:
        hint = tr("archived") if conversation.archived else tr("conversation")
        return self._item(_Target("conversation", conversation.id), conversation.title, hint)

    def _item(self, target: _Target, text: str, hint: str) -> PickerItem:
        self._targets[target.key] = target
        return PickerItem(target.key, text, hint)

    def _on_chosen(self, key: str) -> None:
        target = self._targets[key]
        match target.kind:
            case "action":
                self.action_chosen.emit(target.name)
            case "conversation":
                self.conversation_chosen.emit(target.name)
            case "setting":
                self.setting_chosen.emit(target.name)
            case _:
                assert_never(target.kind)

    def _on_titles_found(self, conversations: tuple[Conversation, ...]) -> None:
        if self._picker is not None:
            self._picker.add(tuple(map(self._conversation_item, conversations)))

    def _on_settings_found(self, settings: tuple[Setting, ...]) -> None:
        if self._picker is not None:
            self._picker.add(
                tuple(
                    self._item(_Target("setting", setting.name), tr(setting.title), tr("setting"))
                    for setting in settings
                )
            )

    def _on_closed(self) -> None:
        self._picker = None
