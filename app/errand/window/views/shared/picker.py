"""A list to choose one item from by typing: command palette, model choice, tab list."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QVBoxLayout, QWidget

from errand.text.translation import tr
from errand.window.theme.style import set_style
from errand.window.theme.theme import Theme
from errand.window.views.shared.item_delegate import HINT, KEY, ItemDelegate
from errand.window.widgets.dialogs import FramelessDialog, move_on_screen

_MAX_SHOWN = 60
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


@dataclass(frozen=True, slots=True)
class PickerItem:
    """`hint` is on the right: a shortcut, or the kind of item. `search_words` are matched too."""

    key: str
    text: str
    hint: str = ""
    search_words: str = ""

    @property
    def searched_text(self) -> str:
        """The searched text."""
        return f"{self.text} {self.search_words}".lower()


class PickerDialog(FramelessDialog):
    """An item must contain every typed word. Enter chooses the selected one, Esc cancels."""

    chosen = Signal(str)
    typed = Signal(str)

    def __init__(self, theme: Theme, title: str, items: tuple[PickerItem, ...], parent: QWidget) -> None:
        super().__init__(theme, Qt.WindowType.Popup, parent)
        self.setAccessibleName(title)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._items = items
        self._width, self._space = theme.tokens.column * 3 // 4, theme.tokens.space_close
        self._field = QLineEdit(self)
        self._field.setPlaceholderText(title)
        self._field.setAccessibleName(title)
        self._list = QListView(self)
        self._list.setAccessibleName(tr("Results"))
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setItemDelegate(ItemDelegate(theme, self._list))
        self._list.setMouseTracking(True)
        self._model = QStandardItemModel(self)
        self._list.setModel(self._model)
        self._empty = QLabel(tr("No results"), self)
        set_style(self._empty, "tone", "muted")
        column = QVBoxLayout(self)
        column.addWidget(self._field)
        column.addWidget(self._list)
        column.addWidget(self._empty)
        self._field.textChanged.connect(self._on_text_changed)
        self._field.textChanged.connect(self.typed)
        self._field.returnPressed.connect(self._on_return)
        self._field.installEventFilter(self)
        self._list.clicked.connect(self._on_clicked)
        self._on_text_changed("")

    def add(self, items: tuple[PickerItem, ...]) -> None:
        """Add items that were found later; keeps the selection."""
        listed_keys = {choice.key for choice in self._items}
        new = tuple(choice for choice in items if choice.key not in listed_keys)
        if new:
            marked = self._list.currentIndex().row()
            self._items = (*self._items, *new)
            self._show()
            self._select(max(0, marked))

    @property
    def shown(self) -> tuple[str, ...]:
        """The matching items, from the top."""
        return tuple(self._model.item(row).text() for row in range(self._model.rowCount()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrow keys typed in the field move the selection."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() in _MOVES:
            self._move(event.key())
            return True
        return super().eventFilter(watched, event)

    def open_over(self, window: QWidget) -> None:
        """Horizontally centred, near the top of a window."""
        self._size_to(window)
        corner = QPoint((window.width() - self.width()) // 2, window.height() // 8)
        self._open_at(window.mapToGlobal(corner))

    def open_above(self, button: QWidget) -> None:
        """Open with the lower edge on the button that opened it."""
        self._size_to(button.window())
        self._open_at(button.mapToGlobal(QPoint(0, -self.height() - self._space)))

    def _size_to(self, window: QWidget) -> None:
        self.resize(min(self._width, window.width() - 2 * self._space), window.height() // 2)

    def _open_at(self, corner: QPoint) -> None:
        move_on_screen(self, corner)
        self.show()
        self._field.setFocus()

    def _move(self, key: int) -> None:
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -8, Qt.Key.Key_PageDown: 8}
        row = self._list.currentIndex().row() + steps[Qt.Key(key)]
        self._select(max(0, min(self._model.rowCount() - 1, row)))

    def _select(self, row: int) -> None:
        self._list.setCurrentIndex(self._model.index(row, 0))

    def _on_text_changed(self, text: str) -> None:
        self._show()
        self._select(0)

    def _show(self) -> None:
        search_words = self._field.text().lower().split()
        matches = [choice for choice in self._items if all(word in choice.searched_text for word in search_words)]
        self._model.clear()
        for choice in matches[:_MAX_SHOWN]:
            self._model.appendRow(_item(choice))
        self._list.setVisible(bool(matches))
        self._empty.setVisible(not matches)

    def _on_return(self) -> None:
        self._choose(self._list.currentIndex())

    def _on_clicked(self, index: QModelIndex) -> None:
        self._choose(index)

    def _choose(self, index: QModelIndex) -> None:
        key: object = index.data(KEY)
        if isinstance(key, str):
            self.close()
            self.chosen.emit(key)


def _item(choice: PickerItem) -> QStandardItem:
    item = QStandardItem(choice.text)
    item.setEditable(False)
    item.setData(choice.hint, HINT)
    item.setData(choice.key, KEY)
    item.setData(f"{choice.text} {choice.hint}".strip(), Qt.ItemDataRole.AccessibleTextRole)
    return item
