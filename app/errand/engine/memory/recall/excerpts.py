"""Cuts what is shown or given: of a long text the part that fits a question, of a list what fits a budget."""

import re
from collections.abc import Iterable, Sequence

from errand.protocol.blocks import RecalledEntry

# Words of a question that are near each other say where the answer is; a single one does not.
_MIN_SHARED_WORDS = 2
_STEM = 5
_WORD = re.compile(r"[^\W_]+")


def within(items: Iterable[RecalledEntry], budget: int) -> tuple[RecalledEntry, ...]:
    """Return the first items whose texts have at most `budget` characters together."""
    chosen: list[RecalledEntry] = []
    for item in items:
        budget -= len(item.text)
        if budget < 0:
            break
        chosen.append(item)
    return tuple(chosen)


def excerpt(text: str, terms: Iterable[str], max_length: int, nearest: int = 0) -> str:
    """Return the part of a text with the most of these terms, of at most `max_length` characters.

    If it has hardly any of them, return the part from `nearest`, where the passage of the nearest meaning begins.
    """
    if len(text) <= max_length:
        return text
    stems = _stems(terms)
    positions = [match.start() for match in _WORD.finditer(text) if match[0].lower()[:_STEM] in stems]
    start, together = _densest(positions, max_length)
    if nearest and together < _MIN_SHARED_WORDS:
        start = nearest
    begin = max(0, text.rfind("\n", 0, start) + 1, text.rfind(". ", 0, start) + 2 if start else 0)
    if start - begin > max_length // 3:  # the sentence is too long to be shown from its beginning
        begin = start
    end = begin + max_length
    return f"{'… ' if begin else ''}{text[begin:end].strip()}{' …' if end < len(text) else ''}"


def _densest(positions: Sequence[int], max_length: int) -> tuple[int, int]:
    """Return the position with the most others in the two thirds of the length after it, and their count with it."""
    start, max_count, last = 0, 0, 0
    for first, position in enumerate(positions):
        while last < len(positions) and positions[last] < position + max_length * 2 // 3:
            last += 1
        if last - first > max_count:
            start, max_count = position, last - first
    return start, max_count


def _stems(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:_STEM].lower() for word in terms)
