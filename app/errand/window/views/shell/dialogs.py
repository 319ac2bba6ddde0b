"""The dialogs that are opened from several places (settings, memory), each loaded when it is first opened."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from errand.protocol.conversations import Conversation
from errand.window.stores.catalog import ModelStore
from errand.window.stores.stores import Stores
from errand.window.theme.theme import Theme
from errand.window.views.shared.actions import ShortcutStore

if TYPE_CHECKING:
    from errand.window.views.memory.dialog import MemoryDialog, MemoryPage
    from errand.window.views.settings.dialog import SettingsDialog


class WindowDialogs(QObject):
    """Emits `settings_closed` when settings may have changed, and `models_changed` when other models can be chosen.

    `source_requested` gives a conversation and one of its nodes.
    """

    settings_closed = Signal()
    models_changed = Signal()
    source_requested = Signal(str, str)

    def __init__(
        self,
        stores: Stores,
        models: ModelStore,
        theme: Theme,
        shortcuts: ShortcutStore,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._memory: MemoryDialog | None = None
        self._stores = stores
        self._models = models
        self._theme = theme
        self._shortcuts = shortcuts
        self._window = window
        self._settings: SettingsDialog | None = None

    @property
    def settings(self) -> "SettingsDialog":
        """Created on first use; `open_page` and `open_setting` show it."""
        from errand.window.views.settings.dialog import SettingsDialog

        if self._settings is None:
            self._settings = SettingsDialog(self._stores, self._models, self._theme, self._shortcuts, self._window)
            self._settings.finished.connect(self.settings_closed)
            self._settings.models_changed.connect(self.models_changed)
            self._settings.memory_requested.connect(lambda: self.open_memory(None))
        return self._settings

    def open_memory(self, conversation: Conversation | None, page: "MemoryPage" = "entries") -> None:
        """`conversation` is the one in front, if there is any."""
        from errand.window.views.memory.dialog import MemoryDialog

        if self._memory is None:
            self._memory = MemoryDialog(self._stores, self._theme, self._window)
            self._memory.source_requested.connect(self.source_requested)
        is_there = conversation is not None
        self._memory.open_for(conversation.id if is_there else "", conversation.workspace if is_there else "", page)

    def open_forget(self, node_id: str) -> None:
        """Ask whether the text of a node is to be forgotten."""
        from errand.window.stores.memory.entries import ForgetStore
        from errand.window.views.memory.forget_dialog import ForgetDialog

        store = ForgetStore(self._stores.session)
        dialog = ForgetDialog(store, self._theme, node_id, self._window)
        store.setParent(dialog)
        dialog.open()
