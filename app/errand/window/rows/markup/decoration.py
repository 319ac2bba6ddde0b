"""What stands beside paragraphs of a Markdown document and Qt does not paint: bars of quotations, boxes of tasks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen, QTextBlock, QTextBlockFormat, QTextDocument, QTextFormat

from errand.window.theme.tokens import DesignTokens

if TYPE_CHECKING:
    from errand.window.rows.markup.formulas import DocumentFormulas  # most texts have none

_QUOTE = QTextFormat.Property.BlockQuoteLevel
_BAR = 3
_NO_MARKER = QTextBlockFormat.MarkerType.NoMarker


@dataclass(frozen=True, slots=True)
class QuoteBar:
    """The bar beside quoted paragraphs, from their first to their last block; `level` counts from 1."""

    first: int
    last: int
    level: int


class MarkdownDocument(QTextDocument):
    """`TextView` paints the bars and the boxes, which are given by the numbers of blocks. Formulas draw themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.bars: tuple[QuoteBar, ...] = ()
        self.boxes: tuple[int, ...] = ()
        self.formulas: DocumentFormulas | None = None

    def find_decorations(self) -> None:
        """Find the decorations, once the text is complete."""
        levels: list[int] = []
        boxes: list[int] = []
        block = self.begin()
        while block.isValid():
            levels.append(block.blockFormat().intProperty(_QUOTE))
            if block.blockFormat().marker() != _NO_MARKER:
                boxes.append(block.blockNumber())
            block = block.next()
        self.bars, self.boxes = _bars(levels), tuple(boxes)


def _bars(levels: list[int]) -> tuple[QuoteBar, ...]:
    bars: list[QuoteBar] = []
    for level in range(1, min(max(levels, default=0), 10) + 1):
        first: int | None = None
        for number, deep in enumerate([*levels, 0]):
            if deep >= level and first is None:
                first = number
            elif deep < level and first is not None:
                bars.append(QuoteBar(first, number - 1, level))
                first = None
    return tuple(bars)


def paint_decorations(painter: QPainter, document: MarkdownDocument, tokens: DesignTokens) -> None:
    """Paint in the coordinates of the document, which has been laid out."""
    layout = document.documentLayout()
    for bar in document.bars:
        first = layout.blockBoundingRect(document.findBlockByNumber(bar.first))
        last = layout.blockBoundingRect(document.findBlockByNumber(bar.last))
        left = (bar.level - 1) * tokens.space_wide
        bottom = max(last.bottom(), _bottom(document.findBlockByNumber(bar.last)))
        painter.fillRect(QRectF(left, first.top(), _BAR, bottom - first.top()), QColor(tokens.outline))
    for number in document.boxes:
        block = document.findBlockByNumber(number)
        _paint_box(painter, block, layout.blockBoundingRect(block), tokens)


def _bottom(block: QTextBlock) -> float:
    """Return the bottom of the last line.

    Qt leaves it out of the rectangle of a paragraph whose lines may be higher than usual.
    """
    line = block.layout().lineAt(block.layout().lineCount() - 1)
    return block.layout().position().y() + line.y() + line.height() if line.isValid() else 0


def _paint_box(painter: QPainter, block: QTextBlock, rect: QRectF, tokens: DesignTokens) -> None:
    """A check box in place of the item's bullet, in the middle of its first line."""
    side = tokens.size_reading
    line = block.layout().lineAt(0)
    text = block.layout().position() + (line.position() if line.isValid() else QPointF())
    height = line.height() if line.isValid() else rect.height()
    box = QRectF(QPointF(text.x() - side - tokens.space_tight, text.y() + (height - side) / 2), QSizeF(side, side))
    is_checked = block.blockFormat().marker() == QTextBlockFormat.MarkerType.Checked
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(tokens.accent if is_checked else tokens.edge), 1))
    painter.setBrush(QColor(tokens.accent) if is_checked else QColor(tokens.raised))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
    if is_checked:
        painter.setPen(QPen(QColor(tokens.on_accent), 1.6))
        unit = side / 13
        points = [QPointF(3.2, 6.8), QPointF(5.5, 9.2), QPointF(9.8, 4.2)]
        painter.drawPolyline([box.topLeft() + point * unit for point in points])
    painter.restore()
