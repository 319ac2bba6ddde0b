"""The switch in the composer that leaves a conversation out of memory."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from errand.text.translation import tr
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.conversation_list import ConversationListStore
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import set_hbox


class MemorySwitchView(QWidget):
    """A button that shows whether a conversation is remembered, and changes it; hidden before there is one.

    `words` is the text of the visible button, for a bar that hides it when space is short; `changed` says that it is
    another.
    """

    changed = Signal()
    _pressed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._remembers: bool | None = None
        self.button = push_button("", "quiet")
        self.words: dict[QPushButton, str] = {}
        set_hbox(self, self.button, spacing=0)
        self.button.clicked.connect(self._pressed)
        theme.changed.connect(self._show)
        self._show()

    def follow(self, store: ConversationStore, conversations: ConversationListStore) -> None:
        """Show and switch the conversation of this store from now on."""

        def show() -> None:
            self.show_remembers(store.conversation.remembers if store.conversation is not None else None)

        def switch() -> None:
            if store.conversation is not None:
                conversations.switch_remembering(store.conversation)

        store.remembers_changed.connect(show)
        self._pressed.connect(switch)
        show()

    def show_remembers(self, remembers: bool | None) -> None:
        """Show whether the conversation is remembered; None hides the switch."""
        if remembers != self._remembers:
            self._remembers = remembers
            self._show()
            self.changed.emit()

    def _show(self) -> None:
        """A paused memory is named in amber; otherwise the icon is enough."""
        is_paused = self._remembers is False
        self.button.setVisible(self._remembers is not None)
        self.words = {} if self._remembers is None else {self.button: tr("Not remembered") if is_paused else ""}
        self.button.setAccessibleName(
            tr("Memory: this conversation is not remembered")
            if is_paused
            else tr("Memory: this conversation is remembered")
        )
        set_tool_tip(
            self.button,
            tr("This conversation is left out of memory. Press to include it.")
            if is_paused
            else tr("This conversation is remembered. Press to leave it out of memory."),
        )
        set_style(self.button, "tone", "waiting" if is_paused else "")
        tint = "waiting" if is_paused else "muted"
        self.button.setIcon(self._theme.icon("pause" if is_paused else "database", tint))
