"""A progress bar with a text."""

from PySide6.QtWidgets import QProgressBar, QWidget

from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import set_vbox
from errand.window.widgets.labels import TextLabel

_SCALE = 1000  # steps of a progress bar


class ProgressView(QWidget):
    """A text, and below it a bar; hidden without progress."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._text = TextLabel(theme, tone="muted")
        self._bar = QProgressBar()
        self._bar.setRange(0, _SCALE)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(name)
        set_vbox(self, self._text, self._bar, spacing=theme.tokens.space_tight)
        self.hide()

    def show_progress(self, text: str, done: int, total: int) -> None:
        """`total` 0 means that it is not known yet."""
        self._text.setText(text)
        self._bar.setAccessibleDescription(text)
        self._bar.setRange(0, _SCALE if total else 0)
        self._bar.setValue(round(_SCALE * min(done, total) / total) if total else 0)
        self.show()
