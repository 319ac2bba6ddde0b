"""Formulas in documents: drawn in place of their source, each when there is time for it."""

import threading
from collections import OrderedDict
from importlib import import_module

from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QFontMetricsF,
    QPainter,
    QPyTextObject,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)

from errand.window.rows.markup.formula_shape import FormulaShape, estimated_shape
from errand.window.rows.markup.source import Formula
from errand.window.rows.markup.text_objects import (
    FORMULA_TYPE,
    IS_DISPLAY,
    IS_DRAWN,
    OBJECT,
    SOURCE,
    move_lines_apart,
    object_fragments,
)
from errand.window.theme.theme import Theme

_X_HEIGHT = 0.473  # of the font of formulas, in em
_MAX_SCALE = 1.25
_ROOM_ABOVE = 1.35  # of the baseline in a line of the transcript, in em
_PADDING = 0.25  # above and below a formula on a line of its own, in em
_KEPT = 1_000  # shapes of formulas, of a few kilobytes each


class FormulaCache:
    """The shapes of formulas by their TeX: they fit any size and colour. The oldest are forgotten."""

    def __init__(self) -> None:
        self._shapes: OrderedDict[tuple[str, bool], FormulaShape | None] = OrderedDict()
        self._import: threading.Thread | None = None

    def __contains__(self, formula: Formula) -> bool:
        return (formula.tex, formula.is_display) in self._shapes

    def shape(self, formula: Formula) -> FormulaShape | None:
        """None for a formula that stays source text, or is not known yet."""
        key = (formula.tex, formula.is_display)
        if key in self._shapes:
            self._shapes.move_to_end(key)
        return self._shapes.get(key)

    def add(self, formula: Formula) -> bool:
        """Lay out a formula, which takes some 10 ms; False while the library for it is still being imported."""
        if self._import is None:
            self._import = threading.Thread(target=_import_layout, name="formulas", daemon=True)
            self._import.start()
        if self._import.is_alive():
            return False
        from errand.window.rows.markup.formula_layout import lay_out  # imported by the thread

        self._shapes[formula.tex, formula.is_display] = lay_out(formula)
        if len(self._shapes) > _KEPT:
            self._shapes.popitem(last=False)
        return True

    def clear(self) -> None:
        self._shapes.clear()


def _import_layout() -> None:
    import_module("errand.window.rows.markup.formula_layout")


FORMULAS = FormulaCache()


class DocumentFormulas(QPyTextObject):
    """The formulas of one document. `is_pending`: not all of them are drawn yet."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        super().__init__(document)
        self._document = document
        self._tokens = theme.tokens
        self._shapes: dict[str, FormulaShape] = {}
        self._pending: dict[str, Formula] = {}
        self._sizes: dict[int, QSizeF] = {}  # by place, in a text of this width and length
        self._sized = (0.0, 0)
        metrics = QFontMetricsF(document.defaultFont())
        # Letters of the formula are as high as those of the text.
        self._em = min(max(1.0, metrics.xHeight() / _X_HEIGHT / theme.tokens.size_reading), _MAX_SCALE)
        self._room_below = metrics.descent() + metrics.lineSpacing() / 5

    def attach(self) -> None:
        """Attach once the text is complete: a document that has a layout lays each change out."""
        self._document.documentLayout().registerHandler(FORMULA_TYPE, self)

    @property
    def is_pending(self) -> bool:
        return bool(self._pending)

    def insert(self, cursor: QTextCursor, formula: Formula) -> None:
        """Replace the selection, which is a marker."""
        char_format = cursor.charFormat()
        char_format.setProperty(SOURCE, formula.source)
        shape = FORMULAS.shape(formula)
        if shape is None and formula in FORMULAS:
            self._insert_source(cursor, char_format)
            return
        if shape is None:
            self._pending[formula.source] = formula
        self._shapes[formula.source] = shape or estimated_shape(formula)
        self._sizes.clear()
        self._set_shape(char_format, formula, is_drawn=shape is not None)
        cursor.insertText(OBJECT, char_format)
        if formula.is_display:
            _set_apart(cursor)

    def fill_in(self) -> bool:
        """Draw the next formula; False while the library for it is still being imported."""
        source, formula = next(reversed(self._pending.items()))  # they were inserted from the last to the first
        if formula not in FORMULAS and not FORMULAS.add(formula):
            return False
        del self._pending[source]
        self._sizes.clear()
        shape = FORMULAS.shape(formula)
        if shape is not None:
            self._shapes[source] = shape
        for cursor in _formula_characters(self._document, source):
            char_format = cursor.charFormat()
            if shape is None:
                self._insert_source(cursor, char_format)
            else:
                self._set_shape(char_format, formula, is_drawn=True)
                cursor.setCharFormat(char_format)
                if self._is_high(char_format):
                    move_lines_apart(cursor)
        return True

    def has_high(self, block: QTextBlock) -> bool:
        """Return True if the lines of a paragraph have to move apart for its formulas."""
        formats = (fragment.charFormat() for fragment in object_fragments(block))
        return any(each.hasProperty(SOURCE) and self._is_high(each) for each in formats)

    def _is_high(self, char_format: QTextCharFormat) -> bool:
        if char_format.objectType() != FORMULA_TYPE:
            return False
        if char_format.verticalAlignment() == QTextCharFormat.VerticalAlignment.AlignMiddle:
            return True
        return self._shape(char_format).ascent * self._em_of(char_format) > _ROOM_ABOVE * self._tokens.size_reading

    def _set_shape(self, char_format: QTextCharFormat, formula: Formula, *, is_drawn: bool) -> None:
        char_format.setObjectType(FORMULA_TYPE)
        char_format.setProperty(IS_DRAWN, is_drawn)
        char_format.setProperty(IS_DISPLAY, formula.is_display)
        shape = self._shapes[formula.source]
        is_low = not formula.is_display and shape.descent * self._em_of(char_format) <= self._room_below
        align = QTextCharFormat.VerticalAlignment
        char_format.setVerticalAlignment(align.AlignNormal if is_low else align.AlignMiddle)

    def _insert_source(self, cursor: QTextCursor, char_format: QTextCharFormat) -> None:
        char_format.setObjectType(QTextFormat.ObjectTypes.NoObject.value)
        char_format.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignNormal)
        char_format.setForeground(QColor(self._tokens.muted))
        cursor.insertText(str(char_format.property(SOURCE)).replace("\n", " "), char_format)

    def intrinsicSize(self, doc: QTextDocument, posInDocument: int, format: QTextFormat) -> QSizeF:
        """Return the size, which is kept: Qt asks ten times for each formula of a text that it lays out once."""
        text = (self._document.textWidth(), self._document.characterCount())
        if text != self._sized:
            self._sizes.clear()
            self._sized = text
        if posInDocument not in self._sizes:
            self._sizes[posInDocument] = self._size(format)
        return self._sizes[posInDocument]

    def _size(self, format: QTextFormat) -> QSizeF:
        """Return the size. A formula that reaches far down is as high on both sides of the line that Qt takes for
        the middle.

        Any other stands on the baseline, and reaches down into the room that the line has below it.
        """
        char_format = format.toCharFormat()
        shape, em = self._shape(format), self._fitted_em(char_format)
        padding = _PADDING * em if format.boolProperty(IS_DISPLAY) else 0
        ascent, descent = shape.ascent * em + padding, shape.descent * em + padding
        if char_format.verticalAlignment() == QTextCharFormat.VerticalAlignment.AlignNormal:
            return QSizeF(shape.width * em + 1, ascent)
        middle = _half_x_height(char_format)
        return QSizeF(shape.width * em + 1, max(2 * ascent - middle, 2 * descent + middle))

    def drawObject(
        self, painter: QPainter, rect: QRectF | QRect, doc: QTextDocument, posInDocument: int, format: QTextFormat
    ) -> None:
        rect = QRectF(rect)
        shape, char_format = self._shape(format), format.toCharFormat()
        if not shape.outlines:
            self._draw_place(painter, rect)
            return
        has_colour = char_format.foreground().style() != Qt.BrushStyle.NoBrush
        colour = char_format.foreground().color() if has_colour else QColor(self._tokens.text)
        baseline = rect.bottom()
        if char_format.verticalAlignment() != QTextCharFormat.VerticalAlignment.AlignNormal:
            baseline = rect.top() + (rect.height() + _half_x_height(char_format)) / 2
        shape.paint(painter, QPointF(rect.left(), baseline), self._fitted_em(char_format), colour)

    def _draw_place(self, painter: QPainter, rect: QRectF) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._tokens.code))
        painter.drawRoundedRect(rect, self._tokens.radius_control, self._tokens.radius_control)
        painter.restore()

    def _shape(self, format: QTextFormat) -> FormulaShape:
        return self._shapes[str(format.property(SOURCE))]

    def _em_of(self, char_format: QTextCharFormat) -> float:
        size = char_format.intProperty(QTextFormat.Property.FontPixelSize.value)
        return self._em * (size or self._tokens.size_reading)

    def _fitted_em(self, char_format: QTextCharFormat) -> float:
        """Smaller for a formula that is wider than the text."""
        em = self._em_of(char_format)
        wide, room = self._shape(char_format).width * em, self._document.textWidth() - 2
        return em * room / wide if 0 < room < wide else em


def _half_x_height(char_format: QTextCharFormat) -> float:
    """Return half of the x-height, as Qt calculates it."""
    return QFontMetrics(char_format.font()).xHeight() / 2


def _formula_characters(document: QTextDocument, source: str) -> list[QTextCursor]:
    """Return the characters in place of a formula, each selected, from the last to the first."""
    selections: list[QTextCursor] = []
    block = document.begin()
    while block.isValid():
        for fragment in object_fragments(block):
            if fragment.text()[:1] == OBJECT and fragment.charFormat().property(SOURCE) == source:
                for position in range(fragment.position(), fragment.position() + fragment.length()):
                    cursor = QTextCursor(document)
                    cursor.setPosition(position)
                    cursor.setPosition(position + 1, QTextCursor.MoveMode.KeepAnchor)
                    selections.append(cursor)
        block = block.next()
    return selections[::-1]


def _set_apart(cursor: QTextCursor) -> None:
    """Give a formula, which the cursor stands behind, a line of its own: a paragraph, or a line of an item or cell."""
    document, block = cursor.document(), cursor.block()
    is_paragraph = not block.textList() and not cursor.currentTable() and not block.blockFormat().headingLevel()
    first, last = block.position(), block.position() + block.length() - 1
    start, end = cursor.position() - 1, cursor.position()
    after, before = end, start
    while after < last and document.characterAt(after).isspace():
        after += 1
    while before > first and document.characterAt(before - 1).isspace():
        before -= 1
    if after < last:
        _break(cursor, end, after, is_paragraph=is_paragraph)
    if before > first:
        _break(cursor, before, start, is_paragraph=is_paragraph)
    if is_paragraph:
        block_format = QTextBlockFormat()
        block_format.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        formula = QTextCursor(document)
        formula.setPosition(end - (start - before) + (1 if before > first else 0))
        formula.mergeBlockFormat(block_format)


def _break(cursor: QTextCursor, start: int, end: int, *, is_paragraph: bool) -> None:
    cursor.setPosition(start)
    cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
    cursor.removeSelectedText()
    if is_paragraph:
        cursor.insertBlock()
    else:
        cursor.insertText("\u2028")
