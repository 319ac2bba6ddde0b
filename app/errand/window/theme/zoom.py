"""Changes the sizes of widgets that exist already, when the zoom or the size of text changes."""

from collections.abc import Iterator
from dataclasses import asdict

from PySide6.QtCore import QMargins, QSize, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QFormLayout,
    QGridLayout,
    QLayout,
    QTabBar,
    QWidget,
)

from errand.window.theme.tokens import SCALED, DesignTokens

_DIRECT = Qt.FindChildOption.FindDirectChildrenOnly
_MONO = 0.95
_KEPT_FONT = "_q_styleSheetWidgetFont"
_UNLIMITED = (1 << 24) - 1


class _Scale:
    """Maps lengths of one table to those of another. Lengths that are no token grow in proportion."""

    def __init__(self, before: DesignTokens, after: DesignTokens) -> None:
        old, new = asdict(before), asdict(after)
        pairs = {name: (old[name], new[name]) for name in SCALED}
        sizes = [pair for name, pair in pairs.items() if name.startswith("size_") and name != "size_reading"]
        self._text = {round(was * _MONO): round(now * _MONO) for was, now in sizes} | dict(sizes)
        self._text_ratio = after.size_heading / before.size_heading
        self._lengths = {was: now for name, (was, now) in pairs.items() if not name.startswith("size_")} | {0: 0}
        self._ratio = after.column / before.column

    def text(self, pixels: int) -> int:
        return self._text.get(pixels) or max(1, round(pixels * self._text_ratio))

    def length(self, pixels: int) -> int:
        scaled = self._lengths.get(pixels)
        return round(pixels * self._ratio) if scaled is None else scaled

    def limit(self, pixels: int) -> int:
        """Return the same for a smallest or largest size; a hairline stays one."""
        return pixels if pixels <= 1 or pixels >= _UNLIMITED else self.length(pixels)


def rescale(widget: QWidget, before: DesignTokens, after: DesignTokens, stop_at: type[QWidget] | None = None) -> None:
    """Change the fonts, margins, icons and limits of a widget and of all below it, except those of `stop_at`."""
    scale = _Scale(before, after)
    for child in _walk(widget, stop_at):
        _rescale_font(child, scale)
        _rescale_limits(child, scale)
        layout = child.layout()
        if isinstance(layout, QLayout):
            for part in (layout, *layout.findChildren(QLayout)):
                _rescale_layout(part, scale)
        if isinstance(child, QAbstractButton | QTabBar):
            size = child.iconSize()
            child.setIconSize(QSize(scale.length(size.width()), scale.length(size.height())))
        if isinstance(child, QAbstractItemView):
            child.doItemsLayout()


def _walk(widget: QWidget, stop_at: type[QWidget] | None) -> Iterator[QWidget]:
    yield widget
    for child in widget.findChildren(QWidget, options=_DIRECT):
        if stop_at is None or not isinstance(child, stop_at):
            yield from _walk(child, stop_at)


def _rescale_font(widget: QWidget, scale: _Scale) -> None:
    """Also the font that Qt has put aside: each new style sheet sets it again."""
    unscaled_font: object = widget.property(_KEPT_FONT)
    font = QFont(unscaled_font) if isinstance(unscaled_font, QFont) else widget.font()
    if widget.testAttribute(Qt.WidgetAttribute.WA_SetFont) and font.pixelSize() > 0:
        font.setPixelSize(scale.text(font.pixelSize()))
        if isinstance(unscaled_font, QFont):
            widget.setProperty(_KEPT_FONT, font)
        widget.setFont(font)


def _rescale_limits(widget: QWidget, scale: _Scale) -> None:
    least, most = widget.minimumSize(), widget.maximumSize()
    scaled = QSize(scale.limit(least.width()), scale.limit(least.height()))
    largest = QSize(scale.limit(most.width()), scale.limit(most.height()))
    if scaled != least or largest != most:
        widget.setMinimumSize(QSize(0, 0))
        widget.setMaximumSize(largest)
        widget.setMinimumSize(scaled)


def _rescale_layout(layout: QLayout, scale: _Scale) -> None:
    margins = layout.contentsMargins()
    sides = (margins.left(), margins.top(), margins.right(), margins.bottom())
    layout.setContentsMargins(QMargins(*map(scale.length, sides)))
    if isinstance(layout, QGridLayout | QFormLayout):
        layout.setHorizontalSpacing(scale.length(layout.horizontalSpacing()))
        layout.setVerticalSpacing(scale.length(layout.verticalSpacing()))
    elif layout.spacing() > 0:
        layout.setSpacing(scale.length(layout.spacing()))
