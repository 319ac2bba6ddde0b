"""The list of conversations: open, rename inline, pin, archive, export."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QLineEdit, QListView, QMenu, QStyleOptionViewItem, QWidget

from errand.protocol.conversations import Conversation
from errand.window.stores.conversation_list import ConversationListStore, PagedListStore
from errand.window.theme.theme import Theme
from errand.window.views.shared.item_delegate import KEY, ItemDelegate
from errand.window.views.sidebar.conversation_model import ConversationModel, local_now

_Index = QModelIndex | QPersistentModelIndex
_MAX_TITLE = 500


class RenameDelegate(ItemDelegate):
    """`renamed` gives the item's key and the new title; the item changes when the engine confirms it."""

    renamed = Signal(str, str)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        return _TitleEdit(parent, _string(index.data(KEY)), _string(index.data()))

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        """The editor gets its title on creation: an event that arrives while the user types must not reset it."""

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: _Index) -> None:
        assert isinstance(editor, _TitleEdit)
        title = editor.text().strip()
        if title and title != editor.before:
            self.renamed.emit(editor.key, title)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        editor.setGeometry(self.title_rect(option, index))


class _TitleEdit(QLineEdit):
    """Stores the key of its item: the items may move while it is open."""

    def __init__(self, parent: QWidget, key: str, before: str) -> None:
        super().__init__(before, parent)
        self.key = key
        self.before = before
        self.setMaxLength(_MAX_TITLE)
        self.setAccessibleName("Title")
        self.selectAll()


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class ListAction:
    """One entry of a conversation's context menu, with its shortcut; "" is none."""

    text: str
    keys: str
    run: Callable[[Conversation], None]


class PagedListView(QListView):
    """Enter or a click opens. Subclasses provide the actions, which the context menu shows.

    `export_requested` gives a conversation, the format and the path.
    """

    opened = Signal(str)
    opened_in_background = Signal(str)
    renamed = Signal(str, str)
    export_requested = Signal(str, str, str)

    def __init__(
        self, listing: PagedListStore, theme: Theme, name: str, now: Callable[[], datetime] = local_now
    ) -> None:
        super().__init__()
        self._listing = listing
        self._model = ConversationModel(listing, self, now)
        delegate = RenameDelegate(theme, self)
        delegate.renamed.connect(self.renamed)
        self.setAccessibleName(name)
        self.setModel(self._model)
        self.setItemDelegate(delegate)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setMouseTracking(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.clicked.connect(self._on_activated)
        self.activated.connect(self._on_activated)
        self.customContextMenuRequested.connect(self._on_menu_requested)
        theme.changed.connect(self.viewport().update)

    @property
    def selected(self) -> Conversation | None:
        return self._model.at(self.currentIndex())

    def select(self, conversation_id: str) -> None:
        """Select a conversation, if the list has loaded it."""
        row = self._listing.index_of(conversation_id)
        if row is None:
            self.clearSelection()
        else:
            self.setCurrentIndex(self._model.index(row, 0))

    def actions_for(self, conversation: Conversation) -> tuple[ListAction, ...]:
        raise NotImplementedError

    def edit_title(self, conversation: Conversation) -> None:
        """Edit its title inline: `renamed` is emitted if it changes."""
        row = self._listing.index_of(conversation.id)
        if row is not None:
            self.edit(self._model.index(row, 0))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        conversation = self.selected
        pressed = QKeySequence(event.keyCombination())
        if conversation is not None:
            for action in self.actions_for(conversation):
                if action.keys and pressed == QKeySequence(action.keys):
                    action.run(conversation)
                    return
        super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        conversation = self._model.at(self.indexAt(event.position().toPoint()))
        if event.button() == Qt.MouseButton.MiddleButton and conversation is not None:
            self.opened_in_background.emit(conversation.id)
            return
        super().mouseReleaseEvent(event)

    def open_actions(self) -> tuple[ListAction, ...]:
        """The first two actions of every list."""
        return (
            ListAction("Open", "", lambda conversation: self.opened.emit(conversation.id)),
            ListAction(
                "Open in background",
                "Shift+Return",
                lambda conversation: self.opened_in_background.emit(conversation.id),
            ),
        )

    def export_action(self) -> ListAction:
        return ListAction("Export …", "Ctrl+E", self.ask_to_export)

    def ask_to_export(self, conversation: Conversation) -> None:
        """Ask for the file and the format."""
        from errand.window.views.shared.export_dialog import ExportDialog

        dialog = ExportDialog(conversation.title, self)
        dialog.chosen.connect(partial(self.export_requested.emit, conversation.id))
        dialog.open()

    def _on_activated(self, index: QModelIndex) -> None:
        conversation = self._model.at(index)
        if conversation is not None:
            self.opened.emit(conversation.id)

    def _on_menu_requested(self, position: QPoint) -> None:
        conversation = self._model.at(self.indexAt(position))
        if conversation is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for action in self.actions_for(conversation):
            entry = menu.addAction(action.text)
            entry.setShortcut(QKeySequence(action.keys))
            entry.triggered.connect(lambda _=False, action=action: action.run(conversation))
        menu.popup(self.viewport().mapToGlobal(position))


class ConversationListView(PagedListView):
    def __init__(self, store: ConversationListStore, theme: Theme, now: Callable[[], datetime] = local_now) -> None:
        super().__init__(store, theme, "Conversations", now)
        self._store = store
        self.renamed.connect(store.rename)
        self.export_requested.connect(store.export)

    def actions_for(self, conversation: Conversation) -> tuple[ListAction, ...]:
        return (
            *self.open_actions(),
            ListAction("Rename", "F2", self.edit_title),
            ListAction("Unpin" if conversation.pinned else "Pin", "Ctrl+D", self._toggle_pin),
            self.export_action(),
            *self._memory_actions(conversation),
            ListAction("Archive", "Del", self._archive),
        )

    def _memory_actions(self, conversation: Conversation) -> tuple[ListAction, ...]:
        remember = "Do not remember this conversation" if conversation.remembers else "Remember this conversation"
        recall = "Do not recall here" if conversation.recalls else "Recall from memory here"
        return (
            ListAction(remember, "", self._store.switch_remembering),
            ListAction(recall, "", self._store.switch_recall),
        )

    def _toggle_pin(self, conversation: Conversation) -> None:
        self._store.pin(conversation.id, not conversation.pinned)

    def _archive(self, conversation: Conversation) -> None:
        self._store.archive(conversation.id)
