"""A person's message: the bubble on the right, with mentions and hover actions."""

import re
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import (
    QColor,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
)
from PySide6.QtWidgets import QMenu, QWidget

from errand.client.conversation.rows import Speaker, UserRow
from errand.client.texts.messages import message_markdown
from errand.text.translation import tr
from errand.window.rows.base import RowActions, RowKind, RowView, Spacing, text_estimate
from errand.window.rows.markdown import plain_document
from errand.window.rows.message_actions import BranchLock, HoverActionsView, KeepMarkView, add_message_entries
from errand.window.rows.text_view import TextView
from errand.window.theme.style import paint_rounded, push_button
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens

_MAX_SHARE = 0.8  # fraction of the column
_PREVIEW_CHARACTERS = 1_500  # characters shown of a long message
_LINES = 20
# A message that is only a little longer is shown whole.
_SPARE = 1.3
_LONG_WORD = re.compile(r"\S{2000}")


def highlight_mentions(document: QTextDocument, named: Sequence[Speaker], theme: Theme) -> None:
    """Highlight the named agents. If one name is a prefix of another, the longer name wins."""
    for speaker in sorted(named, key=lambda speaker: len(speaker.name)):
        char_format = QTextCharFormat()
        char_format.setForeground(QColor(theme.person(speaker.color)))
        for start in _occurrences(document, f"@{speaker.name}"):
            start.mergeCharFormat(char_format)


def _occurrences(document: QTextDocument, word: str) -> Iterator[QTextCursor]:
    """Yield the separate occurrences: not within an email address or a longer name."""
    occurrence = document.find(word)
    while not occurrence.isNull():
        before = document.characterAt(occurrence.selectionStart() - 1)
        after = document.characterAt(occurrence.selectionEnd())
        if not before.isalnum() and not after.isalnum():
            yield occurrence
        occurrence = document.find(word, occurrence.selectionEnd())


class UserView(RowView[UserRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: UserRow | None = None
        self._text = TextView(theme, tr("Your message"), self)
        self._bubble = QRect()
        self._is_open = False
        self._show_more = push_button(tr("Show more"), "quiet")
        self._show_more.setParent(self)
        self._show_more.clicked.connect(self._on_show_more_clicked)
        self._bar = HoverActionsView(theme, self)
        self._bar.add("copy", tr("Copy message"), self._on_copy_clicked)
        self._bar.add("pencil", tr("Edit message"), self._on_edit_clicked)
        fork = self._bar.add("git-branch", tr("New branch from here"), self._on_fork_clicked)
        BranchLock(actions.branches, (fork,), self)
        self._mark = KeepMarkView(theme, actions.context, self)

    def set_open(self, is_open: bool) -> None:
        self._is_open = is_open

    def set_row(self, row: UserRow) -> None:
        self._row = row
        self._mark.show_at(row.node.id)
        text = row.text.strip("\n")
        first = _preview(text)
        is_cut = len(first) < len(text)
        self._show_more.setVisible(is_cut)
        self._show_more.setText(tr("Show less") if self._is_open else tr("Show more"))
        self._show_more.setAccessibleName(self._show_more.text())
        self._show_text(first + "…" if is_cut and not self._is_open else text)
        self._layout_at(self.width())

    def markdown(self) -> str:
        return message_markdown(self._row.node) if self._row else ""

    def fill_menu(self, menu: QMenu) -> None:
        if self._row is not None:
            add_message_entries(menu, self._row.node, self.row_actions)

    def height_for(self, width: int) -> int:
        return self._layout_at(width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._layout_at(self.width())

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self.theme.tokens
        paint_rounded(QPainter(self), self._bubble, tokens.radius_card, fill=tokens.bubble)

    def _on_copy_clicked(self) -> None:
        self.row_actions.copy(self.markdown())

    def _on_edit_clicked(self) -> None:
        if self._row is not None:
            self.row_actions.branches.edit(self._row.node.id)

    def _on_fork_clicked(self) -> None:
        if self._row is not None:
            self.row_actions.branches.fork(self._row.node.id)

    def _show_text(self, text: str) -> None:
        # Qt needs seconds to find word boundaries in a word of 100,000 characters.
        mode = QTextOption.WrapMode
        has_long_word = _LONG_WORD.search(text) is not None
        self._text.setWordWrapMode(mode.WrapAnywhere if has_long_word else mode.WrapAtWordBoundaryOrAnywhere)
        document = plain_document(text, self.theme)
        highlight_mentions(document, self._row.mentions if self._row is not None else (), self.theme)
        self._text.show_document(document)

    def _on_show_more_clicked(self) -> None:
        assert self._row is not None
        self._is_open = not self._is_open
        self.set_row(self._row)
        self.opened.emit(self._is_open)
        self.resized.emit()

    def _layout_at(self, width: int) -> int:
        """Lay out bubble and text; returns the height."""
        tokens = self.theme.tokens
        margin, above = tokens.space_normal, tokens.space_close
        document = self._text.document()
        bar = self._bar.sizeHint()
        widest = min(int(width * _MAX_SHARE), width - bar.width() - self._mark.width() - above)
        document.setTextWidth(max(1, widest - 2 * margin))
        button = QSize() if self._show_more.isHidden() else self._show_more.sizeHint()
        wide = max(int(document.idealWidth()) + 1, button.width() - above)
        high = self._text.heightForWidth(wide)
        self._bubble = QRect(width - wide - 2 * margin, 0, wide + 2 * margin, high + 2 * above)
        self._text.setGeometry(self._bubble.adjusted(margin, above, -margin, -above))
        if not button.isEmpty():
            self._show_more.setGeometry(QRect(QPoint(self._bubble.left() + above // 2, self._bubble.bottom()), button))
            self._bubble.setHeight(self._bubble.height() + button.height() + above // 2)
        mark_left = self._bubble.left() - self._mark.width() - above // 2
        left = max(0, mark_left - bar.width())
        self._bar.setGeometry(QRect(QPoint(left, self._bubble.bottom() - bar.height() + 1), bar))
        self._mark.move(max(0, mark_left), self._bubble.bottom() - (bar.height() + self._mark.height()) // 2 + 1)
        self.update()
        return self._bubble.height()


def _preview(text: str) -> str:
    """Return the beginning of a long message; all of a short one."""
    if len(text) <= _PREVIEW_CHARACTERS * _SPARE and text.count("\n") < _LINES * _SPARE:
        return text
    return "\n".join(text[:_PREVIEW_CHARACTERS].split("\n")[:_LINES])


def _estimate(row: UserRow, width: int, tokens: DesignTokens) -> int:
    return (
        tokens.space_far + 2 * tokens.space_normal + text_estimate(_preview(row.text), int(width * _MAX_SHARE), tokens)
    )


USER = RowKind(
    UserRow,
    UserView,
    spacing=lambda row: Spacing.MESSAGE,
    estimate=_estimate,
    markdown=lambda row, is_open: row.text.strip("\n"),
    text=lambda row: row.text,
)
