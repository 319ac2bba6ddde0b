"""Paints list items: title, hint, detail line, headings."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from errand.window.theme.theme import Theme

HINT = Qt.ItemDataRole.UserRole + 1
DETAIL = Qt.ItemDataRole.UserRole + 2
HEADING = Qt.ItemDataRole.UserRole + 3
KEY = Qt.ItemDataRole.UserRole + 4
"""Identifies the item; its meaning is defined by the list."""

_Index = QModelIndex | QPersistentModelIndex


class ItemDelegate(QStyledItemDelegate):
    """The title is the display role; HINT, DETAIL (strings) and HEADING (the text of a heading above the item)."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        height = self._line(self._title_font()) + 2 * self._theme.tokens.space_tight
        if _text(index, DETAIL):
            height += self._line(self._detail_font())
        if _text(index, HEADING):
            height += self._heading_height()
        return QSize(0, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.save()
        place = self._paint_heading(painter, _rect(option), _text(index, HEADING))
        self._paint_background(painter, place, _state(option))
        tokens = self._theme.tokens
        inner = place.adjusted(tokens.space_close, tokens.space_tight, -tokens.space_close, -tokens.space_tight)
        base, small = self._title_font(), self._detail_font()
        line = QRect(inner.left(), inner.top(), inner.width(), self._line(base))
        hint = _text(index, HINT)
        self._draw_text(painter, line, small, tokens.muted, hint, Qt.AlignmentFlag.AlignRight)
        if hint:
            line.setRight(line.right() - QFontMetrics(small).horizontalAdvance(hint) - tokens.space_close)
        self._draw_text(painter, line, base, tokens.text, _text(index, Qt.ItemDataRole.DisplayRole))
        if detail := _text(index, DETAIL):
            below = QRect(inner.left(), line.bottom() + 1, inner.width(), self._line(small))
            self._draw_text(painter, below, small, tokens.muted, detail)
        painter.restore()

    def title_rect(self, option: QStyleOptionViewItem, index: _Index) -> QRect:
        """The rectangle of the item without the heading above it."""
        return _rect(option).adjusted(0, self._heading_height() if _text(index, HEADING) else 0, 0, 0)

    def _paint_heading(self, painter: QPainter, place: QRect, heading: str) -> QRect:
        """Paint the heading above an item; returns the remaining rectangle."""
        if not heading:
            return place
        tokens, height = self._theme.tokens, self._heading_height()
        top = QRect(place.left() + tokens.space_close, place.top(), place.width(), height - tokens.space_tight)
        self._draw_text(
            painter, top, self._detail_font(bold=True), tokens.muted, heading, Qt.AlignmentFlag.AlignLeft, bottom=True
        )
        return place.adjusted(0, height, 0, 0)

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

    def _title_font(self) -> QFont:
        return self._theme.font(self._theme.tokens.size_base)

    def _detail_font(self, *, bold: bool = False) -> QFont:
        return self._theme.font(self._theme.tokens.size_small, bold=bold)

    def _line(self, font: QFont) -> int:
        return QFontMetrics(font).height() + self._theme.tokens.space_tight // 2

    def _heading_height(self) -> int:
        return self._line(self._detail_font(bold=True)) + self._theme.tokens.space_wide


def _text(index: _Index, role: int) -> str:
    value: object = index.data(role)
    return value if isinstance(value, str) else ""


def _rect(option: QStyleOptionViewItem) -> QRect:
    return option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption


def _state(option: QStyleOptionViewItem) -> QStyle.StateFlag:
    return option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption
