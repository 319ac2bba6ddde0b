"""Paints list items: title, state, count, hint, detail line, headings."""

from typing import get_args

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from errand.window.theme.style import paint_rounded
from errand.window.theme.theme import Theme
from errand.window.widgets.status_dot import DotState, paint_status

HINT = Qt.ItemDataRole.UserRole + 1
DETAIL = Qt.ItemDataRole.UserRole + 2
HEADING = Qt.ItemDataRole.UserRole + 3
KEY = Qt.ItemDataRole.UserRole + 4
"""Identifies the item; its meaning is defined by the list."""
GROUP = Qt.ItemDataRole.UserRole + 5
"""The heading of its group, in every item of it; the first one has it as HEADING."""
STATE = Qt.ItemDataRole.UserRole + 6
COUNT = Qt.ItemDataRole.UserRole + 7
ACTION = Qt.ItemDataRole.UserRole + 8

HIT_START, HIT_END = "\u2068", "\u2069"
_STATES: tuple[DotState, ...] = get_args(DotState)
_DOT = 14
_MAX_COUNT = 99
# Characters before a hit that stay when a long text is cut.
_CONTEXT = 12

_Index = QModelIndex | QPersistentModelIndex


class ItemDelegate(QStyledItemDelegate):
    """The title is the display role; HINT, DETAIL (strings) and HEADING (the text of a heading above the item).

    STATE is a `DotState`, drawn unless idle; a COUNT above 0 is drawn as a badge and makes the title bold. An item with
    ACTION is a line to click on. In DETAIL, text between HIT_START and HIT_END is bold.
    """

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        height = self._line(self._title_font()) + 2 * self._theme.tokens.space_tight
        if _text(index, DETAIL):
            height += self._line(self._detail_font())
        if _text(index, HEADING):
            height += self.heading_height()
        return QSize(0, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.save()
        rect = self._paint_heading(painter, _rect(option), _text(index, HEADING))
        self._paint_background(painter, rect, _state(option))
        tokens = self._theme.tokens
        inner = rect.adjusted(tokens.space_close, tokens.space_tight, -tokens.space_close, -tokens.space_tight)
        small = self._detail_font()
        line = QRect(inner.left(), inner.top(), inner.width(), self._line(self._title_font()))
        self._paint_title(painter, line, index)
        if detail := _text(index, DETAIL):
            below = QRect(inner.left(), line.bottom() + 1, inner.width(), self._line(small))
            self._paint_detail(painter, below, detail)
        painter.restore()

    def _paint_title(self, painter: QPainter, line: QRect, index: _Index) -> None:
        """Paint hint, count and state from the right; the title has the rest."""
        tokens, small = self._theme.tokens, self._detail_font()
        hint, count = _text(index, HINT), _number(index, COUNT)
        if hint:
            self._draw_text(painter, line, small, tokens.muted, hint, Qt.AlignmentFlag.AlignRight)
            line.setRight(line.right() - QFontMetrics(small).horizontalAdvance(hint) - tokens.space_close)
        if count:
            line.setRight(self._paint_count(painter, line, count) - tokens.space_tight)
        state = _text(index, STATE)
        if state and state != "idle":
            square = QRectF(line.right() - _DOT, line.center().y() - _DOT / 2 + 1, _DOT, _DOT)
            paint_status(
                painter, square, next(known_state for known_state in _STATES if known_state == state), self._theme, 1.0
            )
            line.setRight(line.right() - _DOT - tokens.space_tight)
        title = _text(index, Qt.ItemDataRole.DisplayRole)
        if index.data(ACTION):
            self._draw_text(painter, line, small, tokens.muted, title)
        else:
            self._draw_text(painter, line, self._title_font(bold=count > 0), tokens.text, title)

    def _paint_count(self, painter: QPainter, line: QRect, count: int) -> int:
        """Paint the badge at the right; returns its left edge."""
        tokens, font = self._theme.tokens, self._detail_font(bold=True)
        text = str(count) if count <= _MAX_COUNT else f"{_MAX_COUNT}+"
        metrics = QFontMetrics(font)
        height = metrics.height()
        width = max(height, metrics.horizontalAdvance(text) + tokens.space_close)
        pill = QRect(line.right() - width + 1, line.center().y() - height // 2 + 1, width, height)
        paint_rounded(painter, pill, height / 2, fill=tokens.accent)
        self._draw_text(painter, pill, font, tokens.on_accent, text, Qt.AlignmentFlag.AlignHCenter)
        return pill.left()

    def _paint_detail(self, painter: QPainter, line: QRect, detail: str) -> None:
        """Paint the detail in one line; a hit that would be cut off moves to the left."""
        small, bold = self._detail_font(), self._detail_font(bold=True)
        start = detail.find(HIT_START)
        before = QFontMetrics(small).horizontalAdvance(detail[: max(start, 0)])
        if start > _CONTEXT and before > line.width() // 2:
            detail = "…" + detail[start - _CONTEXT :].lstrip()
        tokens, rest = self._theme.tokens, QRect(line)
        for number, part in enumerate(detail.replace(HIT_END, HIT_START).split(HIT_START)):
            font, colour = (bold, tokens.text) if number % 2 else (small, tokens.muted)
            if part and rest.width() > 0:
                self._draw_text(painter, rest, font, colour, part)
                rest.setLeft(rest.left() + QFontMetrics(font).horizontalAdvance(part))

    def title_rect(self, option: QStyleOptionViewItem, index: _Index) -> QRect:
        """Return the rectangle of the item without the heading above it."""
        return _rect(option).adjusted(0, self.heading_height() if _text(index, HEADING) else 0, 0, 0)

    def _paint_heading(self, painter: QPainter, place: QRect, heading: str) -> QRect:
        """Paint the heading above an item; returns the remaining rectangle."""
        if not heading:
            return place
        height = self.heading_height()
        self.draw_heading(painter, QRect(place.left(), place.top(), place.width(), height), heading)
        return place.adjusted(0, height, 0, 0)

    def draw_heading(self, painter: QPainter, place: QRect, heading: str) -> None:
        """Draw the text of a heading as it stands above its first item."""
        tokens = self._theme.tokens
        line = place.adjusted(tokens.space_close, 0, -tokens.space_close, -tokens.space_tight)
        self._draw_text(
            painter, line, self._detail_font(bold=True), tokens.muted, heading, Qt.AlignmentFlag.AlignLeft, bottom=True
        )

    def _paint_background(self, painter: QPainter, place: QRect, state: QStyle.StateFlag) -> None:
        tokens = self._theme.tokens
        selected, hovered = state & QStyle.StateFlag.State_Selected, state & QStyle.StateFlag.State_MouseOver
        has_keyboard = state & QStyle.StateFlag.State_HasFocus
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = tokens.selected if selected else tokens.hover if hovered else ""
        painter.setBrush(QColor(ground) if ground else Qt.BrushStyle.NoBrush)
        painter.setPen(QColor(tokens.focus) if has_keyboard else Qt.PenStyle.NoPen)
        painter.drawRoundedRect(place.adjusted(0, 0, -1, -1), tokens.radius_control, tokens.radius_control)

    @staticmethod
    def _draw_text(
        painter: QPainter,
        rect: QRect,
        font: QFont,
        colour: str,
        text: str,
        side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
        *,
        bottom: bool = False,
    ) -> None:
        painter.setFont(font)
        painter.setPen(QColor(colour))
        fitting = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        height = Qt.AlignmentFlag.AlignBottom if bottom else Qt.AlignmentFlag.AlignVCenter
        painter.drawText(rect, side | height | Qt.TextFlag.TextSingleLine, fitting)

    def _title_font(self, *, bold: bool = False) -> QFont:
        return self._theme.font(self._theme.tokens.size_base, bold=bold)

    def _detail_font(self, *, bold: bool = False) -> QFont:
        return self._theme.font(self._theme.tokens.size_small, bold=bold)

    def _line(self, font: QFont) -> int:
        return QFontMetrics(font).height() + self._theme.tokens.space_tight // 2

    def heading_height(self) -> int:
        """Return the height of a heading above an item."""
        return self._line(self._detail_font(bold=True)) + self._theme.tokens.space_wide


def _text(index: _Index, role: int) -> str:
    value: object = index.data(role)
    return value if isinstance(value, str) else ""


def _number(index: _Index, role: int) -> int:
    value: object = index.data(role)
    return value if isinstance(value, int) else 0


def _rect(option: QStyleOptionViewItem) -> QRect:
    return option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption


def _state(option: QStyleOptionViewItem) -> QStyle.StateFlag:
    return option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption
