"""What is selected in a transcript: from a character of one row to a character of another. Painting it is `marks`'."""

import sys
from dataclasses import dataclass
from typing import NamedTuple

from app.window.transcript.source import RowSource

_END = sys.maxsize


@dataclass(frozen=True, slots=True)
class Spot:
    """A place between two characters: of a row, by its key, in the text of that number of its block."""

    key: str
    part: int
    position: int


class Place(NamedTuple):
    """A spot as it stands now: with the number of its row, so that two can be compared."""

    row: int
    part: int
    position: int


@dataclass(frozen=True, slots=True)
class Span:
    """From the first place to the last one; they differ."""

    first: Place
    last: Place

    @property
    def rows(self) -> range:
        return range(self.first.row, self.last.row + 1)

    def within(self, index: int, part: int, length: int) -> tuple[int, int]:
        """What of a text of this length is in it; twice the same number where nothing is."""
        start, end = Place(index, part, 0), Place(index, part, length)
        first, last = max(start, min(end, self.first)), max(start, min(end, self.last))
        return first.position, last.position

    def covers(self, index: int) -> bool:
        """Whether a row is in it as a whole because it neither begins nor ends in there."""
        begins = self.first.row < index or self.first[1:] == (0, 0)
        ends = index < self.last.row or self.last.part == _END
        return index in self.rows and begins and ends


class Selection:
    """Its ends are kept by row key: rows may come and go around them, and their blocks too."""

    def __init__(self, rows: RowSource) -> None:
        self._rows = rows
        self._anchor: Spot | None = None
        self._head: Spot | None = None
        self._indexes: dict[str, int] = {}

    def begin(self, spot: Spot) -> None:
        self._anchor, self._head = spot, None

    def extend(self, spot: Spot) -> None:
        """To here, from where it began."""
        if self._anchor is None:
            self._anchor = spot
        self._head = spot

    def take_all(self) -> None:
        """All rows that are loaded."""
        if self._rows.count():
            self._anchor = Spot(self._rows.row(0).key, 0, 0)
            self._head = Spot(self._rows.row(self._rows.count() - 1).key, _END, _END)

    def clear(self) -> None:
        self._anchor = self._head = None
        self._indexes.clear()

    def span(self) -> Span | None:
        """None where nothing is selected, or a row in which it began or ended is no more."""
        if self._anchor is None or self._head is None:
            return None
        anchor, head = self._place(self._anchor), self._place(self._head)
        if anchor is None or head is None or anchor == head:
            return None
        return Span(min(anchor, head), max(anchor, head))

    def _place(self, spot: Spot) -> Place | None:
        index = self._index(spot.key)
        return None if index is None else Place(index, spot.part, spot.position)

    def _index(self, key: str) -> int | None:
        """Where it was at the last time; else all rows are looked through, for the ends alone and seldom."""
        known = self._indexes.get(key, -1)
        if 0 <= known < self._rows.count() and self._rows.row(known).key == key:
            return known
        for index in reversed(range(self._rows.count())):
            if self._rows.row(index).key == key:
                self._indexes[key] = index
                return index
        return None
