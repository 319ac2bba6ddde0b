"""Painting with tokens: colours, brushes, rounded grounds, the focus ring."""

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen

from app.window.theme.tokens import Tokens

_RING = 2.0


def colour(name: str) -> QColor:
    return QColor(name)


def brush(name: str) -> QBrush:
    return QBrush(QColor(name))


def rounded(painter: QPainter, place: QRect, radius: float, *, fill: str = "", line: str = "") -> None:
    """A rounded rectangle: filled, or with a hairline inside its edge, or both."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(brush(fill) if fill else QBrush(Qt.BrushStyle.NoBrush))
    painter.setPen(QPen(QColor(line)) if line else QPen(Qt.PenStyle.NoPen))
    edge = 0.5 if line else 0.0
    painter.drawRoundedRect(QRectF(place).adjusted(edge, edge, -edge, -edge), radius, radius)


def focus_ring(painter: QPainter, place: QRect, tokens: Tokens, radius: float, *, on_accent: bool = False) -> None:
    """Where the keyboard is: two pixels inside the edge."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(QBrush(Qt.BrushStyle.NoBrush))
    painter.setPen(QPen(QColor(tokens.on_accent if on_accent else tokens.focus), _RING))
    painter.drawRoundedRect(QRectF(place).adjusted(1, 1, -1, -1), radius, radius)
