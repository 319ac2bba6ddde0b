"""What a person said: a tinted bubble on the right, as wide as its text; a long paste shows its beginning first."""

import re

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QTextOption
from PySide6.QtWidgets import QMenu, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.blocks.branch_lock import BranchLock
from app.window.blocks.kept_mark import KeptMark
from app.window.blocks.markdown import plain_document
from app.window.blocks.menu import message_markdown
from app.window.blocks.message_menu import add_message_entries
from app.window.blocks.named import mark_named
from app.window.blocks.paint import rounded
from app.window.blocks.quiet_bar import QuietBar
from app.window.blocks.text_view import TextView
from app.window.rows import Row, UserRow
from app.window.theme.look import push_button
from app.window.theme.theme import Theme

_WIDEST = 0.8  # of the column
_FIRST = 3_000  # characters of a long message
_LINES = 40
_LONG_WORD = re.compile(r"\S{2000}")


class UserBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: UserRow | None = None
        self._text = TextView(theme, "Your message", self)
        self._bubble = QRect()
        self._is_open = False
        self._all = push_button("Show all", "quiet")
        self._all.setParent(self)
        self._all.clicked.connect(self._on_all_clicked)
        self._bar = QuietBar(theme, self)
        self._bar.add("copy", "Copy message", self._on_copy_clicked)
        self._bar.add("pencil", "Edit message", self._on_edit_clicked)
        fork = self._bar.add("git-branch", "Fork here", self._on_fork_clicked)
        BranchLock(actions.branches, (fork,), self)
        self._mark = KeptMark(theme, actions.context, self)

    def set_open(self, is_open: bool) -> None:
        self._is_open = is_open

    def set_row(self, row: Row) -> None:
        assert isinstance(row, UserRow)
        self._row = row
        self._mark.show_at(row.node.id)
        text = row.text.strip("\n")
        first = "\n".join(text[:_FIRST].split("\n")[:_LINES])
        is_cut = len(first) < len(text)
        self._all.setVisible(is_cut)
        self._all.setText("Show less" if self._is_open else f"Show all {len(text):,} characters")
        self._all.setAccessibleName(self._all.text())
        self._show_text(first + "…" if is_cut and not self._is_open else text)
        self._arrange(self.width())

    def markdown(self) -> str:
        return message_markdown(self._row.node) if self._row else ""

    def fill_menu(self, menu: QMenu) -> None:
        if self._row is not None:
            add_message_entries(menu, self._row.node, self.intents.branches, self.intents.context)

    def height_for(self, width: int) -> int:
        return self._arrange(width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(self.width())

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self.theme.tokens
        rounded(QPainter(self), self._bubble, tokens.radius_card, fill=tokens.bubble)

    def _on_copy_clicked(self) -> None:
        self.intents.copy(self.markdown())

    def _on_edit_clicked(self) -> None:
        if self._row is not None:
            self.intents.branches.edit(self._row.node.id)

    def _on_fork_clicked(self) -> None:
        if self._row is not None:
            self.intents.branches.fork(self._row.node.id)

    def _show_text(self, text: str) -> None:
        # Looking for word boundaries in a word of 100,000 characters takes Qt seconds.
        mode = QTextOption.WrapMode
        has_long_word = _LONG_WORD.search(text) is not None
        self._text.setWordWrapMode(mode.WrapAnywhere if has_long_word else mode.WrapAtWordBoundaryOrAnywhere)
        document = plain_document(text, self.theme)
        mark_named(document, self._row.named if self._row is not None else (), self.theme)
        self._text.show_document(document)

    def _on_all_clicked(self) -> None:
        assert self._row is not None
        self._is_open = not self._is_open
        self.set_row(self._row)
        self.opened.emit(self._is_open)
        self.resized.emit()

    def _arrange(self, width: int) -> int:
        """Put bubble and text in their places; the height."""
        tokens = self.theme.tokens
        aside, above = tokens.space_normal, tokens.space_close
        document = self._text.document()
        bar = self._bar.sizeHint()
        widest = min(int(width * _WIDEST), width - bar.width() - self._mark.width() - above)
        document.setTextWidth(max(1, widest - 2 * aside))
        button = QSize() if self._all.isHidden() else self._all.sizeHint()
        wide = max(int(document.idealWidth()) + 1, button.width() - above)
        high = self._text.heightForWidth(wide)
        self._bubble = QRect(width - wide - 2 * aside, 0, wide + 2 * aside, high + 2 * above)
        self._text.setGeometry(self._bubble.adjusted(aside, above, -aside, -above))
        if not button.isEmpty():
            self._all.setGeometry(QRect(QPoint(self._bubble.left() + above // 2, self._bubble.bottom()), button))
            self._bubble.setHeight(self._bubble.height() + button.height() + above // 2)
        beside = self._bubble.left() - self._mark.width() - above // 2
        left = max(0, beside - bar.width())
        self._bar.setGeometry(QRect(QPoint(left, self._bubble.bottom() - bar.height() + 1), bar))
        self._mark.move(max(0, beside), self._bubble.bottom() - (bar.height() + self._mark.height()) // 2 + 1)
        self.update()
        return self._bubble.height()
