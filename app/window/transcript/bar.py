"""The scroll bar of the transcript: shows the place, and tells when a person moves it."""

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QScrollBar


class Bar(QObject):
    """`moved(y)` comes only for a person's hand, never for what `show` sets."""

    moved = Signal(int)

    def __init__(self, bar: QScrollBar) -> None:
        super().__init__(bar)
        self._bar = bar
        self._is_placing = False
        bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        bar.setAccessibleName("Place in the conversation")
        bar.valueChanged.connect(self._on_value)

    def show(self, y: int | None, *, height: int, total: int, line: int) -> None:
        """Stand at `y`, or at the end; of `total` pixels a view of this height shows a part."""
        self._is_placing = True
        self._bar.setPageStep(height)
        self._bar.setSingleStep(line)
        self._bar.setRange(0, max(0, total - height))
        self._bar.setValue(self._bar.maximum() if y is None else y)
        self._is_placing = False

    def _on_value(self, value: int) -> None:
        if not self._is_placing:
            self.moved.emit(value)
