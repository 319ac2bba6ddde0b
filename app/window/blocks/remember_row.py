"""The part of an approval that allows from now on: exactly what would be remembered, and where."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.code_excerpt import CodeExcerpt
from app.window.widgets.text_label import TextLabel
from app.window.widgets.wrap_layout import WrapLayout

_LINES = 8


class RememberRow(QWidget):
    """`chosen` comes with `conversation` or `workspace`."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.text = CodeExcerpt(theme, "What would be remembered", most_lines=_LINES)
        self._conversation = push_button("In this conversation")
        workspace = push_button("In this workspace")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.tokens.space_tight, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        what = "From now on exactly this runs without asking. Settings, Permissions takes it back."
        column.addWidget(TextLabel(theme, what, tone="muted", wrap=True))
        column.addWidget(self.text)
        column.addLayout(WrapLayout(theme.tokens.space_close, self._conversation, workspace))
        self._conversation.clicked.connect(self._on_conversation)
        workspace.clicked.connect(self._on_workspace)

    def set_text(self, remembered: str) -> None:
        self.text.set_text(remembered)

    def take_focus(self) -> None:
        self._conversation.setFocus()

    def _on_conversation(self) -> None:
        self.chosen.emit("conversation")

    def _on_workspace(self) -> None:
        self.chosen.emit("workspace")
