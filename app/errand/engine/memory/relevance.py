"""Selects what an agent is given from memory unasked: relevant entries, and of a long entry the relevant passage.

A ranking has a first place even if nothing fits, so an entry also has to pass thresholds here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.question import Question
from errand.engine.memory.ranking import Candidate
from errand.protocol.memory import MemoryItem

# Cosines of the model: unrelated texts reach 0.2, answers mostly 0.35 to 0.7. On the histories for tuning, of the ten
# best entries 76 % of those wanted bear on their question, and 6 % of those found in another person's history.
_NEAR = 0.35
# Without a near meaning: so many of the telling words, and at least two.
_SHARE = 0.5
_MIN_SHARED_WORDS = 2
_STEM = 5
_WORD = re.compile(r"[^\W_]+")


def bearing(
    question: Question, candidates: Iterable[Candidate], nearness: Mapping[int, float]
) -> tuple[Candidate, ...]:
    return tuple(one for one in candidates if bears_on(question, one.found.entry, nearness))


def bears_on(question: Question, entry: MemoryEntry, nearness: Mapping[int, float]) -> bool:
    """True if its meaning is near the question, or it has most of the telling words."""
    if nearness.get(entry.number, 0.0) >= _NEAR:
        return True
    wanted = _stems(question.words)
    fewest = max(_MIN_SHARED_WORDS, _SHARE * len(wanted))
    text = entry.text.lower()
    if sum(stem in text for stem in wanted) < fewest:  # most end here: texts may be long
        return False
    return len(wanted & _stems(match[0] for match in _WORD.finditer(text))) >= fewest


def within(items: Iterable[MemoryItem], budget: int) -> tuple[MemoryItem, ...]:
    """The first whose texts have together at most `budget` characters."""
    chosen: list[MemoryItem] = []
    for item in items:
        budget -= len(item.text)
        if budget < 0:
            break
        chosen.append(item)
    return tuple(chosen)


def excerpt(text: str, question: Question, longest: int, nearest: int = 0) -> str:
    """The part of a text with the most words of the question, of at most `longest` characters.

    Where it has hardly any of them, the part from `nearest`, at which the passage of the nearest meaning begins.
    """
    if len(text) <= longest:
        return text
    wanted = _stems(question.words)
    places = [match.start() for match in _WORD.finditer(text) if match[0].lower()[:_STEM] in wanted]
    start, together = _densest(places, longest)
    if nearest and together < _MIN_SHARED_WORDS:
        start = nearest
    begin = max(0, text.rfind("\n", 0, start) + 1, text.rfind(". ", 0, start) + 2 if start else 0)
    if start - begin > longest // 3:  # the sentence is too long to be shown from its beginning
        begin = start
    end = begin + longest
    return f"{'… ' if begin else ''}{text[begin:end].strip()}{' …' if end < len(text) else ''}"


def _densest(places: Sequence[int], longest: int) -> tuple[int, int]:
    """The place from which the most are within two thirds of the length, and how many these are with itself."""
    best, most, last = 0, 0, 0
    for first, place in enumerate(places):
        while last < len(places) and places[last] < place + longest * 2 // 3:
            last += 1
        if last - first > most:
            best, most = place, last - first
    return best, most


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in words)
