"""An agent's reply, part by part: text, tables, code cards, and the step above the first part."""

import re
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QTextDocument, QTextOption, QTextTable, QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QVBoxLayout, QWidget

from errand.client.safe_text import plain
from errand.window.rows.base import (
    RowActions,
    RowKind,
    RowView,
    Spacing,
    line_estimate,
    message_markdown,
    text_estimate,
)
from errand.window.rows.code_view import CodeView
from errand.window.rows.markdown import markdown_document, without_markup
from errand.window.rows.message_actions import KeepMarkView, add_message_entries
from errand.window.rows.row import ReplyRow, SpeakerRow
from errand.window.rows.text_view import TextView
from errand.window.theme.style import paint_rounded, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.agent_dot import AgentDotView
from errand.window.widgets.buttons import CopyButton, IconButton
from errand.window.widgets.labels import ElidedLabel

_OPENING = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)(?:\n|$)")

_WRAP_LENGTH = 80  # characters; a longer line may not fit into the column


@dataclass(frozen=True, slots=True)
class Fence:
    language: str
    code: str


def parse_fence(markdown: str) -> Fence | None:
    """The fence if the part is a single fence, closed or still streaming; None for any other text."""
    opening = _OPENING.match(markdown)
    if opening is None:
        return None
    words = opening["info"].split()
    code = markdown[opening.end() :].rstrip("\n")
    last = code.rpartition("\n")[2].strip()
    if last and set(last) == {opening["mark"][0]} and len(last) >= len(opening["mark"]):
        code = code[: len(code) - len(code.rpartition("\n")[2])].removesuffix("\n")
    return Fence(words[0].strip("{}.").lower() if words else "", code)


class CodeCard(QWidget):
    """`wrap_changed` is emitted when the user toggles line wrapping."""

    wrap_changed = Signal(bool)

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = theme.tokens
        self._theme = theme
        self._fence = Fence("", "")
        self._language = QLabel()
        self._language.setTextFormat(Qt.TextFormat.PlainText)  # the agent wrote it
        self._language.setFont(theme.font(tokens.size_small))
        set_style(self._language, "tone", "muted")
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
        self._wrap.setVisible(any(len(line) > _WRAP_LENGTH for line in fence.code.split("\n")))
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
        paint_rounded(QPainter(self), self.rect(), tokens.radius_card, fill=tokens.code)


class TableView(TextView):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "Table", parent)
        self.setWordWrapMode(QTextOption.WrapMode.WordWrap)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)

    def heightForWidth(self, width: int) -> int:
        """Includes the height of the horizontal scroll bar."""
        height = super().heightForWidth(width)
        is_wide = self.document().size().width() > width
        return height + (self.horizontalScrollBar().sizeHint().height() if is_wide else 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Handles horizontal scrolling until the end is reached."""
        moved = event.pixelDelta() or event.angleDelta()
        is_shifted = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        sideways = moved.x() or (moved.y() if is_shifted else 0)
        bar = self.horizontalScrollBar()
        if not sideways or bar.value() == (bar.minimum() if sideways > 0 else bar.maximum()):
            event.ignore()
            return
        bar.setValue(bar.value() - sideways)
        event.accept()


def has_table(document: QTextDocument) -> bool:
    return any(isinstance(frame, QTextTable) for frame in document.rootFrame().childFrames())


class ReplyView(RowView[ReplyRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: ReplyRow | None = None
        self._step = QLabel(self)
        self._step.setFont(theme.font(theme.tokens.size_small))
        set_style(self._step, "tone", "muted")
        self._prose = TextView(theme, "Reply", self)
        self._prose.link.connect(actions.open_link)
        self._table: TableView | None = None
        self._wraps = False
        self._code: CodeCard | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.tokens.space_tight)
        self._mark = KeepMarkView(theme, actions.context, self)
        head = QHBoxLayout()
        head.setSpacing(theme.tokens.space_tight)
        head.addWidget(self._step)
        head.addWidget(self._mark)
        head.addStretch(1)
        self._column.addLayout(head)
        self._column.addWidget(self._prose)

    def set_open(self, is_open: bool) -> None:
        """For a reply, open means that long lines of code wrap."""
        self._wraps = is_open

    def set_row(self, row: ReplyRow) -> None:
        self._row = row
        self._step.setVisible(row.step > 0)
        self._mark.show_at(row.node.id if row.step else "")
        if row.step:
            self._step.setText(f"Step {row.step}")
        fence = parse_fence(row.markdown)
        document = None if fence is not None else markdown_document(row.markdown, self.theme)
        is_table = document is not None and "|" in row.markdown and has_table(document)
        self._prose.setVisible(document is not None and not is_table)
        if self._table is not None:
            self._table.setVisible(is_table)
        if fence is not None:
            self._card().show_fence(fence, is_finished=not row.streaming, wraps=self._wraps)
            self._card().setVisible(True)
            return
        if self._code is not None:
            self._code.setVisible(False)
        if document is not None:
            (self._table_view() if is_table else self._prose).show_document(document)

    def markdown(self) -> str:
        return message_markdown(self._row.node) if self._row else ""

    def fill_menu(self, menu: QMenu) -> None:
        if self._row is not None:
            add_message_entries(menu, self._row.node, self.row_actions)

    def _table_view(self) -> TableView:
        """Created for the first table."""
        if self._table is None:
            self._table = TableView(self.theme, self)
            self._table.link.connect(self.row_actions.open_link)
            self._column.addWidget(self._table)
        return self._table

    def _card(self) -> CodeCard:
        """Created for the first fence: most rows never show one."""
        if self._code is None:
            self._code = CodeCard(self.theme, self.row_actions, self)
            self._code.wrap_changed.connect(self._on_wrap_changed)
            self._column.addWidget(self._code)
        return self._code

    def _on_wrap_changed(self, wraps: bool) -> None:
        self._wraps = wraps
        self.opened.emit(wraps)
        self.resized.emit()


class SpeakerView(RowView[SpeakerRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._dot = AgentDotView(theme)
        self._name = ElidedLabel(theme, bold=True)
        self._model = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(theme.tokens.space_close)
        for widget in (self._dot, self._name):
            line.addWidget(widget)
        line.addWidget(self._model, 1)

    def set_row(self, row: SpeakerRow) -> None:
        speaker = row.speaker
        self._dot.set_color(speaker.color)
        self._name.set_text(speaker.name)
        set_style(self._name, "person", speaker.color)
        self._model.set_text(speaker.model)
        self.setAccessibleName(f"{speaker.name} says:")


REPLY = RowKind(
    ReplyRow,
    ReplyView,
    spacing=lambda row: Spacing.REPLY_START if row.step else Spacing.TEXT,
    estimate=lambda row, width, tokens: tokens.space_normal + text_estimate(row.markdown, width, tokens),
    markdown=lambda row, is_open: row.markdown.strip("\n"),
    text=lambda row: without_markup(row.markdown),
)

SPEAKER = RowKind(
    SpeakerRow,
    SpeakerView,
    spacing=lambda row: Spacing.SPEAKER,
    estimate=line_estimate,
    markdown=lambda row, is_open: f"**{plain(row.speaker.name)}**",
)
