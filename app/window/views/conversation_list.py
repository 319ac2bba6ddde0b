"""The list of conversations by day: a view on the store, which loads more as it is scrolled."""

from datetime import datetime

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtWidgets import QInputDialog, QListView, QMenu, QWidget

from app.protocol.conversations import Conversation
from app.window.stores.conversations import ConversationsStore
from app.window.theme.theme import Theme
from app.window.views.days import day_heading, short_time
from app.window.views.entry import HEADING, HINT, KEY, EntryDelegate

_Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class ConversationModel(QAbstractListModel):
    """What the store has loaded; the view asks for more when its end is in sight."""

    def __init__(self, store: ConversationsStore, parent: QWidget) -> None:
        super().__init__(parent)
        self._store = store
        self._count = store.count()
        store.reset.connect(self._on_reset)
        store.changed.connect(self._on_changed)

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else self._count

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or index.row() >= self._store.count():
            return None
        conversation = self._store.at(index.row())
        now = datetime.now().astimezone()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return conversation.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{conversation.title}, {short_time(conversation.updated_at, now)}"
        if role == KEY:
            return conversation.id
        if role == HINT:
            return short_time(conversation.updated_at, now)
        return self._heading(index.row(), conversation, now) if role == HEADING else None

    def canFetchMore(self, parent: _Index) -> bool:
        return not parent.isValid() and self._store.has_more

    def fetchMore(self, parent: _Index) -> None:
        self._store.fetch_more()

    def _heading(self, row: int, conversation: Conversation, now: datetime) -> str:
        """At the first conversation of a day."""
        heading = day_heading(conversation.updated_at, now)
        if row and day_heading(self._store.at(row - 1).updated_at, now) == heading:
            return ""
        return heading

    def _on_reset(self) -> None:
        self.beginResetModel()
        self._count = self._store.count()
        self.endResetModel()

    def _on_changed(self) -> None:
        count = self._store.count()
        if count > self._count:
            self.beginInsertRows(QModelIndex(), self._count, count - 1)
            self._count = count
            self.endInsertRows()
        elif count < self._count:
            self.beginRemoveRows(QModelIndex(), count, self._count - 1)
            self._count = count
            self.endRemoveRows()
        self.layoutChanged.emit()  # headings move with the conversations, and heights with the headings


class ConversationListView(QListView):
    """Enter or a click opens; the menu renames and archives."""

    opened = Signal(str)

    def __init__(self, store: ConversationsStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self.setAccessibleName("Conversations")
        self.setModel(ConversationModel(store, self))
        self.setItemDelegate(EntryDelegate(theme, self))
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setMouseTracking(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.clicked.connect(self._on_picked)
        self.activated.connect(self._on_picked)
        self.customContextMenuRequested.connect(self._on_menu_asked)
        theme.changed.connect(self.viewport().update)

    def mark(self, conversation_id: str) -> None:
        """Select the conversation in front, if the list has loaded it."""
        for row in range(min(self._store.count(), 200)):
            if self._store.at(row).id == conversation_id:
                self.setCurrentIndex(self.model().index(row, 0))
                return
        self.clearSelection()

    def _on_picked(self, index: QModelIndex) -> None:
        key: object = index.data(KEY)
        if isinstance(key, str):
            self.opened.emit(key)

    def _on_menu_asked(self, place: QPoint) -> None:
        index = self.indexAt(place)
        if not index.isValid():
            return
        conversation = self._store.at(index.row())
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Open").triggered.connect(lambda: self.opened.emit(conversation.id))
        menu.addAction("Rename…").triggered.connect(lambda: self._rename(conversation))
        menu.addAction("Archive").triggered.connect(lambda: self._store.archive(conversation.id))
        menu.popup(self.viewport().mapToGlobal(place))

    def _rename(self, conversation: Conversation) -> None:
        title, is_given = QInputDialog.getText(self, "Rename", "Title", text=conversation.title)
        if is_given and title.strip():
            self._store.rename(conversation.id, title.strip())
