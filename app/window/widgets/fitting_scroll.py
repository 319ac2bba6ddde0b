"""A place that scrolls what is in it, and is as high as that where there is room."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget


class FittingScroll(QScrollArea):
    """Call `fit` when the height of what is in it has changed."""

    def __init__(self, inner: QWidget, least: int) -> None:
        super().__init__()
        self._inner = inner
        self._least = least
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.setViewport(QWidget())  # see TranscriptView
        self.setWidget(inner)
        inner.setAutoFillBackground(False)

    def fit(self) -> None:
        self.updateGeometry()
        parent = self.parentWidget()
        layout = parent.layout() if parent is not None else None  # pyright: ignore[reportUnnecessaryComparison] -- no parent while it is made
        if layout is not None:
            layout.activate()

    def sizeHint(self) -> QSize:
        return QSize(0, self._height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, min(self._least, self._height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self.updateGeometry()

    def _height(self) -> int:
        layout = self._inner.layout()
        if layout is not None and layout.hasHeightForWidth():
            return layout.totalHeightForWidth(self.viewport().width())
        return self._inner.sizeHint().height()
