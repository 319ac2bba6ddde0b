"""A form that opens in place, inside a page or dialog, and is hidden otherwise."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from errand.window.theme.theme import Theme


class InPlaceFormView(QWidget):
    """Subclasses show it, and hide it with `close_form`. `closed` is emitted whenever it was hidden."""

    closed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.hide()

    def close_form(self) -> None:
        self.hide()
        self.closed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes the form, not the dialog around it."""
        if event.key() == Qt.Key.Key_Escape:
            self.close_form()
        else:
            super().keyPressEvent(event)

    def row(self, *widgets: QWidget, stretch: QWidget | None = None) -> QHBoxLayout:
        """One line of the form. `stretch` takes the free width; without it, or hidden, the right side stays free."""
        line = QHBoxLayout()
        line.setSpacing(self.theme.tokens.space_close)
        for widget in widgets:
            line.addWidget(widget, 1 if widget is stretch else 0)
        line.addStretch(0)  # takes what no widget stretches to, also while `stretch` is hidden
        return line
