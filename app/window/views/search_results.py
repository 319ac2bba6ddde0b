"""What a search over all conversations found: the conversation, and the line that matches."""

from datetime import datetime

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QListView, QStackedLayout, QWidget

from app.protocol.conversations import SearchHit
from app.window.theme.theme import Theme
from app.window.views.days import short_time
from app.window.views.entry import DETAIL, HINT, EntryDelegate
from app.window.widgets.text_label import TextLabel

_MARKS = {ord("\u2068"): None, ord("\u2069"): None, ord("\n"): " "}


class SearchResultsView(QWidget):
    """`opened` with the conversation and the node of the hit that was picked."""

    opened = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._hits: tuple[SearchHit, ...] = ()
        self._model = QStandardItemModel(self)
        self._list = QListView()
        self._list.setAccessibleName("Search results")
        self._list.setModel(self._model)
        self._list.setItemDelegate(EntryDelegate(theme, self._list))
        self._list.setMouseTracking(True)
        self._list.clicked.connect(self._on_picked)
        self._list.activated.connect(self._on_picked)
        self._nothing = TextLabel(theme, "Nothing was found.", tone="muted", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._nothing.setMargin(theme.tokens.space_close)
        self._layers = QStackedLayout(self)
        self._layers.addWidget(self._list)
        self._layers.addWidget(self._nothing)
        self.setFocusProxy(self._list)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._model.item(row).text() for row in range(self._model.rowCount()))

    def show_hits(self, hits: tuple[SearchHit, ...]) -> None:
        self._hits = hits
        self._model.clear()
        now = datetime.now().astimezone()
        for hit in hits:
            self._model.appendRow(_item(hit, now))
        self._layers.setCurrentWidget(self._list if hits else self._nothing)
        if hits:
            self._list.setCurrentIndex(self._model.index(0, 0))

    def open_marked(self) -> None:
        """Go to the marked hit."""
        self._on_picked(self._list.currentIndex())

    def _on_picked(self, index: QModelIndex) -> None:
        if index.isValid():
            hit = self._hits[index.row()]
            self.opened.emit(hit.conversation_id, hit.node_id)


def _item(hit: SearchHit, now: datetime) -> QStandardItem:
    item = QStandardItem(hit.conversation_title)
    item.setEditable(False)
    snippet = " ".join(hit.snippet.translate(_MARKS).split())
    item.setData(snippet, DETAIL)
    item.setData(short_time(hit.created_at, now), HINT)
    item.setData(f"{hit.conversation_title}: {snippet}", Qt.ItemDataRole.AccessibleTextRole)
    return item
