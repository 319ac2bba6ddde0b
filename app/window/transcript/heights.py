"""Row heights in a Fenwick tree: sums and the row at a place in O(log n). Which of them are measured it knows too."""

from collections.abc import Sequence


class Heights:
    """Heights in pixels, each an estimate until `measure` is told the real one.

    The tree is the usual one (P. Fenwick, 1994), kept one-based: `_tree[i]` is the sum of the `i & -i` heights that
    end at row i - 1.
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
        return self.before(len(self._heights))

    def is_measured(self, index: int) -> bool:
        return bool(self._measured[index])

    def before(self, index: int) -> int:
        """The sum of the heights of the rows before `index`."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index &= index - 1
        return total

    def at(self, y: int) -> int:
        """The row that covers the pixel `y`; the first or last row for places outside. There must be rows."""
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
            place = index + 1
            while place < len(self._tree):
                self._tree[place] += change
                place += place & -place

    def forget(self, index: int) -> None:
        """The height of a row is an estimate again: it changed."""
        self._measured[index] = 0

    def forget_all(self) -> None:
        """All heights are estimates again: the width changed."""
        self._measured = bytearray(len(self._heights))

    def reset(self, estimates: Sequence[int]) -> None:
        self._heights = list(estimates)
        self._measured = bytearray(len(estimates))
        self._build()

    def insert(self, first: int, estimates: Sequence[int]) -> None:
        """New rows before row `first`: at the end O(log n) each, elsewhere O(n) for all."""
        is_end = first == len(self._heights)
        self._heights[first:first] = estimates
        self._measured[first:first] = bytes(len(estimates))
        if not is_end:
            self._build()
            return
        for height in estimates:
            place = len(self._tree)
            start = place - (place & -place)
            self._tree.append(height + self.before(place - 1) - self.before(start))

    def remove(self, first: int, count: int) -> None:
        del self._heights[first : first + count]
        del self._measured[first : first + count]
        self._build()

    def _build(self) -> None:
        tree = [0, *self._heights]
        for place in range(1, len(tree)):
            parent = place + (place & -place)
            if parent < len(tree):
                tree[parent] += tree[place]
        self._tree = tree
