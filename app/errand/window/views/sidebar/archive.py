"""The archived conversations: open, restore, delete after a confirmation that lists what is deleted."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from errand.protocol.conversations import Conversation
from errand.text.translation import tr, trn
from errand.window.stores.conversation_list import ConversationListStore
from errand.window.theme.theme import Theme
from errand.window.views.sidebar.conversation_list import ListAction, PagedListView
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.dialogs import ConfirmDialog
from errand.window.widgets.labels import TextLabel

_EMPTY = tr("No archived conversations. Archived conversations move here and still show up in search.")


class ArchiveView(QWidget):
    """`back_requested` is emitted when the user goes back to the list."""

    opened = Signal(str)
    opened_in_background = Signal(str)
    back_requested = Signal()

    def __init__(self, store: ConversationListStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self.list = ArchiveListView(store, theme)
        self._back = IconButton(theme, "arrow-left", tr("Back to all conversations"), shortcut="Esc")
        self._empty = TextLabel(theme, _EMPTY, tone="muted", wrap=True)
        self._empty.setMargin(theme.tokens.space_close)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        top = hbox(self._back, fill(TextLabel(theme, tr("Archived"), bold=True)), spacing=theme.tokens.space_close)
        set_vbox(self, top, fill(self._empty), fill(self.list), spacing=theme.tokens.space_close)
        self._back.clicked.connect(self.back_requested)
        self.list.opened.connect(self.opened)
        self.list.opened_in_background.connect(self.opened_in_background)
        store.archived.reset.connect(self._on_changed)
        store.archived.changed.connect(self._on_changed)
        self._on_changed()

    def enter(self) -> None:
        """Called when the view is shown: loads the archive the first time, and takes the focus."""
        if not self._store.archived.is_loaded:
            self._store.archived.load()
        (self._back if self.list.isHidden() else self.list).setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.back_requested.emit()
            return
        super().keyPressEvent(event)

    def _on_changed(self) -> None:
        archived = self._store.archived
        is_empty = archived.is_loaded and archived.count() == 0
        self._empty.setVisible(is_empty)
        self.list.setVisible(not is_empty)


class ArchiveListView(PagedListView):
    """Asks before it deletes: first counts what would be deleted."""

    def __init__(self, store: ConversationListStore, theme: Theme) -> None:
        super().__init__(store.archived, None, theme, tr("Archived conversations"))
        self._store = store
        self._deleting: Conversation | None = None
        store.counted.connect(self._on_counted)
        self.export_requested.connect(store.export)

    def actions_for(self, conversation: Conversation) -> tuple[ListAction, ...]:
        return (
            *self.open_actions(),
            ListAction(tr("Unarchive"), "Ctrl+Backspace", self._restore),
            self.export_action(),
            ListAction(tr("Delete permanently…"), "Del", self._ask_to_delete),
        )

    def _restore(self, conversation: Conversation) -> None:
        self._store.archive(conversation.id, archived=False)

    def _ask_to_delete(self, conversation: Conversation) -> None:
        self._deleting = conversation
        self._store.count_tree(conversation.id)

    def _on_counted(self, conversation_id: str, messages: int, tasks: int) -> None:
        conversation, self._deleting = self._deleting, None
        if conversation is None or conversation.id != conversation_id:
            return
        dialog = DeleteDialog(conversation.title, messages, tasks, self)
        dialog.accepted.connect(lambda: self._store.delete(conversation_id))
        dialog.open()


class DeleteDialog(ConfirmDialog):
    """`accepted` deletes the conversation."""

    def __init__(self, title: str, messages: int, tasks: int, parent: QWidget) -> None:
        details = tr(
            "This deletes {messages}, {tasks} and the files Errand stored for them. Files in your folders stay. "
            "You can't undo this."
        ).format(messages=trn("{n} message", "{n} messages", messages), tasks=trn("{n} task", "{n} tasks", tasks))
        question = tr("Delete “{title}” permanently?").format(title=title)
        super().__init__(parent, tr("Delete permanently"), question, details, tr("Delete permanently"))
