"""The list of entries: the newest first, page by page, or the hits of a search with their scores."""

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QListView

from errand.client.number_format import day_text
from errand.client.texts.messages import repetition_text, speaker_text
from errand.protocol.memory import MemoryItem
from errand.text.translation import decimal, tr
from errand.window.stores.memory.entries import MemoryEntryStore
from errand.window.theme.theme import Theme
from errand.window.views.memory.texts import origin_line
from errand.window.views.shared.item_delegate import DETAIL, HINT, ItemDelegate
from errand.window.widgets.labels import markdown_line, one_line

_MAX_LINE_LENGTH = 300  # characters of a line in the list

_Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


def _line_of(item: MemoryItem) -> str:
    """Agents write Markdown."""
    return (markdown_line if item.role == "agent" else one_line)(item.text, _MAX_LINE_LENGTH)


class EntryModel(QAbstractListModel):
    def __init__(self, store: MemoryEntryStore, parent: QObject) -> None:
        super().__init__(parent)
        self._store = store
        self._count = store.count()
        store.reset.connect(self._on_reset)
        store.inserted.connect(self._on_inserted)
        store.removed.connect(self._on_removed)

    def at(self, index: _Index) -> MemoryItem | None:
        is_there = index.isValid() and index.row() < self._store.count()
        return self._store.at(index.row()) if is_there else None

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else self._count

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        item = self.at(index)
        if item is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _line_of(item)
            case _ if role == HINT:
                return self._hint(item)
            case _ if role == DETAIL:
                return origin_line(speaker_text(item.role, item.speaker), item)
            case Qt.ItemDataRole.AccessibleTextRole:
                origin = origin_line(f"{speaker_text(item.role, item.speaker)}, {self._hint(item)}", item)
                return f"{_line_of(item)}: {origin}"
            case _:
                return None

    def canFetchMore(self, parent: _Index) -> bool:
        return not parent.isValid() and self._store.has_more

    def fetchMore(self, parent: _Index) -> None:
        self._store.fetch_more()

    def _hint(self, item: MemoryItem) -> str:
        local = item.at.astimezone()
        day = day_text(local)
        # The list before has no score, while a search is under way.
        score = decimal(f"{item.score:.2f}") if item.score else ""
        return " · ".join(filter(None, (repetition_text(item), score, day)))

    def _on_reset(self) -> None:
        self.beginResetModel()
        self._count = self._store.count()
        self.endResetModel()

    def _on_inserted(self, first: int, count: int) -> None:
        self.beginInsertRows(_ROOT, first, first + count - 1)
        self._count += count
        self.endInsertRows()

    def _on_removed(self, index: int) -> None:
        self.beginRemoveRows(_ROOT, index, index)
        self._count -= 1
        self.endRemoveRows()


class EntryListView(QListView):
    """Emits `selected` with the selected entries, `source_requested` on Enter, and `forget_requested` on Delete.

    `loaded` says that all entries are new, and none is selected; `back_requested` is emitted on Up at the first entry.
    """

    selected = Signal(object)
    loaded = Signal()
    source_requested = Signal()
    forget_requested = Signal()
    back_requested = Signal()

    def __init__(self, store: MemoryEntryStore, theme: Theme) -> None:
        super().__init__()
        self._model = EntryModel(store, self)
        self.setAccessibleName(tr("Memory entries"))
        self.setModel(self._model)
        self.setItemDelegate(ItemDelegate(theme, self))
        self.setUniformItemSizes(True)  # otherwise Qt would measure every one of 100,000
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMouseTracking(True)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)
        self._model.modelReset.connect(self.loaded)
        self._model.rowsRemoved.connect(self._on_removed)
        self.doubleClicked.connect(self.source_requested)
        theme.changed.connect(self.viewport().update)

    @property
    def lines(self) -> tuple[str, ...]:
        """The line of each loaded entry."""
        return tuple(str(self._model.index(row, 0).data()) for row in range(self._model.rowCount()))

    def select(self, row: int) -> None:
        self.setCurrentIndex(self._model.index(row, 0))

    def select_entry(self, number: int) -> None:
        """Select the entry with this number; nothing if it is not in the list."""
        rows = (row for row in range(self._model.rowCount()) if self._number_at(row) == number)
        if (row := next(rows, None)) is not None:
            self.select(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.source_requested.emit()
        elif event.key() == Qt.Key.Key_Delete:
            self.forget_requested.emit()
        elif event.key() == Qt.Key.Key_Up and self.currentIndex().row() <= 0:
            self.back_requested.emit()
        else:
            super().keyPressEvent(event)

    def _number_at(self, row: int) -> int | None:
        item = self._model.at(self._model.index(row, 0))
        return item.number if item is not None else None

    def _on_selection_changed(self) -> None:
        rows = sorted(index.row() for index in self.selectedIndexes())
        items = (self._model.at(self._model.index(row, 0)) for row in rows)
        self.selected.emit(tuple(item for item in items if item is not None))

    def _on_removed(self) -> None:
        """Select the entry that has moved into the place of a removed one."""
        if self.currentIndex().isValid() and not self.selectedIndexes():
            self.select(self.currentIndex().row())
