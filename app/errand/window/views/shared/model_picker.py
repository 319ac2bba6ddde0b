"""The model picker: a search field over the models, with favourites and what each model is and can."""

from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QListView, QWidget

from errand.text.translation import grouped, tr
from errand.window.stores.model_choice import (
    MORE,
    ModelChoice,
    ModelLine,
    abilities_text,
    context_text,
    loaded_text,
    price_text,
)
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.theme.style import plain_tool_tip, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.shared.model_delegate import LINE, MARKS, LineMarks, ModelDelegate
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_vbox
from errand.window.widgets.dialogs import FramelessDialog, move_on_screen
from errand.window.widgets.labels import TextLabel

_MOVES = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -8, Qt.Key.Key_PageDown: 8}
_Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()
_BATCH = 100


class ModelListModel(QAbstractListModel):
    """The lines of the picker; only those that are painted are looked at."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._lines: Sequence[ModelLine] = ()
        self._marks = LineMarks()

    @property
    def lines(self) -> Sequence[ModelLine]:
        return self._lines

    def show_lines(self, lines: Sequence[ModelLine], marks: LineMarks) -> None:
        self.beginResetModel()
        self._lines, self._marks = lines, marks
        self.endResetModel()

    def set_marks(self, marks: LineMarks) -> None:
        self._marks = marks
        self.dataChanged.emit(self.index(0, 0), self.index(len(self._lines) - 1, 0))

    def rowCount(self, parent: _Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self._lines)

    def flags(self, index: _Index) -> Qt.ItemFlag:
        is_choice = index.isValid() and self._lines[index.row()].is_choice
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable if is_choice else Qt.ItemFlag.NoItemFlags

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        line = self._lines[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return line.name
            case Qt.ItemDataRole.AccessibleTextRole:
                return _spoken(line, self._marks)
            case Qt.ItemDataRole.ToolTipRole:
                return _tip(line)
            case _:
                return line if role == LINE else self._marks if role == MARKS else None


class ModelPicker(FramelessDialog):
    """Typing searches; Enter or a click emits `chosen`, Ctrl+D or a click on the star `favourite_changed`."""

    chosen = Signal(str)
    favourite_changed = Signal(str, bool)
    providers_requested = Signal()

    def __init__(self, theme: Theme, defaults: TaskOptionDefaults, current: str, parent: QWidget) -> None:
        super().__init__(theme, Qt.WindowType.Popup, parent)
        self.setAccessibleName(tr("Choose a model"))
        self.setWindowTitle(tr("Choose a model"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._theme = theme
        self._choice = ModelChoice(defaults.models, defaults.providers, current)
        self._default = defaults.model
        self._favourites, self._recent = defaults.favourites, defaults.recent
        self._is_unfolded = False
        self._is_star_clicked = False
        self._field = QLineEdit(self)
        self._field.setPlaceholderText(tr("Search models, or type provider/model"))
        self._field.setAccessibleName(tr("Search models"))
        self._list = QListView(self)
        self._model = ModelListModel(self)
        self._delegate = ModelDelegate(theme, self._list)
        self._set_up_list()
        self._empty = TextLabel(theme, tr("No models found. Type provider/model to use one that isn't listed."))
        self._empty.set_tone("muted")
        self._lay_out()
        self._field.textChanged.connect(self._on_text_changed)
        self._field.returnPressed.connect(self._on_return)
        self._field.installEventFilter(self)
        self._list.clicked.connect(self._on_clicked)
        self._delegate.star_clicked.connect(self._on_star_clicked)
        self._show()
        self._select_first()

    def show_models(self, defaults: TaskOptionDefaults) -> None:
        """Show what is there now; the search and the selected line stay."""
        key = self.selected
        self._choice = ModelChoice(defaults.models, defaults.providers, self._choice.current)
        self._default = defaults.model
        self._favourites, self._recent = defaults.favourites, defaults.recent
        self._show()
        rows = [row for row, line in enumerate(self._model.lines) if line.is_choice and line.key == key]
        if rows:
            self._select(rows[0])
        else:
            self._select_first()

    @property
    def shown(self) -> tuple[str, ...]:
        """The lines from the top, headings too."""
        return tuple(line.name for line in self._model.lines)

    @property
    def selected(self) -> str:
        """The id of the selected model; empty without one."""
        line = self._line()
        return line.key if line is not None else ""

    def open_beside(self, button: QWidget) -> None:
        """Above the button that opened it, or below it if there is more room; inside the window."""
        window, space = button.window(), self._theme.tokens.space_close
        above = button.mapTo(window, QPoint(0, 0)).y() - space
        below = window.height() - button.mapTo(window, QPoint(0, button.height())).y() - space
        width = min(self._theme.tokens.column * 5 // 6, window.width() - 2 * space)
        height = min(self._wanted_height(), window.height() * 3 // 5)
        self.resize(width, height)
        is_below = height > above and below > above
        corner = button.mapTo(window, QPoint(0, button.height() + space if is_below else -height - space))
        corner.setX(max(space, min(corner.x(), window.width() - width - space)))
        corner.setY(min(corner.y(), window.height() - height - space))
        corner.setY(max(space, corner.y()))
        move_on_screen(self, window.mapToGlobal(corner))
        self.show()
        self._field.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrow keys typed in the field move the selection; Ctrl+D marks a favourite."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if event.key() in _MOVES:
            self._move(_MOVES[Qt.Key(event.key())])
            return True
        if event.key() == Qt.Key.Key_D and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            line = self._line()
            if line is not None and line.model is not None:
                self._toggle_favourite(line.key)
            return True
        return super().eventFilter(watched, event)

    def _set_up_list(self) -> None:
        self._list.setAccessibleName(tr("Models"))
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setUniformItemSizes(True)  # otherwise Qt asks for the size of each of thousands of lines
        self._list.setLayoutMode(QListView.LayoutMode.Batched)  # the first lines are painted before the last is placed
        self._list.setBatchSize(_BATCH)
        self._list.setMouseTracking(True)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setModel(self._model)
        self._list.setItemDelegate(self._delegate)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        manage = push_button(tr("Manage models…"), "quiet")
        manage.clicked.connect(self._on_manage_clicked)
        foot = hbox(
            TextLabel(self._theme, tr("Ctrl+D: favourite"), tone="muted", size=tokens.size_small), STRETCH, manage
        )
        set_vbox(
            self,
            self._field,
            fill(self._list),
            fill(self._empty),
            foot,
            spacing=tokens.space_close,
            margins=(tokens.space_close, tokens.space_close, tokens.space_close, tokens.space_tight),
        )
        set_tool_tip(manage, tr("Add providers and models, and choose which ones appear here"))

    def _wanted_height(self) -> int:
        lines = len(self._model.lines) * self._delegate.line_height
        return lines + 4 * self._field.sizeHint().height()

    def _line(self) -> ModelLine | None:
        index = self._list.currentIndex()
        return self._model.lines[index.row()] if index.isValid() else None

    def _show(self) -> None:
        text = self._field.text()
        if text.strip():
            lines = self._choice.matches(text, self._favourites)
        else:
            lines = self._choice.lines(self._favourites, self._recent, unfolded=self._is_unfolded)
        self._model.show_lines(lines, self._marks)
        self._list.setVisible(bool(lines))
        self._empty.setVisible(not lines)

    def _select_first(self) -> None:
        """The current model without a search, else the best match."""
        lines = self._model.lines
        choice_rows = [row for row, line in enumerate(lines) if line.is_choice]
        current = (row for row in choice_rows if lines[row].key == self._choice.current)
        self._select(
            next(current, choice_rows[0])
            if choice_rows and not self._field.text()
            else choice_rows[0]
            if choice_rows
            else -1
        )

    def _select(self, row: int) -> None:
        index = self._model.index(row, 0)
        self._list.setCurrentIndex(index)
        if row == 1:
            self._list.scrollToTop()  # with the heading above it

    def _move(self, by: int) -> None:
        """Move to the next line that can be chosen, in this direction."""
        choice_rows = [row for row, line in enumerate(self._model.lines) if line.is_choice]
        if not choice_rows:
            return
        row = self._list.currentIndex().row()
        now = choice_rows.index(row) if row in choice_rows else 0
        self._select(choice_rows[max(0, min(len(choice_rows) - 1, now + by))])

    def _toggle_favourite(self, key: str) -> None:
        """The list stays as it is: the group of favourites shows the change when it is opened again."""
        is_new = key not in self._favourites
        self._favourites = (*self._favourites, key) if is_new else tuple(n for n in self._favourites if n != key)
        self._model.set_marks(self._marks)
        self.favourite_changed.emit(key, is_new)

    @property
    def _marks(self) -> LineMarks:
        return LineMarks(self._choice.current, self._default, frozenset(self._favourites))

    def _on_star_clicked(self, key: str) -> None:
        self._is_star_clicked = True
        self._toggle_favourite(key)

    def _on_text_changed(self) -> None:
        self._show()
        self._select_first()

    def _on_return(self) -> None:
        self._choose(self._line())

    def _on_clicked(self, index: QModelIndex) -> None:
        """Qt reports a click on the star as one on the line too."""
        if not self._is_star_clicked:
            self._choose(self._model.lines[index.row()])
        self._is_star_clicked = False

    def _choose(self, line: ModelLine | None) -> None:
        if line is None or not line.is_choice:
            return
        if line.key == MORE:
            row = self._list.currentIndex().row()
            self._is_unfolded = True
            self._show()
            self._select(min(row, len(self._model.lines) - 1))
            return
        self.close()
        self.chosen.emit(line.key)

    def _on_manage_clicked(self) -> None:
        self.close()
        self.providers_requested.emit()


def _spoken(line: ModelLine, marks: LineMarks) -> str:
    parts = [line.name, line.provider, *_facts(line)]
    if line.key and line.key == marks.current:
        parts.insert(1, "current")
    if marks.ticked is not None and line.kind != "more" and line.is_choice:
        parts.insert(1, tr("ticked") if line.key in marks.ticked else tr("not ticked"))
    if line.key in marks.favourites:
        parts.append(tr("favourite"))
    return ", ".join(part for part in parts if part)


def _facts(line: ModelLine) -> tuple[str, ...]:
    model = line.model
    if model is None:
        return ()
    return (context_text(model), price_text(model), abilities_text(model), loaded_text(model))


def _tip(line: ModelLine) -> str:
    if line.model is None:
        return ""
    model = line.model
    size = tr("Context: {tokens} tokens").format(tokens=grouped(model.context_tokens)) if model.context_tokens else ""
    price = price_text(model)
    cost = tr("Price per million tokens, in / out: {price}").format(price=price) if price else ""
    state = loaded_text(model)
    rows = (line.key, size, cost, _can(line), f"{state[:1].upper()}{state[1:]}")
    return plain_tool_tip("\n".join(row for row in rows if row))


def _can(line: ModelLine) -> str:
    can = abilities_text(line.model) if line.model is not None else ""
    return tr("Supports: {abilities}").format(abilities=can) if can else ""
