"""A list in a page: a row for each item, with a line between them, or what stands there without any."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from PySide6.QtWidgets import QVBoxLayout, QWidget

from errand.window.widgets.containers import clear_layout, hairline

T = TypeVar("T")
V = TypeVar("V", bound=QWidget)


class ListColumn(QVBoxLayout, Generic[T, V]):
    """`rows` are the rows that are shown, by the key of their item.

    `make` returns the row of an item. With `update`, rows stay while their items do, with the focus and what is open
    in them; without it they are always made anew. `make_empty` returns what is shown without items.
    """

    def __init__(
        self,
        spacing: int,
        make: Callable[[T], V],
        *,
        update: Callable[[V, T], None] | None = None,
        make_empty: Callable[[], QWidget] | None = None,
        has_lines: bool = True,
    ) -> None:
        super().__init__()
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)
        self.rows: dict[str, V] = {}
        self._make = make
        self._update = update
        self._make_empty = make_empty
        self._has_lines = has_lines

    def show_items(self, items: Mapping[str, T]) -> None:
        """Show these items in this order."""
        if self._update is not None and self.rows and list(items) == list(self.rows):
            for key, item in items.items():
                self._update(self.rows[key], item)
            return
        self.clear()
        for key, item in items.items():
            if self._has_lines and self.rows:
                self.addWidget(hairline())
            row = self.rows[key] = self._make(item)
            self.addWidget(row)
        if not items and self._make_empty is not None:
            self.addWidget(self._make_empty())

    def clear(self) -> None:
        """Remove all rows."""
        clear_layout(self)
        self.rows = {}
