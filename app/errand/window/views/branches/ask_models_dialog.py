"""One message for several models at once; each answers on its own branch."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.search_field import SearchField

_MIN_MODELS, _MAX_MODELS = 2, 8
_ABOUT = "Each answers on a branch of its own, all at the same time. Then you see two side by side, and go on with one."
_TOO_FEW = "There are not two models that can be used. Set up another provider in the settings first."


class AskModelsDialog(QDialog):
    """Emits `asked` with the text and the models in list order. Esc cancels and keeps the text in the composer."""

    asked = Signal(str, object)

    def __init__(self, theme: Theme, models: tuple[str, ...], chosen: str, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Ask several models")
        self._theme = theme
        self.field = QPlainTextEdit(text)
        self.search = SearchField(theme, "Find a model")
        self.list = QListWidget()
        self.ask = push_button("Ask", "primary")
        self._count = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._fill(models, chosen)
        self._lay_out()
        self._connect()
        self._show_count()
        (self.search if text.strip() else self.field).setFocus()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The checked models."""
        items = (self.list.item(row) for row in range(self.list.count()))
        return tuple(item.text() for item in items if item.checkState() == Qt.CheckState.Checked)

    def _fill(self, models: tuple[str, ...], chosen: str) -> None:
        self.list.ensurePolished()  # each row is measured when it is added, with the current style
        for model in models:
            item = QListWidgetItem(model, self.list)
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if model == chosen else Qt.CheckState.Unchecked)
            if model == chosen:
                self.list.setCurrentItem(item)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        resize_on_screen(self, tokens.column * 2 // 3, tokens.column * 3 // 4)
        set_style(self.field, "look", "field")
        self.field.setAccessibleName("Message")
        self.field.setPlaceholderText("What is to be answered?")
        self.field.setTabChangesFocus(True)
        self.field.setMaximumHeight(6 * tokens.space_far)
        self.list.setAccessibleName("Models")
        cancel = push_button("Cancel")
        cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addWidget(self._count, 1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.ask)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_wide)
        column.setSpacing(tokens.space_normal)
        column.addWidget(TextLabel(self._theme, _ABOUT, tone="muted", wrap=True))
        for part in (self.field, self.search, self.list):
            column.addWidget(part)
        column.addLayout(buttons)

    def _connect(self) -> None:
        self.field.textChanged.connect(self._show_count)
        self.search.textChanged.connect(self._on_searched)
        self.search.down_pressed.connect(self.list.setFocus)
        self.list.itemChanged.connect(self._show_count)
        self.ask.clicked.connect(self._on_ask_clicked)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self).activated.connect(self._on_ask_clicked)

    def _show_count(self) -> None:
        number = len(self.chosen)
        enough = _MIN_MODELS <= number <= _MAX_MODELS
        if self.list.count() < _MIN_MODELS:
            words = _TOO_FEW
        else:
            words = f"{number} chosen" if enough else f"{number} chosen: take {_MIN_MODELS} to {_MAX_MODELS}"
        self._count.setText(words)
        self.ask.setEnabled(enough and bool(self.field.toPlainText().strip()))

    def _on_searched(self, text: str) -> None:
        """Checked models stay visible."""
        words = text.casefold().split()
        for row in range(self.list.count()):
            item = self.list.item(row)
            fits = all(word in item.text().casefold() for word in words)
            item.setHidden(not fits and item.checkState() != Qt.CheckState.Checked)

    def _on_ask_clicked(self) -> None:
        if self.ask.isEnabled():
            self.asked.emit(self.field.toPlainText().strip(), self.chosen)
            self.accept()
