"""Row heights in a Fenwick tree, and the scroll anchor: a row and an offset in it."""

from collections.abc import Callable, Sequence

MeasureRow = Callable[[int], int]


class RowHeights:
    """Row heights in pixels, each an estimate until `measure` sets the actual one.

    A standard Fenwick tree (P. Fenwick, 1994), one-based: `_tree[i]` is the sum of the `i & -i` heights that end at row
    i - 1.
    """

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._measured = bytearray()
        self._tree: list[int] = [0]

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        return self.offset_of(len(self._heights))

    def is_measured(self, index: int) -> bool:
        return bool(self._measured[index])

    def offset_of(self, index: int) -> int:
        """Return the sum of the heights of the rows before `index`."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index &= index - 1
        return total

    def row_at(self, y: int) -> int:
        """Return the row at pixel `y`; the first or last row outside the range. Requires at least one row."""
        assert self._heights
        index, left = 0, max(0, y)
        step = 1 << (len(self._heights).bit_length() - 1)
        while step:
            after = index + step
            if after <= len(self._heights) and self._tree[after] <= left:
                index = after
                left -= self._tree[after]
            step >>= 1
        return min(index, len(self._heights) - 1)

    def measure(self, index: int, height: int) -> None:
        self._measured[index] = 1
        change = height - self._heights[index]
        if change:
            self._heights[index] = height
            node = index + 1
            while node < len(self._tree):
                self._tree[node] += change
                node += node & -node

    def forget(self, index: int) -> None:
        """The row changed: its height is an estimate again."""
        self._measured[index] = 0

    def forget_all(self) -> None:
        """The width changed: all heights are estimates again."""
        self._measured = bytearray(len(self._heights))

    def reset(self, estimates: Sequence[int]) -> None:
        self._heights = list(estimates)
        self._measured = bytearray(len(estimates))
        self._build()

    def insert(self, first: int, estimates: Sequence[int]) -> None:
        """Insert rows before row `first`: O(log n) each at the end, O(n) in total elsewhere."""
        is_end = first == len(self._heights)
        self._heights[first:first] = estimates
        self._measured[first:first] = bytes(len(estimates))
        if not is_end:
            self._build()
            return
        for height in estimates:
            node = len(self._tree)
            start = node - (node & -node)
            self._tree.append(height + self.offset_of(node - 1) - self.offset_of(start))

    def remove(self, first: int, count: int) -> None:
        del self._heights[first : first + count]
        del self._measured[first : first + count]
        self._build()

    def _build(self) -> None:
        tree = [0, *self._heights]
        for node in range(1, len(tree)):
            parent = node + (node & -node)
            if parent < len(tree):
                tree[parent] += tree[node]
        self._tree = tree


class ScrollAnchor:
    """The scroll position: the top row and the pixels of it above the view, or the end, to which the view then sticks.

    `margin` is the empty space above the first row and below the last one. While it is held, after a person has opened
    or closed a row, the rows stay where they are even if that leaves empty space below the last one.
    """

    def __init__(self, margin: int) -> None:
        self.index = 0
        self.offset = -margin
        self.is_end = True
        self._margin = margin
        self._is_held = False
        self._has_room = False  # below the last row, while it is held

    @property
    def shows_end(self) -> bool:
        """True if nothing is below the view."""
        return self.is_end or (self._is_held and self._has_room)

    def to_start(self) -> None:
        self.to_row(0, -self._margin)

    def to_end(self) -> None:
        self.is_end = True
        self._is_held = False

    def to_row(self, index: int, offset: int) -> None:
        self.index, self.offset, self.is_end = index, offset, False
        self._is_held = False

    def hold(self) -> None:
        """Keep the rows in place while the height of one changes."""
        self.is_end = False
        self._is_held, self._has_room = True, False

    def move_to(self, y: int, heights: RowHeights) -> None:
        """Move to a position in pixels from the start, as a scroll bar counts."""
        self.is_end = self._is_held = False
        if not len(heights) or y < self._margin:
            self.index, self.offset = 0, y - self._margin
            return
        self.index = heights.row_at(y - self._margin)
        self.offset = y - self._margin - heights.offset_of(self.index)

    def move_by(self, pixels: int) -> None:
        """Move down by `pixels`, up if negative; `resolve` clamps the result."""
        if pixels > 0 and self.shows_end:
            return
        self.offset += pixels
        if pixels < 0:
            self.is_end = self._has_room = False

    def inserted(self, first: int, count: int) -> None:
        if first <= self.index:
            self.index += count

    def removed(self, first: int, count: int) -> None:
        if first + count <= self.index:
            self.index -= count
        elif first <= self.index:
            self.index, self.offset = first, 0

    def resolve(self, heights: RowHeights, view: int, measure: MeasureRow) -> range:
        """Return the rows visible in a view of this height; measures these and all rows that were passed."""
        count = len(heights)
        if count == 0:
            self.to_start()
            self.is_end = True
            return range(0)
        view -= self._margin
        if self.is_end:
            return self._from_end(count, view, measure)
        self._normalise(count, measure)
        last, bottom = self.index, -self.offset
        while last < count and bottom <= view:
            bottom += measure(last)
            last += 1
        is_room, had_room = bottom <= view, self.shows_end
        if self._is_held and is_room:
            self._has_room = True
            return range(self.index, count)
        self._is_held = False
        if is_room or had_room:  # what grows into the room below the last row is followed
            self.is_end = True
            return self._from_end(count, view, measure)
        return range(self.index, self._shown_below(last, bottom, count, view, measure))

    def y(self, heights: RowHeights) -> int:
        return self._margin + heights.offset_of(self.index) + self.offset

    def _normalise(self, count: int, measure: MeasureRow) -> None:
        self.index = min(self.index, count - 1)
        while self.offset < 0 and self.index > 0:
            self.index -= 1
            self.offset += measure(self.index)
        self.offset = max(self.offset, -self._margin if self.index == 0 else 0)
        while self.index < count - 1 and self.offset >= measure(self.index):
            self.offset -= measure(self.index)
            self.index += 1

    def _from_end(self, count: int, view: int, measure: MeasureRow) -> range:
        first, height = count, 0
        while first > 0 and (height < view or first == count):
            first -= 1
            height += measure(first)
        self.index = first
        self.offset = max(height - view, -self._margin)
        return range(first, count)

    def _shown_below(self, last: int, bottom: int, count: int, view: int, measure: MeasureRow) -> int:
        """Include rows in the padding below the last one."""
        while last < count and bottom < view + self._margin:
            bottom += measure(last)
            last += 1
        return last
