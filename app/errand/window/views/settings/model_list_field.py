"""The control of a setting that names several models, in their order: a model picker for each, and one to add more."""

from functools import partial
from itertools import pairwise

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractButton, QVBoxLayout, QWidget

from errand.text.translation import tr
from errand.window.stores.catalog import ModelStore
from errand.window.stores.model_choice import model_name
from errand.window.theme.theme import Theme
from errand.window.views.settings.model_field import ModelField
from errand.window.widgets.boxes import fill, hbox, widget_of
from errand.window.widgets.buttons import IconButton


class ModelListField(QWidget):
    """`chosen` gives the ids, separated by commas. A model is in the list once."""

    chosen = Signal(str)
    providers_requested = Signal()

    def __init__(self, theme: Theme, models: ModelStore, title: str) -> None:
        super().__init__()
        self._theme, self._models, self._title = theme, models, title
        self._ids: list[str] = []
        self._rows: list[QWidget] = []
        # The button that gets the focus once the list is made anew: of a row, the first or the second one.
        self._next_focus = (0, 0)
        self._add = self._made_field(title, tr("Add model"))
        self._add.chosen.connect(self._on_added)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.tokens.space_tight)
        self._column.addWidget(self._add)
        self.setFocusProxy(self._add)

    def show_models(self, value: str) -> None:
        """`value` has ids, separated by commas."""
        ids = [part.strip() for part in value.split(",") if part.strip()]
        if ids == self._ids:
            return
        had_focus = any(row.isAncestorOf(self.focusWidget() or self) for row in self._rows)
        self._ids = ids
        for row in self._rows:
            row.hide()
            self._column.removeWidget(row)
            row.deleteLater()
        self._rows = [self._made_row(index) for index in range(len(ids))]
        for index, row in enumerate(self._rows):
            self._column.insertWidget(index, row)
        stops = [*(stop for row in self._rows for stop in row.findChildren(QAbstractButton)), self._add]
        for before, after in pairwise(stops):
            QWidget.setTabOrder(before, after)
        if had_focus:
            self._button_to_focus().setFocus(Qt.FocusReason.OtherFocusReason)

    def _button_to_focus(self) -> QWidget:
        """Return the button that gets the focus: the same model after a move, else what has its position now."""
        index, button = self._next_focus
        return self._rows[index].findChildren(QAbstractButton)[button] if index < len(self._rows) else self._add

    def _made_field(self, title: str, unset: str) -> ModelField:
        field = ModelField(self._theme, self._models, title, unset, has_default=False)
        field.providers_requested.connect(self.providers_requested)
        return field

    def _made_row(self, place: int) -> QWidget:
        """Return the model at a place, with what moves it up and removes it."""
        model = self._ids[place]
        name = model_name(model)
        field = self._made_field(f"{self._title} {place + 1}", "")
        field.show_model(model)
        field.chosen.connect(partial(self._on_replaced, place))
        buttons: list[IconButton] = []
        if place:
            up = IconButton(self._theme, "arrow-up", tr("Move {name} up").format(name=name))
            up.clicked.connect(partial(self._on_moved_up, place))
            buttons.append(up)
        remove = IconButton(self._theme, "x", tr("Remove {name}").format(name=name))
        remove.clicked.connect(partial(self._on_removed, place))
        return widget_of(hbox(fill(field), *buttons, remove, spacing=0))

    def _change(self, ids: list[str]) -> None:
        self.chosen.emit(", ".join(dict.fromkeys(ids)))

    def _on_added(self, model: str) -> None:
        self._change([*self._ids, model])

    def _on_replaced(self, place: int, model: str) -> None:
        self._next_focus = (place, 0)
        self._change([*self._ids[:place], model, *self._ids[place + 1 :]])

    def _on_removed(self, place: int) -> None:
        self._next_focus = (place, 0)
        self._change([*self._ids[:place], *self._ids[place + 1 :]])

    def _on_moved_up(self, place: int) -> None:
        self._next_focus = (place - 1, 1 if place > 1 else 0)  # the first row has no button to move it up
        ids = self._ids
        self._change([*ids[: place - 1], ids[place], ids[place - 1], *ids[place + 1 :]])
