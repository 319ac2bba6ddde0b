"""The one-line button that expands a card, and the row that is such a line with content below it."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from errand.text.translation import trn
from errand.window.rows.base import R, RowActions, RowView
from errand.window.theme.style import colour, focus_by_keys, paint_focus_ring, paint_rounded, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import set_vbox

_MIN_WIDTH = 220
"""Pixels of a part that elides before others are left out: some thirty characters."""


@dataclass(frozen=True, slots=True)
class LinePart:
    """A part of the line; `colour` is a token. A part with `elides` is elided if the line is too narrow.

    Parts with `drops` are left out before the others are elided to fewer than some thirty characters, those with 1
    before those with 2.
    """

    text: str
    colour: str = "muted"
    mono: bool = False
    elides: bool = False
    drops: int = 0


def hit_count_parts(count: int) -> list[LinePart]:
    """Return the number of search hits, shown on a collapsed card."""
    return [LinePart("·"), LinePart(trn("{n} found", "{n} found", count), "waiting")] if count else []


class DisclosureButton(QAbstractButton):
    """Click, Space and Enter toggle, Right expands, Left collapses. The accessible name is the text of the line."""

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, has_chevron: bool = True) -> None:
        super().__init__(parent)
        self._theme = theme
        self._has_chevron = has_chevron
        self._icon = ""
        self._icon_colour = "muted"
        self._pieces: Sequence[LinePart] = ()
        self._can_open = True
        self.setCheckable(True)
        focus_by_keys(self)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_line(self, icon: str, icon_colour: str, pieces: Sequence[LinePart], *, can_open: bool) -> None:
        self._icon, self._icon_colour, self._pieces, self._can_open = icon, icon_colour, pieces, can_open
        self.setEnabled(can_open)
        label = " ".join(piece.text for piece in pieces)
        self.setText(label)
        self.setAccessibleName(label)
        set_tool_tip(self, label if any(piece.elides and len(piece.text) > 60 for piece in pieces) else "")
        self.update()

    def sizeHint(self) -> QSize:
        tokens = self._theme.tokens
        return QSize(tokens.space_far, tokens.size_base + 2 * tokens.space_close)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        turns = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if turns or (key == Qt.Key.Key_Right and not self.isChecked()) or (key == Qt.Key.Key_Left and self.isChecked()):
            self.click()
        elif key not in (Qt.Key.Key_Left, Qt.Key.Key_Right):  # Qt would move the focus to a nearby button
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, tokens = QPainter(self), self._theme.tokens
        if self.underMouse() and self._can_open:
            paint_rounded(painter, self.rect(), tokens.radius_control, fill=tokens.hover)
        if self.hasFocus():
            paint_focus_ring(painter, self.rect(), tokens, tokens.radius_control)
        left = self._paint_icon(painter, self._icon, self._icon_colour, tokens.space_close)
        left += tokens.space_close
        for piece, width in zip(self._pieces, self._widths(), strict=True):
            if width:
                left = self._paint_piece(painter, piece, left, width)
        if self._has_chevron and self._can_open and (self.underMouse() or self.hasFocus() or self.isChecked()):
            self._paint_icon(painter, "chevron-down" if self.isChecked() else "chevron-right", "muted", left)

    def _paint_icon(self, painter: QPainter, name: str, tint: str, left: int) -> int:
        size = self._theme.tokens.icon_small
        rect = QRect(left, (self.height() - size) // 2, size, size)
        self._theme.icon(name, tint).paint(painter, rect)
        return left + size

    def _paint_piece(self, painter: QPainter, piece: LinePart, left: int, width: int) -> int:
        painter.setFont(self._font(piece))
        painter.setPen(QPen(colour(self._theme.colour(piece.colour))))
        text = QFontMetrics(painter.font()).elidedText(piece.text, Qt.TextElideMode.ElideRight, width)
        rect = QRect(left, 0, width, self.height())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, text)
        return left + width + self._theme.tokens.space_close

    @property
    def drawn(self) -> list[str]:
        """The texts of the parts that are drawn, each elided to its width."""
        return [
            QFontMetrics(self._font(piece)).elidedText(piece.text, Qt.TextElideMode.ElideRight, width)
            for piece, width in zip(self._pieces, self._widths(), strict=True)
            if width
        ]

    def _widths(self) -> list[int]:
        """Return the width of each part, 0 for one that is left out."""
        tokens = self._theme.tokens
        available = self.width() - 2 * tokens.icon_small - 4 * tokens.space_close
        widths = self._shares(self._pieces, available)
        for dropped in sorted({piece.drops for piece in self._pieces if piece.drops}):
            if not self._is_narrow(widths):
                break
            shares = iter(self._shares([part for part in self._pieces if not 0 < part.drops <= dropped], available))
            widths = [0 if 0 < piece.drops <= dropped else next(shares) for piece in self._pieces]
        return widths

    def _is_narrow(self, widths: list[int]) -> bool:
        """Return True if a part that must be seen is elided to a few characters."""
        least = self._theme.pixels(_MIN_WIDTH)
        return any(
            piece.elides and not piece.drops and width < min(least, self._advance(piece))
            for piece, width in zip(self._pieces, widths, strict=True)
        )

    def _shares(self, pieces: Sequence[LinePart], available: int) -> list[int]:
        """Return the width of each part; of parts with `elides` the longest give way, to the same width."""
        full_widths = [self._advance(piece) for piece in pieces]
        room = available - self._theme.tokens.space_close * len(full_widths)
        room -= sum(width for piece, width in zip(pieces, full_widths, strict=True) if not piece.elides)
        elided = sorted(width for piece, width in zip(pieces, full_widths, strict=True) if piece.elides)
        most = elided[-1] if elided else 0
        for number, width in enumerate(elided):
            share = room // (len(elided) - number)
            if width > share:
                most = max(share, self._theme.tokens.space_far)
                break
            room -= width
        return [min(width, most) if piece.elides else width for piece, width in zip(pieces, full_widths, strict=True)]

    def _advance(self, piece: LinePart) -> int:
        return QFontMetrics(self._font(piece)).horizontalAdvance(piece.text) + 1

    def _font(self, piece: LinePart) -> QFont:
        return self._theme.font(self._theme.tokens.size_base, mono=piece.mono)


class DisclosureRowView(RowView[R]):
    """A line that expands to `content`, indented below it. Subclasses show both in `show_current`."""

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self.row: R | None = None
        self.is_open = False
        self.hit_count = 0
        self.line = DisclosureButton(theme, self)
        self.line.clicked.connect(self._on_clicked)
        self._content = QWidget(self)  # hidden with its margins; a layout would keep the margins
        self.content = QVBoxLayout(self._content)
        tokens = theme.tokens
        left = tokens.space_close + tokens.icon_small + tokens.space_close
        self.content.setContentsMargins(left, tokens.space_tight, 0, tokens.space_close)
        self.content.setSpacing(tokens.space_close)
        set_vbox(self, self.line, self._content, spacing=0)

    def show_current(self, row: R) -> None:
        """Show the line with `show_line`, and what stands in the content while it `is_open`."""
        raise NotImplementedError

    def show_line(self, icon: str, pieces: Sequence[LinePart], *, can_open: bool = True) -> None:
        """The line, with the number of search hits, and the content if it is open."""
        self.line.show_line(icon, "muted", [*pieces, *hit_count_parts(self.hit_count)], can_open=can_open)
        self.line.show()
        self._content.setVisible(self.is_open and can_open)

    def show_content_alone(self) -> None:
        """Show the content without the line."""
        self.line.hide()
        self._content.show()

    def set_open(self, is_open: bool) -> None:
        self.is_open = is_open
        self.line.setChecked(is_open)

    def set_row(self, row: R) -> None:
        self.row, self.hit_count = row, 0
        self.show_current(row)

    def show_hit_count(self, count: int) -> None:
        if count != self.hit_count:
            self.hit_count = count
            if self.row is not None:
                self.show_current(self.row)

    def _on_clicked(self, is_checked: bool) -> None:
        self.is_open = is_checked
        if self.row is not None:
            self.show_current(self.row)
        self.opened.emit(is_checked)
        self.resized.emit()
