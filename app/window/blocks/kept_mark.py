"""A small pin at a message that stays in the model's context whatever is summarised."""

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QWidget

from app.window.blocks.context_actions import ContextActions
from app.window.theme.look import set_tip
from app.window.theme.theme import Theme

_WORDS = "Kept in context: it stays word for word, whatever is summarised"


class KeptMark(QLabel):
    """Hidden but at a kept message."""

    def __init__(self, theme: Theme, context: ContextActions, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._context = context
        self._node_id = ""
        size = theme.tokens.icon_small
        self.setFixedSize(size, size)
        set_tip(self, _WORDS)
        self.setAccessibleName(_WORDS)
        self.hide()
        context.kept_changed.connect(self._show)
        theme.changed.connect(self._paint)
        self._paint()

    def show_at(self, node_id: str) -> None:
        """`node_id` is empty for a row that has no mark, such as the second piece of a reply."""
        self._node_id = node_id
        self._show()

    def _show(self) -> None:
        self.setVisible(bool(self._node_id) and self._context.is_kept(self._node_id))

    def _paint(self) -> None:
        size = QSize(self.width(), self.height())
        self.setPixmap(self._theme.icon("pin", "accent").pixmap(size, self.devicePixelRatioF()))
