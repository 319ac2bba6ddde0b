"""Buttons in a row, and in more rows where one has no room for all."""

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class WrapLayout(QLayout):
    """Each thing has the size it wants; what is hidden takes no place."""

    def __init__(self, space: int, *widgets: QWidget) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._space = space
        self.setContentsMargins(0, 0, 0, 0)
        for widget in widgets:
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt asks past the end
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt asks past the end
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        places = self._places(width)
        return max((place.bottom() + 1 for place in places), default=0)

    def sizeHint(self) -> QSize:
        """All in one row."""
        sizes = [item.sizeHint() for item in self._seen()]
        width = sum(size.width() for size in sizes) + self._space * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:
        sizes = [item.sizeHint() for item in self._seen()]
        return QSize(
            max((size.width() for size in sizes), default=0), max((size.height() for size in sizes), default=0)
        )

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, place in zip(self._seen(), self._places(rect.width()), strict=True):
            item.setGeometry(place.translated(rect.topLeft()))

    def _seen(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _places(self, width: int) -> list[QRect]:
        places: list[QRect] = []
        corner, bottom = QPoint(0, 0), 0
        for item in self._seen():
            size = item.sizeHint()
            if corner.x() and corner.x() + size.width() > width:
                corner = QPoint(0, bottom + self._space)
            places.append(QRect(corner, size))
            bottom = max(bottom, corner.y() + size.height())
            corner = QPoint(corner.x() + size.width() + self._space, corner.y())
        return places
