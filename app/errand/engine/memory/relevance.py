"""Selects what an agent gets from memory without asking: relevant entries, and of a long entry the relevant passage.

A ranking has a first place even if nothing fits, so an entry must also pass thresholds here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.ranking.question import Question
from errand.engine.memory.ranking.ranking import Candidate
from errand.protocol.memory import MemoryItem

# Cosines of the model: unrelated texts reach 0.2, answers mostly 0.35 to 0.7. On the histories for tuning, 76 % of the
# right entries among the ten best pass, and 6 % of the ten best of another person's history.
_NEAR = 0.35
# Without a similar meaning: this share of the question's terms, and at least two.
_SHARE = 0.5
_MIN_SHARED_WORDS = 2
_STEM = 5
_WORD = re.compile(r"[^\W_]+")


def relevant_candidates(
    question: Question, candidates: Iterable[Candidate], nearness: Mapping[int, float]
) -> tuple[Candidate, ...]:
    return tuple(candidate for candidate in candidates if bears_on(question, candidate.entry.entry, nearness))


def bears_on(question: Question, entry: MemoryEntry, nearness: Mapping[int, float]) -> bool:
    """Return True if its meaning is near the question, or it has most of the question's terms."""
    if nearness.get(entry.number, 0.0) >= _NEAR:
        return True
    stems = _stems(question.terms)
    min_shared = max(_MIN_SHARED_WORDS, _SHARE * len(stems))
    text = entry.text.lower()
    if sum(stem in text for stem in stems) < min_shared:  # most end here: texts may be long
        return False
    return len(stems & _stems(match[0] for match in _WORD.finditer(text))) >= min_shared


def within(items: Iterable[MemoryItem], budget: int) -> tuple[MemoryItem, ...]:
    """Return the first items whose texts have at most `budget` characters together."""
    chosen: list[MemoryItem] = []
    for item in items:
        budget -= len(item.text)
        if budget < 0:
            break
        chosen.append(item)
    return tuple(chosen)


def excerpt(text: str, question: Question, max_length: int, nearest: int = 0) -> str:
    """Return the part of a text with the most terms of the question, of at most `max_length` characters.

    If it has hardly any of them, return the part from `nearest`, where the passage of the nearest meaning begins.
    """
    if len(text) <= max_length:
        return text
    stems = _stems(question.terms)
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
    return frozenset(word[:_STEM] for word in terms)
