"""The control of a setting that names a model: the model picker of the composer behind a button."""

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QPushButton

from errand.text.translation import tr
from errand.window.stores.catalog import ModelStore
from errand.window.stores.model_choice import model_name, shown_name
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.theme.style import focus_by_keys, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.shared.model_picker import ModelPicker

_EDGES = 40  # padding, border and arrow
_ARROW = 14


class ModelField(QPushButton):
    """Shows a model by name. Enter, Space or a click open the picker, which also accepts an id that is not listed.

    `chosen` gives the id. `title` says what the model is for. `unset` is shown for an empty id, with the default model
    if `has_default`.
    """

    chosen = Signal(str)
    providers_requested = Signal()

    def __init__(self, theme: Theme, models: ModelStore, title: str, unset: str, *, has_default: bool) -> None:
        super().__init__()
        self._theme, self._models = theme, models
        self._unset, self._has_default = unset, has_default
        self._title = title
        self._full_text = self._model = ""
        self.setAutoDefault(True)  # Enter opens it
        set_style(self, "look", "field")
        focus_by_keys(self)
        self.clicked.connect(self.pick)
        models.changed.connect(self._show)
        theme.changed.connect(self._show_icon)
        self._show_icon()
        self._show()

    def show_model(self, model: str) -> None:
        self._model = model
        self._show()

    def pick(self) -> None:
        """Open the picker."""
        models = self._models
        current = self._model or (models.default if self._has_default else "")
        picker = ModelPicker(
            self._theme,
            TaskOptionDefaults(
                models=models.offered,
                model=models.default,
                providers=models.providers,
                favourites=models.favourites,
                recent=models.recent,
            ),
            current,
            self,
        )
        picker.chosen.connect(self.chosen)
        picker.favourite_changed.connect(models.set_favourite)
        picker.providers_requested.connect(self.providers_requested)
        picker.open_beside(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the button with the arrow of a combo box."""
        super().paintEvent(event)
        side, space = self._theme.pixels(_ARROW), self._theme.tokens.space_close
        arrow_rect = QRect(self.width() - side - space, (self.height() - side) // 2, side, side)
        painter = QPainter(self)
        self._theme.icon("chevron-down", "muted").paint(painter, arrow_rect)
        painter.end()

    def _show(self) -> None:
        models = self._models
        names = {model.id: shown_name(model) for model in models.offered}
        if self._model:
            text = names.get(self._model) or model_name(self._model)
        elif self._has_default and models.default:
            text = f"{self._unset}: {names.get(models.default) or model_name(models.default)}"
        elif self._has_default and models.is_empty:
            text = tr("Choose a model")
        else:
            text = self._unset
        self._full_text = text
        self.setAccessibleName(f"{self._title}: {text}")
        set_tool_tip(self, self._model or (models.default if self._has_default else ""))
        self._elide()

    def _elide(self) -> None:
        room = self.width() - self._theme.pixels(_EDGES) - self.iconSize().width()
        self.setText(self.fontMetrics().elidedText(self._full_text, Qt.TextElideMode.ElideRight, room))

    def _show_icon(self) -> None:
        self.setIcon(self._theme.icon("brain", "muted"))
