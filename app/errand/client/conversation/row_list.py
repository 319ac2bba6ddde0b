"""The rows of a transcript in sections; a section is replaced with minimal changes."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from errand.client.conversation.rows import Row

RowSection: TypeAlias = tuple[str, Sequence[Row]]


class RowList:
    """Calls the listeners right after each change, so that they always see a consistent list."""

    def __init__(
        self,
        inserted: Callable[[int, int], None],
        changed: Callable[[int], None],
        removed: Callable[[int, int], None],
    ) -> None:
        self._inserted = inserted
        self._changed = changed
        self._removed = removed
        self._rows: list[Row] = []
        self._counts: list[int] = []
        self._section_numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Row:
        return self._rows[index]

    def index_of(self, name: str, number: int) -> int:
        """Return the index of a section's row; the nearest one if the number is too large."""
        section = self._section_numbers[name]
        first = len(self._rows) - sum(self._counts[section:])
        last = first + max(0, self._counts[section] - 1)
        return max(0, min(first + number, last, len(self._rows) - 1))

    def section_of(self, index: int) -> tuple[str, int]:
        """Return the section of a row, and its number in it."""
        first = 0
        for name, count in zip(self._section_numbers, self._counts, strict=True):
            if index < first + count:
                return name, index - first
            first += count
        raise IndexError(index)

    def fill(self, sections: Sequence[RowSection]) -> None:
        """Replace everything without calling the listeners."""
        self._rows = [row for _, rows in sections for row in rows]
        self._set_sections(sections)

    def replace(self, sections: Sequence[RowSection]) -> None:
        """Replace all sections; rows that exist in both stay."""
        self._put_rows(0, len(self._rows), [row for _, rows in sections for row in rows])
        self._set_sections(sections)

    def prepend(self, sections: Sequence[RowSection]) -> None:
        """Insert sections at the start."""
        self._counts = [*(len(rows) for _, rows in sections), *self._counts]
        names = [name for name, _ in sections]
        self._section_numbers = {name: section for section, name in enumerate([*names, *self._section_numbers])}
        self._put_rows(0, 0, [row for _, rows in sections for row in rows])

    def put(self, name: str, rows: Sequence[Row]) -> None:
        """Set the rows of one section; a new section is appended."""
        if name not in self._section_numbers:
            self._section_numbers[name] = len(self._counts)
            self._counts.append(0)
        section = self._section_numbers[name]
        first = len(self._rows) - sum(self._counts[section:])  # most changes are near the end
        before, self._counts[section] = self._counts[section], len(rows)
        self._put_rows(first, before, rows)

    def replace_tail(self, name: str, first: int, rows: Sequence[Row]) -> None:
        """Set the rows of a section from number `first` on."""
        section = self._section_numbers[name]
        start = len(self._rows) - sum(self._counts[section:]) + first
        old, new = self._counts[section] - first, len(rows)
        self._counts[section] = first + new
        same = 0
        while same < min(old, new) and self._rows[start + same].key == rows[same].key:
            if self._rows[start + same] != rows[same]:
                self._rows[start + same] = rows[same]
                self._changed(start + same)
            same += 1
        if same < old:
            del self._rows[start + same : start + old]
            self._removed(start + same, old - same)
        if same < new:
            self._rows[start + same : start + same] = rows[same:]
            self._inserted(start + same, new - same)

    def _set_sections(self, sections: Sequence[RowSection]) -> None:
        self._counts = [len(rows) for _, rows in sections]
        self._section_numbers = {name: section for section, (name, _) in enumerate(sections)}

    def _put_rows(self, first: int, count: int, rows: Sequence[Row]) -> None:
        new_keys = {row.key for row in rows}
        shared_keys = [row.key for row in self._rows[first : first + count] if row.key in new_keys]
        staying = set(shared_keys)
        if shared_keys != [row.key for row in rows if row.key in staying]:
            new_keys, staying = set[str](), set[str]()  # the order has changed
        self._remove(first, count, new_keys)
        self._insert(first, rows, staying)

    def _remove(self, first: int, count: int, wanted: set[str]) -> None:
        """Remove unwanted rows, from the end, in runs."""
        end = first + count
        while end > first:
            start = end
            while start > first and self._rows[start - 1].key not in wanted:
                start -= 1
            if start < end:
                del self._rows[start:end]
                self._removed(start, end - start)
            end = start - 1

    def _insert(self, first: int, rows: Sequence[Row], known: set[str]) -> None:
        """Insert new rows in runs, and replace changed ones."""
        index = 0
        while index < len(rows):
            end = index
            while end < len(rows) and rows[end].key not in known:
                end += 1
            if index < end:
                self._rows[first + index : first + index] = rows[index:end]
                self._inserted(first + index, end - index)
            elif self._rows[first + index] != rows[index]:
                self._rows[first + index] = rows[index]
                self._changed(first + index)
            index = max(end, index + 1)
