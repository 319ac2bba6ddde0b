"""Lays out formulas as outlines of glyphs. The only file that imports ziamath, which takes 0.2 s: see `formula_cache`.

A formula is refused, and shown as its source, if it is malformed, has an unknown command or a character that the font
lacks, or would take long: ziamath builds the contents of a row with stretchy operators at least twice.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainterPath
from ziamath import operators
from ziamath.nodes.mrow import Merror, Mrow
from ziamath.nodes.mspace import Mpadded, Mphantom
from ziamath.tex import tex2mml
from ziamath.zmath import Math

from errand.window.rows.markup.formula_shape import Formula, FormulaShape, Outline

# The size at which formulas are laid out, in pixels: that of the font in ziamath, whose smallest script depends on it.
_EM = 24.0
_MAX_LENGTH = 2_000
_MAX_DEPTH = 40  # of braces and environments
# The parts of a formula, counted as often as they are built, 0.1 ms each: a derivation of five lines has as many.
_MAX_COST = 2_200
_LONG_ROW = 100
_MAX_WIDTH, _MAX_HEIGHT = 200.0, 60.0  # in em
# Commands that define others could make a short text endless.
_DEFINITIONS = re.compile(
    r"\\(?:[exg]?def|let|(?:re|provide)?newcommand|providecommand|newenvironment|DeclareMath\w+)\b"
)
_ALIASES = (
    (re.compile(r"\\(?:label|tag)\*?\{[^{}]*\}|\\(?:nonumber|notag)\b"), ""),
    (re.compile(r"\\(?:bm|pmb)\b"), r"\\boldsymbol"),
    (re.compile(r"\\(begin|end)\{(?:equation|gather|multline|displaymath|math)\*?\}"), ""),
    (re.compile(r"\\(begin|end)\{(?:align|eqnarray|split|alignat|flalign)\*?\}"), r"\\\1{align*}"),
    (re.compile(r"\\[lr]vert\b"), "|"),
    (re.compile(r"\\[lr]Vert\b"), r"\\|"),
    (re.compile(r"\\operatorname\*"), r"\\operatorname"),
)
_ESCAPED = re.compile(r"\\[{}|]")
_ROWS = frozenset(
    ("math", "mrow", "mtd", "mtr", "mstyle", "msqrt", "mfenced", "menclose", "mphantom", "mpadded", "merror")
)
_COORDINATES = {"M": 2, "L": 2, "Q": 4, "C": 6}
_WINDING = Qt.FillRule.WindingFill
_MISSING_GLYPH = re.compile(r"_0\Z")


def lay_out(formula: Formula) -> FormulaShape | None:
    """Return None if it is to be shown as its source."""
    tex = formula.tex
    for pattern, replacement in _ALIASES:
        tex = pattern.sub(replacement, tex)
    if len(tex) > _MAX_LENGTH or not 0 <= _depth(tex) <= _MAX_DEPTH or _DEFINITIONS.search(tex) is not None:
        return None
    try:
        return _laid_out(tex.strip(), is_inline=not formula.is_display)
    except Exception:  # noqa: BLE001 -- the library has no common error for texts that it cannot read
        return None


def _depth(tex: str) -> int:
    """-1 if it is not balanced."""
    depth = deepest = 0
    for token in re.finditer(r"\\(?:begin|left|end|right)\b|\\.|[{}]", tex):
        if token.group() in ("{", r"\begin", r"\left"):
            depth += 1
            deepest = max(deepest, depth)
        elif token.group() in ("}", r"\end", r"\right"):
            depth -= 1
    return deepest if depth == 0 else -1


def _laid_out(tex: str, *, is_inline: bool) -> FormulaShape | None:
    element = ET.fromstring(tex2mml(tex, inline=is_inline))
    for part in element.iter():
        if part.text is not None and _ESCAPED.fullmatch(part.text):
            part.text = part.text[1:]
    if any("\\" in text for text in element.itertext()) or _cost(element, 1) > _MAX_COST:
        return None
    _Row.heights.clear()
    formula = Math(element, size=_EM)
    _, right, bottom, top = map(float, formula.node.bbox)
    drawing = formula.drawon(ET.Element("svg"))
    width = max(right, formula.node.xadvance()) / _EM
    shape = FormulaShape(width, top / _EM, -bottom / _EM, tuple(_outlines(drawing)))
    if not 0 < shape.width <= _MAX_WIDTH or not 0 < shape.ascent + shape.descent <= _MAX_HEIGHT:
        return None
    return shape if all(outline.is_known for outline in shape.outlines) else None


def _can_stretch(element: ET.Element) -> bool:
    """Return True for an operator as high as its row, and for what contains one."""
    if element.tag.rpartition("}")[2] not in ("mo", "mi"):
        return any(map(_can_stretch, element))
    stretchy = element.get("stretchy")
    if stretchy is not None:
        return stretchy != "false"
    text = (element.text or "").strip()
    forms = ("prefix", "infix", "postfix")
    return any(operators.get_params(text, form).get("stretchy", "false") != "false" for form in forms)


def _cost(element: ET.Element, builds: int) -> int:
    """Return the number of parts that are built: those of a row with stretchy operators count twice (see `_Row`).

    Deep ones count more, since their operators are higher and put together of pieces; so do those of long rows, where
    ziamath looks at all earlier parts for each.
    """
    is_row = element.tag.rpartition("}")[2] in _ROWS
    if is_row and _can_stretch(element):
        builds += 1
    return (
        builds + builds * builds // 4 + len(element) ** 2 // _LONG_ROW + sum(_cost(child, builds) for child in element)
    )


class _Row(Mrow, tag="mrow"):
    """ziamath's row, but measured only if it has stretchy operators, and once: otherwise 2 ** depth times.

    Defining it replaces ziamath's own.
    """

    heights: dict[object, tuple[float, float]] = {}  # noqa: RUF012 -- of the formula that is being laid out

    def _get_height_nostretch(self, line: list[ET.Element], **kwargs: Any) -> tuple[float, float]:
        if not any(map(_can_stretch, line)):
            return 0, 0
        options = sorted((name, repr(value)) for name, value in kwargs.items() if not name.startswith("row"))
        key = (tuple(map(ET.tostring, line)), repr(self.style), tuple(options))
        if key not in self.heights:
            self.heights[key] = super()._get_height_nostretch(line, **kwargs)  # pyright: ignore[reportUnknownMemberType] -- its kwargs have no types
        return self.heights[key]


class _Phantom(_Row, Mphantom, tag="mphantom"):  # pyright: ignore[reportUnusedClass] -- ziamath finds it by its tag
    """The phantom element of ziamath, measured like `_Row`."""


class _Padded(_Row, Mpadded, tag="mpadded"):  # pyright: ignore[reportUnusedClass] -- ziamath finds it by its tag
    """The padding element of ziamath, measured like `_Row`."""


class _Error(_Row, Merror, tag="merror"):  # pyright: ignore[reportUnusedClass] -- ziamath finds it by its tag
    """The error element of ziamath, measured like `_Row`."""


def _outlines(drawing: ET.Element) -> Iterator[Outline]:
    glyphs: dict[str, ET.Element] = {f"#{symbol.get('id')}": symbol for symbol in drawing.iter("symbol")}
    for element in drawing:
        match element.tag:
            case "use":
                yield from _glyph(element, glyphs[element.get("href", "")])
            case "rect" | "ellipse" | "path":
                yield _line(element)
            case _:
                pass


def _glyph(use: ET.Element, symbol: ET.Element) -> Iterator[Outline]:
    outline = next(iter(symbol), None)
    left, top, width, _ = map(float, symbol.get("viewBox", "").split())
    if outline is None or not width:
        return  # a blank
    scale = _number(use, "width") / width
    offset = (_number(use, "x") - left * scale, _number(use, "y") - top * scale)
    is_known = _MISSING_GLYPH.search(symbol.get("id", "")) is None
    yield Outline(_path(outline.get("d", "")), offset[0] / _EM, offset[1] / _EM, scale / _EM, is_known=is_known)


def _line(element: ET.Element) -> Outline:
    """Return a bar of a fraction or root, or the frame of a box."""
    path = QPainterPath()
    pen = _number(element, "stroke-width")
    match element.tag:
        case "rect":
            path.addRect(QRectF(*(_number(element, name) for name in ("x", "y", "width", "height"))))
        case "ellipse":
            x, y, across, down = (_number(element, name) for name in ("cx", "cy", "rx", "ry"))
            path.addEllipse(QRectF(x - across, y - down, 2 * across, 2 * down))
        case _:
            path = _path(element.get("d", ""))
    return Outline(path, 0, 0, 1 / _EM, pen=pen)


def _number(element: ET.Element, name: str) -> float:
    return float(element.get(name, 0))


@lru_cache(maxsize=1_000)  # glyphs; a formula holds those that it needs
def _path(data: str) -> QPainterPath:
    """Return the path of an SVG element, of which ziamath writes absolute coordinates and these operators only."""
    path = QPainterPath()
    path.setFillRule(_WINDING)
    tokens = iter(data.split())
    for operator in tokens:
        if operator == "Z":
            path.closeSubpath()
            continue
        points = [float(next(tokens)) for _ in range(_COORDINATES[operator])]
        match points:
            case [x, y] if operator == "M":
                path.moveTo(x, y)
            case [x, y]:
                path.lineTo(x, y)
            case [a, b, x, y]:
                path.quadTo(a, b, x, y)
            case [a, b, c, d, x, y]:
                path.cubicTo(a, b, c, d, x, y)
            case _:
                raise ValueError(operator)
    return path
