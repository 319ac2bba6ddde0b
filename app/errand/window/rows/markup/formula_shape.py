"""The drawn shape of a formula, and a guess at its size before it is laid out."""

import re
from dataclasses import dataclass

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from errand.window.rows.markup.source import Formula

_TEXT = re.compile(r"\\(?:text\w*|math\w+|operatorname\*?|left|right|[bB]igg?[lr]?|begin\{\w+\*?\}|end\{\w+\*?\})")
_SYMBOL = re.compile(r"\\[a-zA-Z]+|\\.|[^\s{}^_&\\]")
_SCRIPT = re.compile(r"[_^](?:\{([^{}]*)\}|.)")
_OPERATOR = re.compile(
    r"[-+=<>&]|\\(?:[lg]eq?|ne|sim|to|in|times|cdot|quad|approx|equiv|leftarrow|rightarrow|pm|mid)\b"
)
_FRACTION = re.compile(r"\\[dtc]?frac|\\binom")
_LIMITS = re.compile(r"\\(?:sum|prod|int|bigcup|bigcap|lim|max|min)\b")


@dataclass(frozen=True, slots=True)
class Outline:
    """A glyph or a line: its path, scaled and then moved. Filled, or drawn with a pen of that width.

    `is_known` is False for the sign of a character that the font lacks.
    """

    path: QPainterPath
    x: float
    y: float
    scale: float
    pen: float = 0
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class FormulaShape:
    """Lengths in em; without outlines it is a guess. Outlines are relative to the beginning of the baseline."""

    width: float
    ascent: float
    descent: float
    outlines: tuple[Outline, ...] = ()

    def paint(self, painter: QPainter, origin: QPointF, em: float, colour: QColor) -> None:
        """`em` is in pixels."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(origin)
        painter.scale(em, em)
        for outline in self.outlines:
            painter.save()
            painter.translate(outline.x, outline.y)
            painter.scale(outline.scale, outline.scale)
            if outline.pen:
                painter.strokePath(outline.path, QPen(colour, outline.pen, Qt.PenStyle.SolidLine))
            else:
                painter.fillPath(outline.path, colour)
            painter.restore()
        painter.restore()


def estimated_shape(formula: Formula) -> FormulaShape:
    """Return a guess at the size; most formulas of real texts are about as large."""
    tex = _TEXT.sub("", formula.tex)
    rows = [row for row in tex.split("\\\\") if row.strip()] or [tex]
    width = max(map(_width, rows))
    height = 0.2 + len(rows) if len(rows) > 1 else 0.0
    is_high = formula.is_display and len(rows) == 1
    if _FRACTION.search(tex):
        height = max(height, 2.5 if is_high else 1.5)
        width *= 0.8
    if is_high and _LIMITS.search(tex):
        height = max(height, 2.9)
    if not height:
        return FormulaShape(width, 0.8, 0.25)
    return FormulaShape(width, height / 2 + 0.25, height / 2 - 0.25)


def _width(row: str) -> float:
    scripts = sum(len(_SYMBOL.findall(script.group())) for script in _SCRIPT.finditer(row))
    return 0.55 * len(_SYMBOL.findall(row)) + 0.35 * len(_OPERATOR.findall(row)) - 0.25 * scripts + 0.2
