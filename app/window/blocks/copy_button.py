"""A quiet button that copies something and says for a moment that it did."""

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtWidgets import QToolButton, QWidget

from app.window.theme.look import set_tip
from app.window.theme.theme import Theme

_SHOWN_MS = 1500


class CopyButton(QToolButton):
    def __init__(self, theme: Theme, name: str, copy: Callable[[], None], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self._copy = copy
        self._back = QTimer(self, singleShot=True, interval=_SHOWN_MS)
        self._back.timeout.connect(self._on_back)
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setIconSize(QSize(theme.tokens.icon_small, theme.tokens.icon_small))
        self.clicked.connect(self._on_clicked)
        self._on_back()

    def _on_clicked(self) -> None:
        self._copy()
        self._show("check", "done_mark", "Copied")
        self._back.start()

    def _on_back(self) -> None:
        self._show("copy", "muted", self._name)

    def _show(self, icon: str, colour: str, name: str) -> None:
        self.setIcon(self._theme.icon(icon, colour))
        set_tip(self, name)
        self.setAccessibleName(name)
