"""One message for several models at once; each answers on its own branch."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QListView, QPlainTextEdit, QWidget

from errand.client.conversation.branch import MAX_COMPARED
from errand.text.translation import tr
from errand.window.stores.model_choice import MORE, ModelChoice, ModelLine, model_name, shown_name
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.shared.model_delegate import LineMarks, ModelDelegate
from errand.window.views.shared.model_picker import ModelListModel
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import ElidedLabel, TextLabel

_MIN_MODELS = 2
_ABOUT = tr("Each model replies on its own branch, all at the same time. Compare them live and continue with one.")
_TOO_FEW = tr("Only one model is set up. Add another provider in the settings to compare.")
_CHOOSE = tr("Choose 2 to 4 models")
_FULL = tr("4 models at most. Untick one to choose another.")


class ModelTickList(QListView):
    """The models in the order of the model picker, with boxes. A click or Space ticks one, at most four.

    Emits `ticked_changed` after each change, `full` if one more was wanted, and `favourite_changed` with a model.
    """

    ticked_changed = Signal()
    full = Signal()
    favourite_changed = Signal(str, bool)

    def __init__(self, theme: Theme, defaults: TaskOptionDefaults, ticked: Sequence[str]) -> None:
        super().__init__()
        self._choice = ModelChoice(defaults.models, defaults.providers, "")
        self._names = {model.id: shown_name(model) for model in defaults.models}
        self._favourites = defaults.favourites
        self._recent = tuple(dict.fromkeys((*ticked, *defaults.recent)))
        self._ticked = list(ticked)
        self._is_unfolded = self._is_star_clicked = False
        self._search = ""
        self._model = ModelListModel(self)
        self._delegate = ModelDelegate(theme, self)
        self.setAccessibleName(tr("Models"))
        self.setUniformItemSizes(True)  # otherwise Qt asks for the size of each of thousands of lines
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setModel(self._model)
        self.setItemDelegate(self._delegate)
        self.clicked.connect(self._on_clicked)
        self._delegate.star_clicked.connect(self._on_star_clicked)
        self._show()
        self._select_first()

    @property
    def ticked(self) -> tuple[str, ...]:
        """The ids of the ticked models in the order in which they were ticked."""
        return tuple(self._ticked)

    @property
    def ticked_names(self) -> str:
        return ", ".join(self._names.get(model_id) or model_name(model_id) for model_id in self._ticked)

    @property
    def shown(self) -> tuple[str, ...]:
        """The lines from the top, headings too."""
        return tuple(line.name for line in self._model.lines)

    def index_of(self, name: str) -> QModelIndex:
        """Return the first line with this name."""
        return self._model.index(self.shown.index(name), 0)

    def search(self, text: str) -> None:
        """Show the models with these words; all for an empty text."""
        self._search = text
        self._show()
        self._select_first()

    def toggle_current(self) -> None:
        """Tick the selected model, or untick it."""
        index = self.currentIndex()
        if index.isValid():
            self._toggle(self._model.lines[index.row()])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() in keys and event.modifiers() in (
            Qt.KeyboardModifier.NoModifier,
            Qt.KeyboardModifier.KeypadModifier,
        ):
            self.toggle_current()
            return
        super().keyPressEvent(event)

    def _show(self) -> None:
        if self._search:
            lines = self._choice.matches(self._search, self._favourites)
        else:
            lines = self._choice.lines(self._favourites, self._recent, unfolded=self._is_unfolded)
        self._model.show_lines(lines, self._marks)

    @property
    def _marks(self) -> LineMarks:
        return LineMarks(favourites=frozenset(self._favourites), ticked=frozenset(self._ticked))

    def _select_first(self) -> None:
        first = next((row for row, line in enumerate(self._model.lines) if line.is_choice), -1)
        self.setCurrentIndex(self._model.index(first, 0))
        self.scrollToTop()

    def _toggle(self, line: ModelLine) -> None:
        if line.key == MORE:
            row = self.currentIndex().row()
            self._is_unfolded = True
            self._show()
            self.setCurrentIndex(self._model.index(row, 0))
            return
        if not line.is_choice:
            return
        if line.key in self._ticked:
            self._ticked.remove(line.key)
        elif len(self._ticked) < MAX_COMPARED:
            self._ticked.append(line.key)
        else:
            self.full.emit()
            return
        self._model.set_marks(self._marks)
        self.ticked_changed.emit()

    def _on_clicked(self, index: QModelIndex) -> None:
        """Qt reports a click on the star as one on the line too."""
        if not self._is_star_clicked:
            self._toggle(self._model.lines[index.row()])
        self._is_star_clicked = False

    def _on_star_clicked(self, key: str) -> None:
        self._is_star_clicked = True
        is_new = key not in self._favourites
        self._favourites = (*self._favourites, key) if is_new else tuple(n for n in self._favourites if n != key)
        self._model.set_marks(self._marks)
        self.favourite_changed.emit(key, is_new)


class AskModelsDialog(QDialog):
    """Emits `asked` with the text and the models in the order of ticking. Esc cancels and keeps the text."""

    asked = Signal(str, object)

    def __init__(
        self, theme: Theme, defaults: TaskOptionDefaults, ticked: Sequence[str], text: str, parent: QWidget
    ) -> None:
        """`ticked` are ids of the models that are ticked at first; those that are not offered are left out."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Ask several models"))
        self._theme = theme
        offered = {model.id for model in defaults.models}
        self._can_compare = len(offered) >= _MIN_MODELS
        self.field = QPlainTextEdit(text)
        self.search = SearchField(theme, tr("Search models"))
        self.list = ModelTickList(
            theme, defaults, [model_id for model_id in ticked if model_id in offered][:MAX_COMPARED]
        )
        self.ask = push_button(tr("Ask"), "primary")
        self._count = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._lay_out()
        self._connect()
        self._show_count()
        (self.search if text.strip() else self.field).setFocus()

    @property
    def chosen(self) -> tuple[str, ...]:
        return self.list.ticked

    @property
    def note(self) -> str:
        """The text of the line beside the buttons."""
        return self._count.full_text

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter in the search field ticks the model that was found."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress or event.modifiers():
            return super().eventFilter(watched, event)
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            return super().eventFilter(watched, event)
        if self.search.text().strip():
            self.list.toggle_current()
            self.search.selectAll()
        return True

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        resize_on_screen(self, tokens.column * 5 // 6, tokens.column * 5 // 6)
        set_style(self.field, "look", "field")
        self.field.setAccessibleName(tr("Message"))
        self.field.setPlaceholderText(tr("What do you want to ask?"))
        self.field.setTabChangesFocus(True)
        self.field.setMaximumHeight(4 * tokens.space_far)
        cancel = push_button(tr("Cancel"))
        cancel.clicked.connect(self.reject)
        set_vbox(
            self,
            TextLabel(self._theme, _ABOUT, tone="muted", wrap=True),
            self.field,
            self.search,
            self.list,
            hbox(fill(self._count), cancel, self.ask),
            spacing=tokens.space_normal,
            margins=(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_wide),
        )

    def _connect(self) -> None:
        self.field.textChanged.connect(self._show_count)
        self.search.textChanged.connect(self.list.search)
        self.search.down_pressed.connect(self.list.setFocus)
        self.search.installEventFilter(self)
        self.list.ticked_changed.connect(self._show_count)
        self.list.full.connect(self._on_full)
        self.ask.clicked.connect(self._on_ask_clicked)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self).activated.connect(self._on_ask_clicked)

    def _show_count(self) -> None:
        enough = _MIN_MODELS <= len(self.chosen) <= MAX_COMPARED
        note = self.list.ticked_names if self._can_compare and self.chosen else _CHOOSE
        self._count.set_text(note if self._can_compare else _TOO_FEW)
        self._count.set_tone("muted")
        self.ask.setEnabled(enough and bool(self.field.toPlainText().strip()))

    def _on_full(self) -> None:
        self._count.set_text(_FULL)
        self._count.set_tone("waiting")

    def _on_ask_clicked(self) -> None:
        if self.ask.isEnabled():
            self.asked.emit(self.field.toPlainText().strip(), self.chosen)
            self.accept()
