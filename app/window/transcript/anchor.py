"""Where the transcript stands: a row and an offset in it, so that nothing jumps when heights above become known."""

from collections.abc import Callable

from app.window.transcript.heights import Heights

Measure = Callable[[int], int]


class Anchor:
    """The row at the top of the view and how many pixels of it are above; or the end, to which it then sticks.

    `pad` is the empty space above the first row and below the last one.
    """

    def __init__(self, pad: int) -> None:
        self.index = 0
        self.offset = -pad
        self.is_end = True
        self._pad = pad

    def to_start(self) -> None:
        self.index, self.offset, self.is_end = 0, -self._pad, False

    def to_end(self) -> None:
        self.is_end = True

    def to_row(self, index: int, offset: int) -> None:
        self.index, self.offset, self.is_end = index, offset, False

    def to(self, y: int, heights: Heights) -> None:
        """To a place counted in pixels from the start, as a scroll bar counts."""
        self.is_end = False
        if not len(heights) or y < self._pad:
            self.index, self.offset = 0, y - self._pad
            return
        self.index = heights.at(y - self._pad)
        self.offset = y - self._pad - heights.before(self.index)

    def by(self, pixels: int) -> None:
        """Down by `pixels`, up if negative; `settle` brings it into bounds."""
        self.offset += pixels
        if pixels < 0:
            self.is_end = False

    def inserted(self, first: int, count: int) -> None:
        if first <= self.index:
            self.index += count

    def removed(self, first: int, count: int) -> None:
        if first + count <= self.index:
            self.index -= count
        elif first <= self.index:
            self.index, self.offset = first, 0

    def settle(self, heights: Heights, view: int, measure: Measure) -> range:
        """The rows that a view of this height shows; all of them and those that were passed are measured."""
        count = len(heights)
        if count == 0:
            self.to_start()
            self.is_end = True
            return range(0)
        view -= self._pad
        if self.is_end:
            return self._from_end(count, view, measure)
        self._normalise(count, measure)
        last, bottom = self.index, -self.offset
        while last < count and bottom <= view:
            bottom += measure(last)
            last += 1
        if bottom <= view:
            self.is_end = True
            return self._from_end(count, view, measure)
        return range(self.index, self._shown_below(last, bottom, count, view, measure))

    def y(self, heights: Heights) -> int:
        return self._pad + heights.before(self.index) + self.offset

    def _normalise(self, count: int, measure: Measure) -> None:
        self.index = min(self.index, count - 1)
        while self.offset < 0 and self.index > 0:
            self.index -= 1
            self.offset += measure(self.index)
        self.offset = max(self.offset, -self._pad if self.index == 0 else 0)
        while self.index < count - 1 and self.offset >= measure(self.index):
            self.offset -= measure(self.index)
            self.index += 1

    def _from_end(self, count: int, view: int, measure: Measure) -> range:
        first, height = count, 0
        while first > 0 and (height < view or first == count):
            first -= 1
            height += measure(first)
        self.index = first
        self.offset = max(height - view, -self._pad)
        return range(first, count)

    def _shown_below(self, last: int, bottom: int, count: int, view: int, measure: Measure) -> int:
        """Rows also stand in the space that is kept free below the last one."""
        while last < count and bottom < view + self._pad:
            bottom += measure(last)
            last += 1
        return last
