"""Code shown verbatim in monospace: its beginning, and a button that shows all."""

import math

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QTextLayout, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QWidget

from errand.text.translation import tr, trn
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import at_left, set_vbox
from errand.window.widgets.diff.gutter import DiffGutter, plain_text_blocks
from errand.window.widgets.diff.lines import diff_lines, diff_name

_EDGE = 16
_SIDES = 18
"""Border, padding and margin: vertical (plus 2 px, without which Qt scrolls), and horizontal, both sides together."""

# Longer text scrolls inside the box even when all is shown.
_MAX_SHOWN = 1_000

_MEASURED = 300
"""Up to this many lines beyond the visible ones, the count of hidden lines is exact."""

_MAX_LINE_LENGTH = 1000
"""No screen shows more characters in one line; longer lines are not measured."""


class CodeBoxView(QPlainTextEdit):
    """A code box as high as its text, at most `most_lines`. With `diff` it shows lines of a diff, with their numbers.

    `hidden_changed` is emitted when `hidden_lines`, the number of lines visible only by scrolling, changes.
    """

    hidden_changed = Signal()

    def __init__(self, theme: Theme, name: str, *, most_lines: int, diff: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._most_lines = most_lines
        self._text = ""
        self.hidden_lines = 0
        self._gutter = DiffGutter(theme, self, lambda: plain_text_blocks(self)) if diff else None
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setAccessibleName(name)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        set_style(self, "look", "code")
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._on_theme_changed()
        theme.changed.connect(self._on_theme_changed)

    def set_text(self, text: str) -> None:
        """Show a text that has no hidden characters; of a diff they are escaped here."""
        lines, path = (diff_lines(text), diff_name(text)) if self._gutter is not None else ([], "")
        if self._gutter is not None:
            text = "\n".join(line.text for line in lines)
        self._text = text
        self.setPlainText(text)
        if self._gutter is not None:
            self._gutter.show_lines(lines, path=path)
            self.setViewportMargins(self._gutter.needed_width, 0, 0, 0)
        self.updateGeometry()
        self._show_or_hide_bar()

    def set_most_lines(self, most_lines: int) -> None:
        self._most_lines = most_lines
        self.updateGeometry()
        self._show_or_hide_bar()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._gutter is not None:
            self._gutter.place()
        self._show_or_hide_bar()
        self.viewport().update()  # a bar that appears now wraps lines that are painted already

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._gutter is not None:
            painter = QPainter(self.viewport())
            self._gutter.paint_grounds(painter)
            painter.end()
        super().paintEvent(event)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return math.ceil(sum(self._line_heights(width, self._most_lines))) + _EDGE

    def sizeHint(self) -> QSize:
        width = max(super().sizeHint().width(), self.width())
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.fontMetrics().lineSpacing() + _EDGE)

    def _line_heights(self, width: int, most: int) -> list[float]:
        """Return the heights of at most `most` lines of the text, wrapped at `width`."""
        heights: list[float] = []
        for paragraph in self._text.split("\n", most)[:most]:
            heights += self._heights(paragraph[: most * _MAX_LINE_LENGTH], width, most - len(heights))
        return heights

    def _heights(self, paragraph: str, width: int, most: int) -> list[float]:
        heights: list[float] = []
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAnywhere)
        layout = QTextLayout(paragraph, self.font())
        layout.setTextOption(option)
        numbers = self._gutter.needed_width if self._gutter is not None else 0
        layout.beginLayout()
        while len(heights) < most:
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLeadingIncluded(True)
            line.setLineWidth(max(1, width - _SIDES - numbers))
            heights.append(line.height())
        layout.endLayout()
        return heights

    def _show_or_hide_bar(self) -> None:
        policy = Qt.ScrollBarPolicy
        hidden = self._count_hidden()
        self.setVerticalScrollBarPolicy(policy.ScrollBarAlwaysOn if hidden else policy.ScrollBarAlwaysOff)
        if hidden != self.hidden_lines:
            self.hidden_lines = hidden
            self.hidden_changed.emit()

    def _count_hidden(self) -> int:
        """Lines that do not fit. In a very long text, the lines beyond the measured ones count unwrapped."""
        measured = self._most_lines + _MEASURED
        lines = len(self._line_heights(self.width(), measured))
        unmeasured = self._text.count("\n") + 1 - measured if lines == measured else 0
        return max(0, lines - self._most_lines + max(0, unmeasured))

    def _on_theme_changed(self) -> None:
        self.setFont(self._theme.font(self._theme.tokens.size_base, mono=True))
        self.viewport().update()


class CodeExcerptView(QWidget):
    """Emits `resized` when it shows more or less of the text. `box` is the text itself."""

    resized = Signal()

    def __init__(self, theme: Theme, name: str, *, most_lines: int, diff: bool = False) -> None:
        super().__init__()
        self._most_lines = most_lines
        self._shows_all = False
        self._words = ("", "")
        self.box = CodeBoxView(theme, name, most_lines=most_lines, diff=diff)
        self._more = push_button("", "quiet")
        self._more.clicked.connect(self._on_clicked)
        set_vbox(self, self.box, at_left(self._more), spacing=theme.tokens.space_tight)
        self._more.setMinimumWidth(1)  # a narrow sidebar is not widened by it
        self._more.hide()
        self.box.hidden_changed.connect(self._show_more)

    @property
    def fits(self) -> bool:
        """True if the whole text is visible."""
        return not self.box.hidden_lines

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_words()

    def set_text(self, text: str) -> None:
        self._shows_all = False
        self.box.set_most_lines(self._most_lines)
        self.box.set_text(text)

    def _show_more(self) -> None:
        hidden = self.box.hidden_lines
        direction = tr("Show less") if self._shows_all else tr("Show all")
        more = trn("{n} more line", "{n} more lines", hidden)
        label = f"… {more} · {direction}" if hidden else direction
        self._words = (label, direction)
        self._fit_words()
        self._more.setAccessibleName(f"{label}: {self.box.accessibleName()}")
        self._more.setVisible(self._shows_all or hidden > 0)

    def _fit_words(self) -> None:
        """Leave the number of lines out of the label where there is no room for it."""
        long_label, short = self._words
        self._more.setText(long_label)
        if self._more.sizeHint().width() > self.width():
            self._more.setText(short)

    def _on_clicked(self) -> None:
        self._shows_all = not self._shows_all
        self.box.set_most_lines(_MAX_SHOWN if self._shows_all else self._most_lines)
        self._show_more()
        self.resized.emit()
