"""Rows and columns of widgets in one expression.

`set_vbox(self, hbox(title, STRETCH, save), field, spacing=8)` lays out a title with a button at its right, and a field
below it.
"""

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

Margins = tuple[int, int, int, int]
"""Left, top, right and bottom."""

_NO_ALIGNMENT = Qt.AlignmentFlag(0)
_NO_MARGINS = (0, 0, 0, 0)
_UNSET = -1  # the spacing of the layout around it, or of the style


@dataclass(frozen=True, slots=True)
class BoxPart:
    """An item of a box with its stretch factor and alignment; without an item it is free space."""

    item: QWidget | QLayout | None
    stretch: int = 0
    alignment: Qt.AlignmentFlag = _NO_ALIGNMENT


STRETCH = BoxPart(None, 1)
"""Free space that takes what the other parts leave."""

BoxItem = QWidget | QLayout | BoxPart | int
"""A widget, a layout, or a number of free pixels."""


def stretch(factor: int) -> BoxPart:
    """Return free space that grows with this factor."""
    return BoxPart(None, factor)


def fill(item: QWidget | QLayout, factor: int = 1) -> BoxPart:
    """Return a part that takes the free space, shared by the factors of all such parts."""
    return BoxPart(item, factor)


def at_left(widget: QWidget) -> BoxPart:
    """Return a part that keeps its preferred width and stands at the left."""
    return BoxPart(widget, alignment=Qt.AlignmentFlag.AlignLeft)


def at_top(widget: QWidget) -> BoxPart:
    """Return a part that keeps its preferred height and stands at the top."""
    return BoxPart(widget, alignment=Qt.AlignmentFlag.AlignTop)


def centred(widget: QWidget) -> BoxPart:
    """Return a part that keeps its preferred width and stands in the middle."""
    return BoxPart(widget, alignment=Qt.AlignmentFlag.AlignHCenter)


def hbox(*parts: BoxItem, spacing: int = _UNSET, margins: Margins = _NO_MARGINS) -> QHBoxLayout:
    """Return a row of parts, from left to right."""
    layout = QHBoxLayout()
    _fill(layout, parts, spacing, margins)
    return layout


def vbox(*parts: BoxItem, spacing: int = _UNSET, margins: Margins = _NO_MARGINS) -> QVBoxLayout:
    """Return a column of parts, from top to bottom."""
    layout = QVBoxLayout()
    _fill(layout, parts, spacing, margins)
    return layout


def set_hbox(widget: QWidget, *parts: BoxItem, spacing: int = _UNSET, margins: Margins = _NO_MARGINS) -> None:
    """Lay out a widget as a row of parts."""
    widget.setLayout(hbox(*parts, spacing=spacing, margins=margins))


def set_vbox(widget: QWidget, *parts: BoxItem, spacing: int = _UNSET, margins: Margins = _NO_MARGINS) -> None:
    """Lay out a widget as a column of parts."""
    widget.setLayout(vbox(*parts, spacing=spacing, margins=margins))


def set_at_top(widget: QWidget, rows: QLayout, *, margins: Margins = _NO_MARGINS) -> None:
    """Lay out a widget as rows with the free space below them.

    Rows whose layout is aligned at the top would be cut: Qt gives such a layout the height of its size hint, even if
    a text in it wraps and needs more.
    """
    set_vbox(widget, rows, STRETCH, spacing=0, margins=margins)


def widget_of(layout: QLayout) -> QWidget:
    """Return a new widget with this layout, which can be hidden as a whole."""
    widget = QWidget()
    widget.setLayout(layout)
    return widget


def _fill(layout: QBoxLayout, parts: tuple[BoxItem, ...], spacing: int, margins: Margins) -> None:
    layout.setContentsMargins(*margins)
    if spacing != _UNSET:
        layout.setSpacing(spacing)
    for part in parts:
        match part:
            case int():
                layout.addSpacing(part)
            case QWidget():
                layout.addWidget(part)
            case QLayout():
                layout.addLayout(part)
            case BoxPart(QWidget() as widget, factor, alignment):
                layout.addWidget(widget, factor, alignment)
            case BoxPart(QLayout() as inner, factor):
                layout.addLayout(inner, factor)
            case BoxPart(None, factor):
                layout.addStretch(factor)
            case BoxPart():
                raise TypeError(part)
