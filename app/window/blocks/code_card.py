"""A code block of a reply: its language, a button that copies it, and the code."""

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.code_view import CodeView
from app.window.blocks.copy_button import CopyButton
from app.window.blocks.fence import Fence
from app.window.blocks.paint import rounded
from app.window.theme.look import set_look
from app.window.theme.theme import Theme
from app.window.widgets.icon_button import IconButton

_LONG = 80  # characters of a line that may not fit into the column


class CodeCard(QWidget):
    """`wrap_changed` says that a person wants long lines broken, or no more."""

    wrap_changed = Signal(bool)

    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = theme.tokens
        self._theme = theme
        self._fence = Fence("", "")
        self._language = QLabel()
        self._language.setTextFormat(Qt.TextFormat.PlainText)  # the agent wrote it
        self._language.setFont(theme.font(tokens.size_small))
        set_look(self._language, "tone", "muted")
        self._wrap = IconButton(theme, "wrap-text", "Wrap long lines")
        self._wrap.setCheckable(True)
        self._wrap.setAutoRaise(True)
        self._wrap.toggled.connect(self._on_wrap_toggled)
        self._copy = CopyButton(theme, "Copy code", lambda: actions.copy(self._fence.code))
        self.view = CodeView(theme, "Code")
        head = QHBoxLayout()
        head.addWidget(self._language, 1)
        head.addWidget(self._wrap)
        head.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(tokens.space_normal, tokens.space_tight, tokens.space_tight, tokens.space_normal)
        layout.setSpacing(tokens.space_tight)
        layout.addLayout(head)
        layout.addWidget(self.view)

    def show_fence(self, fence: Fence, *, is_finished: bool, wraps: bool) -> None:
        self._fence = fence
        with QSignalBlocker(self._wrap):
            self._wrap.setChecked(wraps)
        self._wrap.setVisible(any(len(line) > _LONG for line in fence.code.split("\n")))
        self.view.set_wraps(wraps)
        self._language.setText(fence.language or "text")
        self.view.setAccessibleName(f"Code, {fence.language}" if fence.language else "Code")
        self.view.show_code(fence.code, fence.language, is_finished=is_finished)

    def _on_wrap_toggled(self, wraps: bool) -> None:
        self.view.set_wraps(wraps)
        self.view.updateGeometry()
        self.wrap_changed.emit(wraps)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        rounded(QPainter(self), self.rect(), tokens.radius_card, fill=tokens.code)
