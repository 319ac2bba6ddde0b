"""A row of icon buttons that is painted only under the mouse or the keyboard; Tab and screen readers always find it."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.window.theme.theme import Theme
from app.window.widgets.icon_button import IconButton


class QuietBar(QWidget):
    """`near` is the widget whose hovering shows it."""

    def __init__(self, theme: Theme, near: QWidget) -> None:
        super().__init__(near)
        self._theme = theme
        self._near = near
        self._buttons: list[QuietButton] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        near.installEventFilter(self)

    @property
    def is_seen(self) -> bool:
        return self._near.underMouse() or any(button.hasFocus() for button in self._buttons)

    def add(self, icon: str, name: str, clicked: Callable[[], None]) -> IconButton:
        button = QuietButton(self._theme, icon, name, self)
        button.clicked.connect(clicked)
        button.installEventFilter(self)
        self._buttons.append(button)
        self._row.addWidget(button)
        return button

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave, QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            for button in self._buttons:
                button.update()
        return False


class QuietButton(IconButton):
    def __init__(self, theme: Theme, icon: str, name: str, bar: QuietBar) -> None:
        super().__init__(theme, icon, name)
        self._bar = bar
        side = theme.tokens.icon_small + theme.tokens.space_close
        self.setFixedSize(QSize(side, side))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._bar.is_seen:
            super().paintEvent(event)
