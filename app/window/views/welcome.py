"""What a new conversation says before its first message; where no model was found it offers the tour."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget

from app.client.tour import LABEL
from app.window.models import ModelStore
from app.window.theme.theme import Theme
from app.window.widgets.empty_state import EmptyState

_USUAL = (
    "Describe a job below and choose the folder to work in. The agent tells what it does, asks before anything "
    "risky, and stops when you say so. You can start other tasks meanwhile."
)
_FIRST = (
    "Play the tour to see three tasks at work: "
    + LABEL
    + ", and nothing leaves this machine. For your own work set up "
    "a model below: with a key of yours, or with a local server such as Ollama."
)


class WelcomeView(QStackedWidget):
    """`tour_asked` when the tour is to be played."""

    tour_asked = Signal()

    def __init__(self, models: ModelStore, theme: Theme) -> None:
        super().__init__()
        self._models = models
        self.usual = EmptyState(theme, "message-square-plus", "What is to be done?", _USUAL)
        self.first = EmptyState(theme, "play", "No model was found yet", _FIRST, "Play the tour")
        self.addWidget(self.usual)
        self.addWidget(self.first)
        self.first.acted.connect(self.tour_asked)
        models.changed.connect(self._on_models_changed)
        self._on_models_changed()

    def _on_models_changed(self) -> None:
        self.setCurrentWidget(self.first if self._models.is_empty else self.usual)
