"""Overlays of the transcript: the button to the newest row, and loading of earlier messages."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from errand.text.translation import tr
from errand.window.rows.base import RowActions
from errand.window.rows.row_source import RowSource
from errand.window.theme.style import brush, colour, paint_focus_ring, set_style
from errand.window.theme.theme import Theme


class JumpToEndView(QAbstractButton):
    """The button "New messages": shown while the view is not at the end and new rows arrived there."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._transcript = parent
        self.has_news = False
        self.setText(tr("New messages"))
        self.setAccessibleName(tr("Jump to new messages"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()

    def update_position(self, *, is_at_end: bool) -> None:
        self.setVisible(self.has_news and not is_at_end)
        if self.isVisible():
            self.resize(self.sizeHint())
            space = self._theme.tokens.space_wide
            self.move((self._transcript.width() - self.width()) // 2, self._transcript.height() - self.height() - space)
            self.raise_()

    def sizeHint(self) -> QSize:
        tokens = self._theme.tokens
        self.setFont(self._theme.font(tokens.size_base, bold=True))
        text = self.fontMetrics().size(0, self.text())
        width = text.width() + tokens.icon_small + tokens.space_close + 2 * tokens.space_wide
        return QSize(width, text.height() + 2 * tokens.space_close)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        background = tokens.accent_hover if self.underMouse() else tokens.accent
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(brush(tokens.accent_pressed if self.isDown() else background))
        painter.drawRoundedRect(self.rect(), self.height() / 2, self.height() / 2)
        painter.setPen(QPen(colour(tokens.on_accent)))
        left = tokens.space_wide
        icon = self.rect().adjusted(left, 0, 0, 0)
        icon.setWidth(tokens.icon_small)
        self._theme.icon("arrow-down", "on_accent").paint(painter, icon)
        text = self.rect().adjusted(left + tokens.icon_small + tokens.space_close, 0, 0, 0)
        painter.drawText(text, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.text())
        if self.hasFocus():
            paint_focus_ring(painter, self.rect(), tokens, self.height() / 2, on_accent=True)


class LoadingOlderView(QLabel):
    """The label "Loading earlier messages…" at the top during the call."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(tr("Loading earlier messages…"), parent)
        self._theme = theme
        self._transcript = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        set_style(self, "tone", "muted")
        self.hide()

    def update_position(self, *, is_waiting: bool) -> None:
        self.setVisible(is_waiting)
        if is_waiting:
            tokens = self._theme.tokens
            self.setFont(self._theme.font(tokens.size_small))
            self.adjustSize()
            self.move((self._transcript.width() - self.width()) // 2, tokens.space_tight)
            self.raise_()


class OlderTrigger:
    """Requests older rows once per row count; again after scrolling away and back."""

    def __init__(self, rows: RowSource, actions: RowActions) -> None:
        self._rows = rows
        self._actions = actions
        self._requested_at: int | None = None

    @property
    def is_waiting(self) -> bool:
        return self._requested_at is not None

    def reset(self) -> None:
        self._requested_at = None

    def on_shown(self, shown: range) -> None:
        """Request older rows if the visible rows are near the start."""
        if not self._rows.has_older or (shown.start > len(shown) and self._rows.count()):
            self._requested_at = None
        elif self._requested_at != self._rows.count():
            self._requested_at = self._rows.count()
            self._actions.load_older()
