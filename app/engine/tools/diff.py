"""The difference of two texts as a unified diff with counts, in time that grows with their length."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import Match, SequenceMatcher

_CONTEXT = 3
_LONGEST = 20_000
# difflib takes time with the cube of the lines: it gets no more pairs of lines at once.
_MOST_PAIRS = 2_500
_DEEPEST = 4
# In one range; a larger one counts as replaced, for a second of work would be shown as two lines of text.
_MOST_LINES = 100_000


@dataclass(frozen=True, slots=True)
class Change:
    """`diff` is cut where it grows long; the counts are of all lines."""

    diff: str
    added: int
    removed: int

    @property
    def summary(self) -> str:
        return f"+{self.added} −{self.removed}"


def compare(before: str, after: str, name: str, longest: int = _LONGEST) -> Change:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = list(_hunks(old, new))
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    if len(text) > longest:
        text = text[:longest].rpartition("\n")[0] + "\n… the rest of the diff is left out\n"
    return Change(f"--- {name}\n+++ {name}\n{text}" if lines else "", added, removed)


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    for group in _LineMatcher(old, new).get_grouped_opcodes(_CONTEXT):
        yield f"@@ -{_range(group[0][1], group[-1][2])} +{_range(group[0][3], group[-1][4])} @@\n"
        for tag, first_old, last_old, first_new, last_new in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[first_old:last_old])
                continue
            yield from (f"-{line}" for line in old[first_old:last_old])
            yield from (f"+{line}" for line in new[first_new:last_new])


def _range(first: int, end: int) -> str:
    """As diff counts: from 1, and an empty range begins at the line before it."""
    length = end - first
    if length == 1:
        return f"{first + 1}"
    return f"{first + 1 if length else first},{length}"


class _LineMatcher(SequenceMatcher[str]):
    """Patience diff: what stands once in both is matched first, and difflib gets the small gaps that are left.

    A large gap without such lines counts as replaced as a whole.
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
        """Where lines of two ranges are the same, in order: both places and how many."""
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
        if (old_end - old_at) * (new_end - new_at) <= _MOST_PAIRS:
            matcher = SequenceMatcher(None, self._old[old_at:old_end], self._new[new_at:new_end], autojunk=False)
            for block in matcher.get_matching_blocks()[:-1]:
                yield old_at + block.a, new_at + block.b, block.size
            return
        if depth == _DEEPEST or old_end - old_at + new_end - new_at > _MOST_LINES:
            return
        anchors = _anchors(self._old[old_at:old_end], self._new[new_at:new_end])
        if not anchors:
            return
        left, right = old_at, new_at
        for old_place, new_place in ((old_at + one, new_at + other) for one, other in anchors):
            yield from self._matches(left, old_place, right, new_place, depth + 1)
            yield old_place, new_place, 1
            left, right = old_place + 1, new_place + 1
        yield from self._matches(left, old_end, right, new_end, depth + 1)


def _anchors(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The longest row of lines that stand once in each text, and in the same order: their places in both."""
    counts, others = Counter(old), Counter(new)
    places = {line: at for at, line in enumerate(new) if others[line] == 1}
    pairs = [(at, places[line]) for at, line in enumerate(old) if counts[line] == 1 and line in places]
    # Patience sorting: `ends[n]` is the lowest place at which a row of n + 1 lines can end.
    ends: list[int] = []
    rows: list[int] = []
    before: list[int | None] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(rows[length - 1] if length else None)
        ends[length : length + 1], rows[length : length + 1] = [place], [index]
    found: list[tuple[int, int]] = []
    index: int | None = rows[-1] if rows else None
    while index is not None:
        found.append(pairs[index])
        index = before[index]
    return found[::-1]
