"""Matches the lines of two texts in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from difflib import Match, SequenceMatcher

# difflib takes cubic time in the number of lines, so it gets at most this many pairs of lines at once.
_MAX_PAIRS = 2_500
_MAX_DEPTH = 4
# Lines in one range; a larger range counts as replaced, since matching it could take a second.
_MAX_LINES = 100_000


class LineMatcher(SequenceMatcher[str]):
    """Patience diff: matches lines that are unique in both texts first, then difflib handles the small gaps.

    A large gap without unique lines is shown as replaced.
    """

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__(None, (), ())
        self._old, self._new = old, new

    def get_matching_blocks(self) -> list[Match]:
        blocks: list[Match] = []
        for old_at, new_at, size in self._matches(0, len(self._old), 0, len(self._new), 0):
            last = blocks[-1] if blocks else None
            if last is not None and (last.a + last.size, last.b + last.size) == (old_at, new_at):
                blocks[-1] = Match(last.a, last.b, last.size + size)
            else:
                blocks.append(Match(old_at, new_at, size))
        return [*blocks, Match(len(self._old), len(self._new), 0)]

    def _matches(
        self, old_at: int, old_end: int, new_at: int, new_end: int, depth: int
    ) -> Iterator[tuple[int, int, int]]:
        """Matching runs of lines in two ranges, in order: both positions and the length."""
        old, new = self._old, self._new
        start = old_at
        while old_at < old_end and new_at < new_end and old[old_at] == new[new_at]:
            old_at, new_at = old_at + 1, new_at + 1
        if old_at > start:
            yield start, new_at - (old_at - start), old_at - start
        tail = old_end
        while old_at < old_end and new_at < new_end and old[old_end - 1] == new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
        yield from self._between(old_at, old_end, new_at, new_end, depth)
        if tail > old_end:
            yield old_end, new_end, tail - old_end

    def _between(
        self, old_at: int, old_end: int, new_at: int, new_end: int, depth: int
    ) -> Iterator[tuple[int, int, int]]:
        if old_at == old_end or new_at == new_end:
            return
        if (old_end - old_at) * (new_end - new_at) <= _MAX_PAIRS:
            matcher = SequenceMatcher(None, self._old[old_at:old_end], self._new[new_at:new_end], autojunk=False)
            for block in matcher.get_matching_blocks()[:-1]:
                yield old_at + block.a, new_at + block.b, block.size
            return
        if depth == _MAX_DEPTH or old_end - old_at + new_end - new_at > _MAX_LINES:
            return
        anchors = _anchors(self._old[old_at:old_end], self._new[new_at:new_end])
        if not anchors:
            return
        left, right = old_at, new_at
        for old_place, new_place in ((old_at + offset, new_at + other) for offset, other in anchors):
            yield from self._matches(left, old_place, right, new_place, depth + 1)
            yield old_place, new_place, 1
            left, right = old_place + 1, new_place + 1
        yield from self._matches(left, old_end, right, new_end, depth + 1)


def _anchors(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Positions of the longest increasing sequence of lines that are unique in both texts."""
    counts, others = Counter(old), Counter(new)
    unique_lines = {line: at for at, line in enumerate(new) if others[line] == 1}
    pairs = [(at, unique_lines[line]) for at, line in enumerate(old) if counts[line] == 1 and line in unique_lines]
    # Patience sorting: `ends[n]` is the lowest position at which a sequence of n + 1 lines can end.
    ends: list[int] = []
    rows: list[int] = []
    before: list[int | None] = []
    for index, (_, new_at) in enumerate(pairs):
        length = bisect_left(ends, new_at)
        before.append(rows[length - 1] if length else None)
        ends[length : length + 1], rows[length : length + 1] = [new_at], [index]
    pairs_in_order: list[tuple[int, int]] = []
    index: int | None = rows[-1] if rows else None
    while index is not None:
        pairs_in_order.append(pairs[index])
        index = before[index]
    return pairs_in_order[::-1]
