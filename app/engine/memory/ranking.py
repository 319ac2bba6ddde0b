"""Orders what was found: one score from a handful of features."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import log1p
from operator import attrgetter, mul

from app.engine.memory.index import SHORT_WORDS, IndexedEntry, Place, WordHits
from app.engine.memory.question import Question, share_of_questions, tells_time


@dataclass(frozen=True, slots=True)
class Features:
    """What speaks for an entry, each from 0 to 1. As weights: how much each counts."""

    meaning: float
    """How near its vector is to the question's, between the farthest and the nearest candidate."""
    words: float
    """BM25 of its own words, over the best: rare words of the question that occur in it."""
    window: float
    """The same with its neighbours, for a short turn: an answer seldom repeats the words of its question."""
    neighbours: float
    """The better score of the turns before and after it: what is near a hit is on its subject."""
    session: float
    """The best scores of its conversation: several hits in one conversation are no chance."""
    length: float
    """How much it says: "ok, do that" answers nothing, whatever stands around it."""
    telling: float
    """How much of it is no question: what only asks the same seldom is the answer."""
    day: float
    """It is of a day that the question names."""
    time: float
    """The question asks for a time, and it has one."""
    speaker: float
    """The question names who said it."""


# Fitted on the histories of the split `tune` (`python -m tests.benchmarks.memory --tune`), to the nearest 0.05.
WEIGHTS = Features(
    meaning=1.0,
    words=0.5,
    window=0.35,
    neighbours=0.65,
    session=1.05,
    length=0.9,
    telling=0.65,
    day=0.7,
    time=0.4,
    speaker=0.05,
)
_LONG_WORDS = 200
_BEST_OF_SESSION = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    found: IndexedEntry
    features: Features
    score: float


def rank(
    question: Question,
    found: Sequence[IndexedEntry],
    words: WordHits,
    nearness: Mapping[int, float],
    weights: Features = WEIGHTS,
) -> list[Candidate]:
    """The candidates, best first. `nearness` has the cosines of the nearest entries, empty without a model."""
    meaning = _spread(nearness)
    own, window = _share(words.own), _share(words.window)
    base = {one.entry.number: meaning.get(one.entry.number, 0.0) + own.get(one.entry.number, 0.0) for one in found}
    by_place = {_place(one): base[one.entry.number] for one in found}
    sessions = _sessions(found, base)
    ranked: list[Candidate] = []
    for one in found:
        number, (conversation_id, position) = one.entry.number, _place(one)
        near = max(by_place.get((conversation_id, position + step), 0.0) for step in (-1, 1))
        features = Features(
            meaning=meaning.get(number, 0.0),
            words=own.get(number, 0.0),
            window=window.get(number, 0.0) if one.words < SHORT_WORDS else own.get(number, 0.0),
            neighbours=near / 2,
            session=sessions[conversation_id],
            length=min(1.0, log1p(one.words) / log1p(_LONG_WORDS)),
            telling=1.0 - share_of_questions(one.entry.text),
            day=float(question.names_days and question.means(one.entry.at.date())),
            time=float(question.asks_time and tells_time(one.entry.text)),
            speaker=float(any(name in question.all_words for name in one.entry.speaker.lower().split())),
        )
        ranked.append(Candidate(one, features, _score(features, weights)))
    return sorted(ranked, key=lambda candidate: (-candidate.score, -candidate.found.entry.number))


def first_scores(words: WordHits, nearness: Mapping[int, float]) -> dict[int, float]:
    """What can be said of entries by their numbers before they are read."""
    parts = (_spread(nearness), _share(words.own), _share(words.window))
    numbers = {number for part in parts for number in part}
    return {number: sum(part.get(number, 0.0) for part in parts) for number in numbers}


def neighbours_of(found: Iterable[IndexedEntry]) -> set[Place]:
    return {(one.entry.conversation_id, one.position + step) for one in found for step in (-1, 1)}


def _score(features: Features, weights: Features) -> float:
    return sum(map(mul, _values(features), _values(weights)))


def _place(one: IndexedEntry) -> Place:
    return one.entry.conversation_id, one.position


def _spread(scores: Mapping[int, float]) -> dict[int, float]:
    if not scores:
        return {}
    lowest, highest = min(scores.values()), max(scores.values())
    return {number: (score - lowest) / ((highest - lowest) or 1.0) for number, score in scores.items()}


def _share(scores: Mapping[int, float]) -> dict[int, float]:
    highest = max(scores.values(), default=0.0)
    return {number: score / highest for number, score in scores.items()} if highest > 0 else {}


def _sessions(found: Sequence[IndexedEntry], base: Mapping[int, float]) -> dict[str, float]:
    scores = dict[str, list[float]]()
    for one in found:
        scores.setdefault(one.entry.conversation_id, []).append(base[one.entry.number])
    return {
        conversation_id: sum(sorted(values, reverse=True)[:_BEST_OF_SESSION]) / (2 * _BEST_OF_SESSION)
        for conversation_id, values in scores.items()
    }


FEATURE_NAMES = tuple(field.name for field in fields(Features))
_values = attrgetter(*FEATURE_NAMES)  # `astuple` copies: 0.1 ms for each candidate
