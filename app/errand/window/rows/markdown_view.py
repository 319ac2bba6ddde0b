"""The view of a piece of Markdown: text, a table, a code card, or details that open."""

import re
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QTextDocument, QTextOption, QTextTable, QWheelEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from errand.client.conversation.markdown_pieces import Details, parse_details, split_markdown
from errand.client.safe_text import plain
from errand.text.translation import tr
from errand.window.rows.base import RowActions
from errand.window.rows.code_view import CodeView
from errand.window.rows.disclosure import DisclosureButton, LinePart, hit_count_parts
from errand.window.rows.markdown import MAX_STYLED, markdown_document, without_markup
from errand.window.rows.markdown_pictures import MarkdownPictures
from errand.window.rows.text_view import TextView
from errand.window.theme.style import paint_rounded, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.buttons import CopyButton, IconButton

_OPENING = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)(?:\n|$)")

_MAX_DEPTH = 4  # of details in details; deeper ones are text
_MAX_PIECES = 100  # of details; the rest is one text

_WRAP_LENGTH = 80  # characters; a longer line may not fit into the column


@dataclass(frozen=True, slots=True)
class Fence:
    language: str
    code: str


def parse_fence(markdown: str) -> Fence | None:
    """Return the fence if the part is a single fence, closed or still streaming; None for any other text."""
    opening = _OPENING.match(markdown)
    if opening is None:
        return None
    info = opening["info"].split()
    code = markdown[opening.end() :].rstrip("\n")
    last = code.rpartition("\n")[2].strip()
    if last and set(last) == {opening["mark"][0]} and len(last) >= len(opening["mark"]):
        code = code[: len(code) - len(code.rpartition("\n")[2])].removesuffix("\n")
    return Fence(info[0].strip("{}.").lower() if info else "", code)


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
        self._wrap = IconButton(theme, "wrap-text", tr("Wrap long lines"))
        self._wrap.setCheckable(True)
        self._wrap.setAutoRaise(True)
        self._wrap.toggled.connect(self._on_wrap_toggled)
        self._copy = CopyButton(theme, tr("Copy code"), lambda: actions.copy(self._fence.code))
        self.view = CodeView(theme, tr("Code"))
        set_vbox(
            self,
            hbox(fill(self._language), self._wrap, self._copy),
            self.view,
            spacing=tokens.space_tight,
            margins=(tokens.space_normal, tokens.space_tight, tokens.space_tight, tokens.space_normal),
        )

    def show_fence(self, fence: Fence, *, is_finished: bool, wraps: bool) -> None:
        self._fence = fence
        with QSignalBlocker(self._wrap):
            self._wrap.setChecked(wraps)
        self._wrap.setVisible(any(len(line) > _WRAP_LENGTH for line in fence.code.split("\n")))
        self.view.set_wraps(wraps)
        self._language.setText(fence.language or "text")
        self.view.setAccessibleName(
            tr("Code, {language}").format(language=fence.language) if fence.language else tr("Code")
        )
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
        super().__init__(theme, tr("Table"), parent)
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


class MarkdownView(QWidget):
    """Shows one piece after another. Emits `opened(is_open)` and `resized` when a person opens or wraps it.

    For code, open means that long lines wrap. `depth` counts the details around it.
    """

    opened = Signal(bool)
    resized = Signal()

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None, *, depth: int = 0) -> None:
        super().__init__(parent)
        self._theme = theme
        self._actions = actions
        self._depth = depth
        self._prose = TextView(theme, tr("Reply"), self)
        self._prose.link.connect(self._on_link)
        self._pictures = MarkdownPictures(theme, actions, self)
        self._pictures.changed.connect(self._on_picture_changed)
        self._shown: tuple[str, bool, bool] = ("", False, False)
        self._appended = ""  # the long plain text that is shown
        self._table: TableView | None = None
        self._code: CodeCard | None = None
        self._details: DetailsView | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self._prose)

    def show_piece(self, markdown: str, *, is_streaming: bool, is_open: bool) -> None:
        self._shown = (markdown, is_streaming, is_open)
        self._pictures.clear()
        fence = parse_fence(markdown)
        details = parse_details(markdown) if fence is None and self._depth < _MAX_DEPTH else None
        if fence is None and details is None and self._append(markdown):
            return
        is_text = fence is None and details is None
        document = markdown_document(markdown, self._theme, find=self._pictures.find) if is_text else None
        self._appended = markdown if document is not None and len(markdown) > MAX_STYLED else ""
        is_table = document is not None and "|" in markdown and has_table(document)
        for view, is_shown in (
            (self._prose, document is not None and not is_table),
            (self._table, is_table),
            (self._code, fence is not None),
            (self._details, details is not None),
        ):
            if view is not None:
                view.setVisible(is_shown)
        if fence is not None:
            self._code_card().show_fence(fence, is_finished=not is_streaming, wraps=is_open)
        elif details is not None:
            self._details_view().show_details(details, is_streaming=is_streaming, is_open=is_open)
        elif document is not None:
            (self._table_view() if is_table else self._prose).show_document(document)

    def _append(self, markdown: str) -> bool:
        """Append what is new to a text that is too long to be styled; False if another text is shown."""
        if not self._appended or not markdown.startswith(self._appended):
            return False
        self._prose.add_text(markdown[len(self._appended) :])
        self._appended = markdown
        return True

    def show_hit_count(self, count: int) -> None:
        if self._details is not None and not self._details.isHidden():
            self._details.show_hit_count(count)

    def _table_view(self) -> TableView:
        """Created for the first table; most views never show one, nor code or details."""
        if self._table is None:
            self._table = TableView(self._theme, self)
            self._table.link.connect(self._on_link)
            self._column.addWidget(self._table)
            self._table.show()  # otherwise only the next turn of the event loop would
        return self._table

    def _code_card(self) -> CodeCard:
        if self._code is None:
            self._code = CodeCard(self._theme, self._actions, self)
            self._code.wrap_changed.connect(self._on_opened)
            self._column.addWidget(self._code)
            self._code.show()  # otherwise only the next turn of the event loop would
        return self._code

    def _details_view(self) -> "DetailsView":
        if self._details is None:
            self._details = DetailsView(self._theme, self._actions, self, depth=self._depth + 1)
            self._details.opened.connect(self._on_opened)
            self._details.resized.connect(self.resized)
            self._column.addWidget(self._details)
            self._details.show()  # otherwise only the next turn of the event loop would
        return self._details

    def _on_opened(self, is_open: bool) -> None:
        self.opened.emit(is_open)
        self.resized.emit()

    def _on_link(self, link: str) -> None:
        if not self._pictures.open_link(link):
            self._actions.open_link(link)

    def _on_picture_changed(self) -> None:
        markdown, is_streaming, is_open = self._shown
        self.show_piece(markdown, is_streaming=is_streaming, is_open=is_open)
        self.resized.emit()


class DetailsView(QWidget):
    """A line with the summary; the pieces below it are made when it is opened."""

    opened = Signal(bool)
    resized = Signal()

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget, *, depth: int) -> None:
        super().__init__(parent)
        self._theme = theme
        self._actions = actions
        self._depth = depth
        self._details = Details("", "", is_open=False)
        self._is_streaming = False
        self._hit_count = 0
        self._pieces: list[MarkdownView] = []
        self._line = DisclosureButton(theme, self, has_chevron=False)
        self._line.clicked.connect(self._on_clicked)
        self._content = QWidget(self)
        self._inside = QVBoxLayout(self._content)
        tokens = theme.tokens
        left = tokens.space_close + tokens.icon_small + tokens.space_close
        self._inside.setContentsMargins(left, tokens.space_tight, 0, tokens.space_close)
        self._inside.setSpacing(tokens.space_normal)
        set_vbox(self, self._line, self._content, spacing=0)

    def show_details(self, details: Details, *, is_streaming: bool, is_open: bool) -> None:
        """`is_open`: a person has clicked on it."""
        self._details, self._is_streaming, self._hit_count = details, is_streaming, 0
        self._line.setChecked(is_open != details.is_open)
        self._show()

    def show_hit_count(self, count: int) -> None:
        if count != self._hit_count:
            self._hit_count = count
            self._show_line()

    def _show_line(self) -> None:
        icon = "chevron-down" if self._line.isChecked() else "chevron-right"
        title = LinePart(
            " ".join(without_markup(plain(self._details.summary)).split()) or tr("Details"), "text", elides=True
        )
        self._line.show_line(icon, "muted", [title, *hit_count_parts(self._hit_count)], can_open=True)

    def _show(self) -> None:
        self._show_line()
        is_open = self._line.isChecked()
        self._content.setVisible(is_open)
        if not is_open:
            return
        pieces = split_markdown(self._details.body.strip("\n"))
        pieces = (*pieces[:_MAX_PIECES], *filter(None, ["".join(pieces[_MAX_PIECES:])]))
        while len(self._pieces) < len(pieces):
            view = MarkdownView(self._theme, self._actions, self._content, depth=self._depth)
            view.resized.connect(self.resized)
            self._pieces.append(view)
            self._inside.addWidget(view)
        for number, view in enumerate(self._pieces):
            view.setVisible(number < len(pieces))
            if number < len(pieces):
                is_last = number == len(pieces) - 1
                view.show_piece(pieces[number], is_streaming=self._is_streaming and is_last, is_open=False)

    def _on_clicked(self, is_checked: bool) -> None:
        self._show()
        self.opened.emit(is_checked != self._details.is_open)
