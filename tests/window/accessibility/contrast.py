"""Measures the contrast of texts in a picture of the window, line by line against the background around them."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from itertools import groupby

from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QWidget

_SCALE = 3
"""Strokes are then wide enough to have their full colour somewhere; at 1 only their blurred edges are painted."""

_MIN_LINE_LENGTH_PX = 5 * _SCALE
_EDGE = 3 * _SCALE
_MIN_INK = 6
_PIXEL_BYTES = 4

_contrasts_of_pictures: dict[tuple[int, bytes], tuple[float, ...]] = {}
"""The results by width and pixels: most views show the same sidebar and tabs."""


def picture_of(window: QWidget) -> QImage:
    picture = QPixmap(window.size() * _SCALE)
    picture.setDevicePixelRatio(_SCALE)
    window.render(picture)
    return picture.toImage().convertToFormat(QImage.Format.Format_RGB32)


def lines(picture: QImage, area: QRect) -> tuple[float, ...]:
    """The contrast of each line of text in a rectangle of the window, without its frame."""
    inner = QRect(area.topLeft() * _SCALE, area.size() * _SCALE).adjusted(_EDGE, _EDGE, -_EDGE, -_EDGE)
    inner = inner.intersected(picture.rect())
    if inner.isEmpty():
        return ()
    part = picture.copy(inner)  # its memory is freed with it
    pixels = bytes(part.constBits())
    key = inner.width(), sha256(pixels).digest()
    if key not in _contrasts_of_pictures:
        _contrasts_of_pictures[key] = _contrasts(pixels, inner.width())
    return _contrasts_of_pictures[key]


def _contrasts(pixels: bytes, width: int) -> tuple[float, ...]:
    rows = list(_rows(pixels, width))
    ground = Counter[int]()
    for row, height in rows:
        _add(ground, row, height)
    behind = ground.most_common(1)[0][0]
    return tuple(_contrast_of(band, behind) for band in _bands(rows, behind))


def _rows(pixels: bytes, width: int) -> Iterator[tuple["Counter[int]", int]]:
    """The count of each colour in a row, and the number of equal rows that follow each other."""
    size = width * _PIXEL_BYTES
    for line, same in groupby(pixels[start : start + size] for start in range(0, len(pixels), size)):
        yield _colours(line), len(list(same))


def _colours(line: bytes) -> "Counter[int]":
    """Most rows have a single colour, which is a fast check."""
    colours = memoryview(line).cast("I")
    is_plain = line[_PIXEL_BYTES:] == line[:-_PIXEL_BYTES]
    return Counter({colours[0]: len(colours)}) if is_plain else Counter(colours.tolist())


def _bands(rows: list[tuple["Counter[int]", int]], behind: int) -> Iterator["Counter[int]"]:
    """Adjacent rows with text pixels, at least as high as a line of text."""
    band, total = Counter[int](), 0
    for row, height in [*rows, (Counter[int]({behind: 1}), 1)]:
        if len(row) > 1 or behind not in row:
            _add(band, row, height)
            total += height
        else:
            if total >= _MIN_LINE_LENGTH_PX:
                yield band
            band, total = Counter[int](), 0


def _add(colours: "Counter[int]", row: "Counter[int]", times: int) -> None:
    for colour, count in row.items():
        colours[colour] += count * times


def _contrast_of(band: "Counter[int]", behind: int) -> float:
    inks = [colour for colour, count in band.items() if count >= _MIN_INK]
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
