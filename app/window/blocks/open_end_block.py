"""The end of what is shown, where the conversation goes on elsewhere: says so, and leads there."""

from functools import partial

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.rows import OpenEndRow, Row
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.text_label import TextLabel
from app.window.widgets.wrap_layout import WrapLayout

_MOST = 6  # buttons; the newest ones. The others are reached by the switch at their beginning.


class OpenEndBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        tokens = theme.tokens
        self._icon = QLabel()
        self._words = TextLabel(theme, tone="muted")
        self._words.setWordWrap(True)
        self._ways = WrapLayout(tokens.space_close)
        head = QHBoxLayout()
        head.setSpacing(tokens.space_close)
        head.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self._words, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_close, 0, 0, 0)
        column.setSpacing(tokens.space_close)
        column.addLayout(head)
        column.addLayout(self._ways)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, OpenEndRow)
        side = self.theme.tokens.icon_small
        self._icon.setPixmap(self.theme.icon("git-branch", "muted").pixmap(QSize(side, side), self.devicePixelRatioF()))
        self._words.setText(open_end_words(row))
        self._clear()
        first = max(0, len(row.child_ids) - _MOST)
        for number, node_id in enumerate(row.child_ids[first:], start=first + 1):
            button = push_button("Go back to it" if len(row.child_ids) == 1 else f"Branch {number}")
            button.clicked.connect(partial(self.intents.branches.switch, node_id))
            self._ways.addWidget(button)
            button.show()  # else Qt does it later, and the height is measured without it

    def _clear(self) -> None:
        while (item := self._ways.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()


def open_end_words(row: OpenEndRow) -> str:
    count = len(row.child_ids)
    if count == 1:
        return (
            "You are at an earlier place: the conversation went on from here. What you write now begins a new branch."
        )
    return f"The conversation goes on from here in {count} branches. What you write now begins another one."
