"""Base dialogs: a question with a safe default button, and a frameless panel; sizes that fit the screen."""

from PySide6.QtCore import QEvent, QSize, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QDialog, QMessageBox, QPushButton, QWidget

from errand.window.theme.style import paint_rounded
from errand.window.theme.theme import Theme

# What a window manager adds: borders and a title.
_FRAME = QSize(16, 48)


def resize_on_screen(window: QWidget, width: int, height: int) -> None:
    """Resize a window, within the screen of its parent."""
    room = (window.parentWidget() or window).screen().availableSize() - _FRAME
    window.resize(QSize(width, height).boundedTo(room))


class QuestionDialog(QMessageBox):
    """Restores its default button: on a style change, such as dark mode, Qt makes the first button the default."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._default: QPushButton | None = None

    def set_default(self, button: QPushButton) -> None:
        self._default = button
        self.setDefaultButton(button)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            QTimer.singleShot(0, self, self._restore)  # the buttons receive the style change after this event

    def _restore(self) -> None:
        if self._default is not None:
            self.setDefaultButton(self._default)


class FramelessDialog(QDialog):
    """Paints its background itself: Qt does not paint style-sheet backgrounds of translucent windows."""

    def __init__(self, theme: Theme, kind: Qt.WindowType, parent: QWidget | None = None) -> None:
        super().__init__(parent, kind | Qt.WindowType.FramelessWindowHint)
        self._look = theme
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._look.tokens
        painter = QPainter(self)
        paint_rounded(painter, self.rect(), tokens.radius_card, fill=tokens.raised, line=tokens.outline)
        painter.end()
