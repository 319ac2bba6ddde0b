"""Ends the hover of widgets that the pointer has left without an event: they moved, were hidden, or were covered."""

from collections.abc import Iterable

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QWidget


def end_hover(*widgets: QWidget) -> None:
    """End the hover of these widgets, and of what is in them, where the pointer is not."""
    pointer = QCursor.pos()
    for widget in _hovered(widgets):
        if not widget.isVisible() or not widget.rect().contains(widget.mapFromGlobal(pointer)):
            widget.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
            QApplication.sendEvent(widget, QEvent(QEvent.Type.Leave))
            widget.update()


def _hovered(widgets: Iterable[QWidget]) -> list[QWidget]:
    hovered = [widget for widget in widgets if widget.underMouse()]
    return [part for widget in hovered for part in (widget, *widget.findChildren(QWidget)) if part.underMouse()]
