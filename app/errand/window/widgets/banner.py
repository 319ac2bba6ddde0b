"""A banner across a view: a problem or notice, and what can be done about it."""

from typing import Literal

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from errand.text.translation import tr
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.labels import TextLabel

BannerTone = Literal["info", "waiting", "failed", "done"]
TONE_STYLES: dict[BannerTone, tuple[str, str, str]] = {
    "info": ("info", "muted", "panel"),
    "waiting": ("triangle-alert", "waiting", "waiting_soft"),
    "failed": ("circle-alert", "failed", "failed_soft"),
    "done": ("circle-check", "done", "done_soft"),
}
"""The icon of a tone, the colour of its icon and text, and the colour behind them."""


class BannerView(QWidget):
    """Hidden until `show_message`. Emits `action_clicked`, and `dismissed` when it is closed.

    It takes as much height as its text needs. Place it below a view that scrolls: what is above it then stays where it
    is. `NoticeLineView` is for a place of fixed height. With `is_stacked`, for narrow places, its button stands below
    the text.
    """

    action_clicked = Signal()
    dismissed = Signal()

    def __init__(self, theme: Theme, *, is_stacked: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._tone: BannerTone = "info"
        tokens = theme.tokens
        self._icon = QLabel()
        self._text = TextLabel(theme, wrap=True)
        self._action = push_button("")
        self._dismiss = IconButton(theme, "x", tr("Dismiss"))
        grid = QGridLayout(self)
        grid.setContentsMargins(tokens.space_wide, tokens.space_close, tokens.space_close, tokens.space_close)
        grid.setSpacing(tokens.space_close)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._icon, 0, 0, Qt.AlignmentFlag.AlignVCenter)
        grid.addWidget(self._text, 0, 1)
        if is_stacked:
            grid.addWidget(self._action, 1, 1, Qt.AlignmentFlag.AlignLeft)
        else:
            grid.addWidget(self._action, 0, 2)
        grid.addWidget(self._dismiss, 0, 3)
        self._action.clicked.connect(self._on_action_clicked)
        self._dismiss.clicked.connect(self._on_dismissed)
        theme.changed.connect(self._on_theme_changed)
        self.hide()

    def show_message(self, text: str, tone: BannerTone = "info", action: str = "", *, dismissible: bool = True) -> None:
        """Show `text`; without `action` there is no button."""
        self._tone = tone
        self._text.setText(text)
        self.setAccessibleName(text)
        self._action.setText(action)
        self._action.setAccessibleName(action)
        self._action.setVisible(bool(action))
        self._dismiss.setVisible(dismissible)
        self._on_theme_changed()
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.colour(TONE_STYLES[self._tone][2])))
        painter.fillRect(0, 0, self.width(), 1, QColor(self._theme.tokens.hairline))

    def _on_action_clicked(self) -> None:
        self.action_clicked.emit()

    def _on_dismissed(self) -> None:
        self.hide()
        self.dismissed.emit()

    def _on_theme_changed(self) -> None:
        icon, colour, _ = TONE_STYLES[self._tone]
        side = self._theme.tokens.icon_small
        self._icon.setPixmap(self._theme.icon(icon, colour).pixmap(QSize(side, side), self.devicePixelRatio()))
        set_style(self._text, "tone", "text" if self._tone == "info" else colour)
        self.update()
