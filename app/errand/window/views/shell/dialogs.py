"""The dialogs of the window (settings, usage, memory, shortcuts), each loaded when it is first opened."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QClipboard, QKeyEvent
from PySide6.QtWidgets import QAbstractSlider, QDialog, QGridLayout, QWidget

from errand.protocol.conversations import Conversation
from errand.text.translation import tr
from errand.window.stores.catalog import ModelStore
from errand.window.stores.stores import Stores
from errand.window.theme.theme import Theme
from errand.window.views.shared.actions import ACTIONS, ShortcutStore
from errand.window.widgets.boxes import set_vbox
from errand.window.widgets.buttons import native_keys
from errand.window.widgets.containers import vertical_scroll_area
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.labels import TextLabel

if TYPE_CHECKING:
    from errand.window.views.memory.dialog import MemoryDialog, MemoryPage
    from errand.window.views.settings.dialog import SettingsDialog
    from errand.window.views.usage.dialog import UsageDialog


_Step = QAbstractSlider.SliderAction
_SCROLL_KEYS = {
    Qt.Key.Key_Up: _Step.SliderSingleStepSub,
    Qt.Key.Key_Down: _Step.SliderSingleStepAdd,
    Qt.Key.Key_PageUp: _Step.SliderPageStepSub,
    Qt.Key.Key_PageDown: _Step.SliderPageStepAdd,
    Qt.Key.Key_Home: _Step.SliderToMinimum,
    Qt.Key.Key_End: _Step.SliderToMaximum,
}


class WindowDialogs(QObject):
    """Emits `settings_closed` when settings may have changed, and `models_changed` when other models can be chosen.

    `conversation_requested` gives a conversation to open.
    `source_requested` gives a conversation and one of its nodes.
    """

    settings_closed = Signal()
    models_changed = Signal()
    conversation_requested = Signal(str)
    source_requested = Signal(str, str)

    def __init__(
        self,
        stores: Stores,
        models: ModelStore,
        theme: Theme,
        shortcuts: ShortcutStore,
        clipboard: QClipboard,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._clipboard = clipboard
        self._usage: UsageDialog | None = None
        self._memory: MemoryDialog | None = None
        self._stores = stores
        self._models = models
        self._theme = theme
        self._shortcuts = shortcuts
        self._window = window
        self._settings: SettingsDialog | None = None

    def open_setting(self, name: str) -> None:
        """Open the page of one engine setting, with the focus in its field."""
        self.settings.open_setting(name)

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

    def open_usage(self) -> None:
        from errand.window.stores.usage import UsageStore
        from errand.window.views.usage.dialog import UsageDialog

        if self._usage is None:
            store = UsageStore(self._stores.session, self._stores.tasks, self)
            self._usage = UsageDialog(store, self._theme, self._clipboard, self._window)
            self._usage.opened.connect(self.conversation_requested)
        self._usage.show()
        self._usage.raise_()
        self._usage.activateWindow()

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
        from errand.window.stores.memory import ForgetStore
        from errand.window.views.memory.forget_dialog import ForgetDialog

        store = ForgetStore(self._stores.session)
        dialog = ForgetDialog(store, self._theme, node_id, self._window)
        store.setParent(dialog)
        dialog.open()

    def open_shortcuts(self) -> None:
        ShortcutsDialog(self._theme, self._shortcuts, self._window).open()


class ShortcutsDialog(QDialog):
    """Closed by Esc, scrolled by keys."""

    def __init__(self, theme: Theme, shortcuts: ShortcutStore, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Keyboard shortcuts"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        tokens = theme.tokens
        lines = QWidget()
        grid = QGridLayout(lines)
        grid.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_far)
        grid.setHorizontalSpacing(2 * tokens.space_far)
        grid.setVerticalSpacing(tokens.space_close)
        actions = [(action, shortcuts.keys(action.name)) for action in ACTIONS]
        listed = [(action.text, ", ".join(map(native_keys, keys))) for action, keys in actions if keys]
        for number, (text, keys) in enumerate((*listed, *_composer_keys())):
            grid.addWidget(TextLabel(theme, text), number, 0)
            grid.addWidget(TextLabel(theme, keys, tone="muted"), number, 1, Qt.AlignmentFlag.AlignRight)
        area = vertical_scroll_area(lines)
        self._scroll_bar = area.verticalScrollBar()
        set_vbox(self, area)
        size = lines.sizeHint()
        resize_on_screen(self, size.width() + self._scroll_bar.sizeHint().width(), size.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll with the keys: nothing in the sheet has the keyboard."""
        step = _SCROLL_KEYS.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self._scroll_bar.triggerAction(step)


def _composer_keys() -> tuple[tuple[str, str], ...]:
    """Keys that are no shortcuts of the window, as they are shown."""
    return (
        (tr("Send a message, steer a running task, reply to a question"), native_keys("Enter")),
        (tr("New line"), native_keys("Shift+Enter")),
        (tr("Queue the message for later"), native_keys("Alt+Enter")),
        (tr("Switch approval mode"), native_keys("Shift+Tab")),
        (tr("Close what is open on top"), native_keys("Esc")),
        (tr("Stop the task, if nothing is open"), tr("Esc twice")),
        (tr("Edit the last message"), native_keys("Up")),
        (tr("Go to tab 1 to 9"), f"{native_keys('Ctrl+1')} … 9"),
    )
