"""Measures the contrast of texts in a picture of the window, line by line against the background around them."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QWidget

_SCALE = 3
"""Strokes are then wide enough to have their full colour somewhere; at 1 only their blurred edges are painted."""

_LEAST_LINE = 5 * _SCALE
_EDGE = 3 * _SCALE
_LEAST_INK = 6


def picture_of(window: QWidget) -> QImage:
    picture = QPixmap(window.size() * _SCALE)
    picture.setDevicePixelRatio(_SCALE)
    window.render(picture)
    return picture.toImage().convertToFormat(QImage.Format.Format_RGB32)


def lines(picture: QImage, place: QRect) -> list[float]:
    """The contrast of each line of text in a rectangle of the window, without its frame."""
    inner = QRect(place.topLeft() * _SCALE, place.size() * _SCALE).adjusted(_EDGE, _EDGE, -_EDGE, -_EDGE)
    inner = inner.intersected(picture.rect())
    if inner.isEmpty():
        return []
    rows = list(_rows(picture, inner))
    ground = Counter[int]()
    for row in rows:
        ground.update(row)
    behind = ground.most_common(1)[0][0]
    return [_contrast_of(band, behind) for band in _bands(rows, behind)]


def _rows(picture: QImage, place: QRect) -> Iterator["Counter[int]"]:
    """The count of each colour per row.

    Most rows equal the previous one or have a single colour, which is a fast check.
    """
    pixels, width = memoryview(picture.constBits()).cast("B").cast("I"), picture.width()
    before, row = b"", Counter[int]()
    for start in range(place.top() * width, (place.bottom() + 1) * width, width):
        line = pixels[start + place.left() : start + place.right() + 1].tobytes()
        if line != before:
            before, row = line, _colours(line)
        yield row


def _colours(line: bytes) -> "Counter[int]":
    colours = memoryview(line).cast("I")
    return Counter({colours[0]: len(colours)}) if line[4:] == line[:-4] else Counter(colours)


def _bands(rows: list["Counter[int]"], behind: int) -> Iterator["Counter[int]"]:
    """Adjacent rows with text pixels, at least as high as a line of text."""
    band, height = Counter[int](), 0
    for row in [*rows, Counter[int]({behind: 1})]:
        if len(row) > 1 or behind not in row:
            band.update(row)
            height += 1
        else:
            if height >= _LEAST_LINE:
                yield band
            band, height = Counter[int](), 0


def _contrast_of(band: "Counter[int]", behind: int) -> float:
    inks = [colour for colour, count in band.items() if count >= _LEAST_INK]
    return max((ratio(colour, behind) for colour in inks), default=1.0)


def ratio(first: int, second: int) -> float:
    """The WCAG 2.2 contrast ratio of two colours as 0xrrggbb."""
    lights = sorted((_luminance(first), _luminance(second)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@cache
def _luminance(colour: int) -> float:
    parts = [(colour >> shift & 0xFF) / 255 for shift in (16, 8, 0)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
