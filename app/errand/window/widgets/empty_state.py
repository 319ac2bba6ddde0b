"""The text of an empty view: its purpose and the first action."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import hbox, stretch
from errand.window.widgets.labels import TextLabel

_ICON = 32
_WIDTH = 360


class EmptyStateView(QWidget):
    """Emits `action_clicked` when the button is pressed; without `action` there is no button."""

    action_clicked = Signal()

    def __init__(self, theme: Theme, icon: str, title: str, text: str, action: str = "") -> None:
        super().__init__()
        self._theme = theme
        self._icon = icon
        self._picture = QLabel()
        self._button = push_button(action, "primary")
        if not action:
            self._button.hide()
        self._button.clicked.connect(self._on_action_clicked)
        self._lay_out(title, text)
        self._on_theme_changed()
        theme.changed.connect(self._on_theme_changed)

    def _lay_out(self, title: str, text: str) -> None:
        tokens = self._theme.tokens
        description = TextLabel(self._theme, text, tone="muted", wrap=True)
        description.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        description.setFixedWidth(self._theme.pixels(_WIDTH))
        column = QVBoxLayout(self)
        column.setSpacing(tokens.space_close)
        column.addStretch(2)
        centre = Qt.AlignmentFlag.AlignHCenter
        column.addWidget(self._picture, 0, centre)
        column.addWidget(TextLabel(self._theme, title, size=tokens.size_heading, bold=True), 0, centre)
        column.addLayout(_centred(description))
        column.addSpacing(tokens.space_close)
        column.addWidget(self._button, 0, centre)
        column.addStretch(3)

    def _on_action_clicked(self) -> None:
        self.action_clicked.emit()

    def _on_theme_changed(self) -> None:
        icon = self._theme.icon(self._icon, "muted")
        self._picture.setPixmap(icon.pixmap(QSize(_ICON, _ICON), self.devicePixelRatio()))


def _centred(words: TextLabel) -> QHBoxLayout:
    """Centred, and as high as its lines: an alignment in the column would reduce it to one line."""
    return hbox(stretch(0), words, stretch(0))
