"""Containers: card, flow layout, scroll area that is as high as its content; a line between rows."""

from typing import Literal

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QLayout, QLayoutItem, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from errand.window.theme.style import paint_focus_ring, set_style
from errand.window.theme.theme import Theme

CardTone = Literal["plain", "waiting", "failed", "done"]
_MARK_COLOURS: dict[CardTone, str] = {"waiting": "waiting_mark", "failed": "failed_mark", "done": "done_mark"}
_MARGIN = 3


class Card(QWidget):
    """Add the content to `body`."""

    def __init__(self, theme: Theme, tone: CardTone = "plain") -> None:
        super().__init__()
        self._theme = theme
        self._tone: CardTone = tone
        self._has_ring = False
        space = theme.tokens.space_wide
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(space, theme.tokens.space_normal, space, theme.tokens.space_normal)
        self.body.setSpacing(theme.tokens.space_close)
        theme.changed.connect(self.update)

    def set_tone(self, tone: CardTone) -> None:
        self._tone = tone
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """A ring is seen only after keyboard use."""
        if event.reason() != Qt.FocusReason.ActiveWindowFocusReason:
            self._has_ring = event.reason() != Qt.FocusReason.MouseFocusReason
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QPainterPath()
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        outline.addRoundedRect(frame, tokens.radius_card, tokens.radius_card)
        painter.fillPath(outline, QColor(tokens.raised))
        mark = _MARK_COLOURS.get(self._tone)
        if mark is not None:
            painter.setClipPath(outline)
            painter.fillRect(QRectF(0, 0, _MARGIN, self.height()), QColor(self._theme.colour(mark)))
            painter.setClipping(False)
        painter.setPen(QPen(QColor(tokens.outline if tokens.dark else tokens.hairline), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(outline)
        if self.hasFocus() and self._has_ring:
            paint_focus_ring(painter, self.rect(), tokens, tokens.radius_card)


class FlowLayout(QLayout):
    """Each item has its preferred size; hidden items take no space."""

    def __init__(self, space: int, *widgets: QWidget) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._space = space
        self.setContentsMargins(0, 0, 0, 0)
        for widget in widgets:
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt calls it with an index past the end
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt calls it with an index past the end
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        rectangles = self._rectangles(width)
        return max((rectangle.bottom() + 1 for rectangle in rectangles), default=0)

    def sizeHint(self) -> QSize:
        """Return all items in one row."""
        sizes = [item.sizeHint() for item in self._seen()]
        width = sum(size.width() for size in sizes) + self._space * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:
        sizes = [item.sizeHint() for item in self._seen()]
        return QSize(
            max((size.width() for size in sizes), default=0), max((size.height() for size in sizes), default=0)
        )

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, rectangle in zip(self._seen(), self._rectangles(rect.width()), strict=True):
            item.setGeometry(rectangle.translated(rect.topLeft()))

    def _seen(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _rectangles(self, width: int) -> list[QRect]:
        rectangles: list[QRect] = []
        corner, bottom = QPoint(0, 0), 0
        for item in self._seen():
            size = item.sizeHint()
            if corner.x() and corner.x() + size.width() > width:
                corner = QPoint(0, bottom + self._space)
            rectangles.append(QRect(corner, size))
            bottom = max(bottom, corner.y() + size.height())
            corner = QPoint(corner.x() + size.width() + self._space, corner.y())
        return rectangles


class FitContentScrollView(QScrollArea):
    """Call `fit` when the height of the content has changed."""

    def __init__(self, inner: QWidget, min_height: int) -> None:
        super().__init__()
        self._inner = inner
        self._min_height = min_height
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.setViewport(QWidget())  # see TranscriptView
        self.setWidget(inner)
        inner.setAutoFillBackground(False)

    def fit(self) -> None:
        self.updateGeometry()
        parent = self.parentWidget()
        layout = parent.layout() if parent is not None else None  # pyright: ignore[reportUnnecessaryComparison] -- there is no parent during construction
        if layout is not None:
            layout.activate()

    def sizeHint(self) -> QSize:
        return QSize(0, self._height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, min(self._min_height, self._height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self.updateGeometry()

    def _height(self) -> int:
        layout = self._inner.layout()
        if layout is not None and layout.hasHeightForWidth():
            return layout.totalHeightForWidth(self.viewport().width())
        return self._inner.sizeHint().height()


def vertical_scroll_area(inside: QWidget) -> QScrollArea:
    """Scrolls `inside` up and down, and makes it as wide as there is room."""
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(inside)
    return area


def clear_layout(layout: QLayout, first: int = 0) -> None:
    """Delete the widgets of a layout from this one on."""
    while (item := layout.takeAt(first)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()


def hairline() -> QFrame:
    """Return a line between rows."""
    line = QFrame()
    line.setFixedHeight(1)
    set_style(line, "look", "hairline")
    return line
