"""Paints a line of the model picker: tick, name, provider, what the model can, context size, price, star."""

from dataclasses import dataclass

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QMouseEvent, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from errand.protocol.settings import Model
from errand.text.translation import tr
from errand.window.stores.model_choice import ModelLine, context_text, loaded_text, price_text
from errand.window.theme.style import paint_rounded
from errand.window.theme.theme import Theme

LINE = Qt.ItemDataRole.UserRole + 1
MARKS = Qt.ItemDataRole.UserRole + 2

_Index = QModelIndex | QPersistentModelIndex
_WIDE_PRICE, _WIDE_CONTEXT = "$0.15 / $0.60", "1.05M"
_RIGHT = Qt.AlignmentFlag.AlignRight


@dataclass(frozen=True, slots=True)
class LineMarks:
    """The ids of the current model, the default one, the favourites and the ticked ones.

    `ticked` is None in a list where one model is chosen, which has no boxes.
    """

    current: str = ""
    default: str = ""
    favourites: frozenset[str] = frozenset()
    ticked: frozenset[str] | None = None


class ModelDelegate(QStyledItemDelegate):
    """All lines have one height, headings too. Emits `star_clicked` with the id of a model."""

    star_clicked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        tokens = theme.tokens
        self._base, self._small = theme.font(tokens.size_base), theme.font(tokens.size_small)
        self._strong = theme.font(tokens.size_small, bold=True)
        small = QFontMetrics(self._small)
        self._price_width = small.horizontalAdvance(_WIDE_PRICE)
        self._context_width = small.horizontalAdvance(_WIDE_CONTEXT)
        self.line_height = QFontMetrics(self._base).height() + 2 * tokens.space_tight + 2

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(0, self.line_height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        line, marks = index.data(LINE), index.data(MARKS)
        assert isinstance(line, ModelLine)
        assert isinstance(marks, LineMarks)
        painter.save()
        rect, state = _rect(option), _state(option)
        tokens = self._theme.tokens
        inner = rect.adjusted(tokens.space_close, 0, -tokens.space_close, 0)
        if line.kind == "heading":
            heading = inner.adjusted(0, tokens.space_tight, 0, 0)
            painter.setFont(self._strong)
            self._draw(painter, heading, tokens.muted, line.name)
        else:
            self._paint_background(painter, rect, state)
            self._paint_choice(painter, inner, line, marks, is_active=_is_active(state))
        painter.restore()

    def editorEvent(
        self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: _Index
    ) -> bool:
        """Take a click on the star for itself: it is not a choice of the model."""
        line = index.data(LINE)
        if not isinstance(line, ModelLine) or line.model is None or not isinstance(event, QMouseEvent):
            return False
        tokens = self._theme.tokens
        inner = _rect(option).adjusted(tokens.space_close, 0, -tokens.space_close, 0)
        if not self._star_place(inner).contains(event.position().toPoint()):
            return False
        if event.type() == QEvent.Type.MouseButtonRelease:
            self.star_clicked.emit(line.key)
        return True

    def _paint_choice(
        self, painter: QPainter, inner: QRect, line: ModelLine, marks: LineMarks, *, is_active: bool
    ) -> None:
        tokens = self._theme.tokens
        side = tokens.icon_small
        if marks.ticked is not None:
            self._paint_box(painter, inner, line, is_ticked=line.key in marks.ticked)
        elif line.key and line.key == marks.current:
            self._paint_icon(painter, QRect(inner.left(), inner.top(), side, inner.height()), "check", "accent")
        text_rect = inner.adjusted(side + tokens.space_close, 0, 0, 0)
        if line.model is not None:
            is_favourite = line.key in marks.favourites
            if is_favourite or is_active:
                star = self._star_place(inner)
                self._paint_icon(painter, star, "star", "waiting_mark" if is_favourite else "muted")
            text_rect.setRight(self._paint_facts(painter, inner, line.model))
        painter.setFont(self._base)
        metrics = QFontMetrics(self._base)
        name = metrics.elidedText(_title(line), Qt.TextElideMode.ElideRight, text_rect.width())
        self._draw(painter, text_rect, tokens.muted if line.kind == "more" else tokens.text, name)
        text_rect.setLeft(text_rect.left() + metrics.horizontalAdvance(name) + tokens.space_close)
        details = " · ".join(
            part for part in (line.provider, tr("default") if line.key == marks.default else "", _loaded(line)) if part
        )
        painter.setFont(self._small)
        fitting = QFontMetrics(self._small).elidedText(details, Qt.TextElideMode.ElideRight, text_rect.width())
        self._draw(painter, text_rect, tokens.muted, fitting)

    def _paint_box(self, painter: QPainter, inner: QRect, line: ModelLine, *, is_ticked: bool) -> None:
        if line.kind == "more":
            return
        tokens, side = self._theme.tokens, self._theme.tokens.icon_small
        icon_rect = QRect(inner.left(), inner.top(), side, inner.height())
        box = QRect(0, 0, side, side)
        box.moveCenter(icon_rect.center())
        fill, edge = (tokens.accent, tokens.accent) if is_ticked else (tokens.raised, tokens.edge)
        paint_rounded(painter, box, tokens.radius_control / 2, fill=fill, line=edge)
        if is_ticked:
            self._paint_icon(painter, icon_rect, "check", "on_accent")

    def _paint_facts(self, painter: QPainter, inner: QRect, model: Model) -> int:
        """Paint the columns of facts from the right; returns where they begin."""
        tokens = self._theme.tokens
        painter.setFont(self._small)
        right = self._star_place(inner).left() - tokens.space_close
        price = QRect(right - self._price_width, inner.top(), self._price_width, inner.height())
        self._draw(painter, price, tokens.muted, price_text(model), _RIGHT)
        left = price.left() - tokens.space_normal - self._context_width
        context = QRect(left, inner.top(), self._context_width, inner.height())
        self._draw(painter, context, tokens.muted, context_text(model), _RIGHT)
        step = tokens.icon_small + tokens.space_tight
        for icon, has in (("brain", model.thinking), ("image", model.images), ("wrench", model.tools)):
            left -= step
            if has:
                star_rect = QRect(left, inner.top(), tokens.icon_small, inner.height())
                self._paint_icon(painter, star_rect, icon, "muted")
        return left - tokens.space_close

    def _star_place(self, inner: QRect) -> QRect:
        side = self._theme.tokens.icon_small
        return QRect(inner.right() - side, inner.top(), side, inner.height())

    def _paint_icon(self, painter: QPainter, place: QRect, name: str, colour: str) -> None:
        side = self._theme.tokens.icon_small - 2
        square = QRect(0, 0, side, side)
        square.moveCenter(place.center())
        pixmap = self._theme.icon(name, colour).pixmap(square.size(), painter.device().devicePixelRatio())
        painter.drawPixmap(square, pixmap)  # the icon keeps it; painting the icon would render its outline each time

    def _paint_background(self, painter: QPainter, place: QRect, state: QStyle.StateFlag) -> None:
        tokens = self._theme.tokens
        selected = state & QStyle.StateFlag.State_Selected
        hovered = state & QStyle.StateFlag.State_MouseOver
        if not selected and not hovered:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(tokens.selected if selected else tokens.hover))
        has_focus = selected and state & QStyle.StateFlag.State_HasFocus
        painter.setPen(QColor(tokens.focus) if has_focus else Qt.PenStyle.NoPen)
        painter.drawRoundedRect(place.adjusted(0, 0, -1, -1), tokens.radius_control, tokens.radius_control)

    @staticmethod
    def _draw(
        painter: QPainter,
        place: QRect,
        colour: str,
        text: str,
        side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    ) -> None:
        painter.setPen(QColor(colour))
        painter.drawText(place, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, text)


def _loaded(line: ModelLine) -> str:
    return loaded_text(line.model) if line.model is not None else ""


def _title(line: ModelLine) -> str:
    return tr("Use {model}").format(model=line.name) if line.kind == "typed" else line.name


def _is_active(state: QStyle.StateFlag) -> bool:
    return bool(state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver))


def _rect(option: QStyleOptionViewItem) -> QRect:
    return option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption


def _state(option: QStyleOptionViewItem) -> QStyle.StateFlag:
    return option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- PySide6's stubs leave out the fields of QStyleOption
