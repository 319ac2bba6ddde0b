"""The usage table: sorted by any column; a row opens its conversation."""

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from errand.client.number_format import money, token_count
from errand.client.texts.usage import unpriced_text
from errand.protocol.usage import UsageRow
from errand.text.translation import decimal, tr
from errand.window.theme.style import plain_tool_tip
from errand.window.theme.theme import Theme

_ROOT = QModelIndex()
_Index = QModelIndex | QPersistentModelIndex
_COLUMNS = (tr("Cost"), tr("Input"), tr("Cached"), tr("Output"), tr("Turns"), tr("Tasks"))
_TOKENS = (2, 4)
_NUMBERS = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_WORDS = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class UsageModel(QAbstractTableModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: tuple[UsageRow, ...] = ()
        self._noun = ""
        self._sorted = (1, Qt.SortOrder.DescendingOrder)

    def show(self, rows: tuple[UsageRow, ...], noun: str) -> None:
        self.beginResetModel()
        self.rows, self._noun = rows, noun
        self._sort_rows()
        self.endResetModel()

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else 1 + len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _NUMBERS if section else _WORDS
        return (self._noun, *_COLUMNS)[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self.rows[index.row()], index.column()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _NUMBERS if column else _WORDS
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tool_tip(row.title) if column == 0 else (unpriced_text(row) or None) if column == 1 else None
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if column == 0:
            return row.title
        if column == 1:
            return _paid(row)
        value = _value(row, column)
        return token_count(int(value), row.usage) if column in _TOKENS else decimal(f"{value:,}")

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted = (column, order)
        self.layoutAboutToBeChanged.emit()
        self._sort_rows()
        self.layoutChanged.emit()

    def _sort_rows(self) -> None:
        column, order = self._sorted
        is_descending = order is Qt.SortOrder.DescendingOrder
        if column == 0:
            self.rows = tuple(sorted(self.rows, key=lambda row: row.title.casefold(), reverse=is_descending))
        else:
            self.rows = tuple(sorted(self.rows, key=lambda row: _value(row, column), reverse=is_descending))


class UsageTableView(QTableView):
    """`opened` gives the key of a row on a click or Enter."""

    opened = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._model = UsageModel(self)
        self.setModel(self._model)
        self.setSortingEnabled(True)
        self.sortByColumn(1, Qt.SortOrder.DescendingOrder)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(theme.tokens.size_base + 2 * theme.tokens.space_close)
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.activated.connect(self._on_opened)
        self.clicked.connect(self._on_opened)

    @property
    def rows(self) -> tuple[UsageRow, ...]:
        """Return the rows in the displayed order."""
        return self._model.rows

    def show_rows(self, rows: tuple[UsageRow, ...], noun: str) -> None:
        """`noun` is what the rows stand for: a model, a conversation."""
        self.setAccessibleName(tr("Usage by {noun}").format(noun=noun))
        self._model.show(rows, noun)

    def _on_opened(self, index: QModelIndex) -> None:
        row = self._model.rows[index.row()]
        if row.by == "conversation":
            self.opened.emit(row.key)


def _paid(row: UsageRow) -> str:
    """Return the cost, with `?` for turns whose price is unknown."""
    cost = money(row.usage)
    return f"{cost} + ?" if cost and row.unpriced_turns else cost or ("?" if row.unpriced_turns else "")


def _value(row: UsageRow, column: int) -> float:
    used = row.usage
    cost = used.cost_usd if used.cost_usd is not None else -1.0
    return (cost, used.input_tokens, used.cache_read_tokens, used.output_tokens, row.turns, row.tasks)[column - 1]
