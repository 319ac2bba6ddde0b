"""Orders what was found: one score from a handful of features."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import inf
from operator import attrgetter, mul

from app.engine.memory.index import IndexedEntry, Place, WordHits
from app.engine.memory.question import Question, count_new_words, has_asked_form, share_of_questions


@dataclass(frozen=True, slots=True)
class Features:
    """What speaks for an entry, each from 0 to 1. As weights: how much each counts."""

    meaning: float
    """How near its vector is to the question's, between the farthest and the nearest candidate."""
    words: float
    """BM25, over the best: rare words of the question that occur in it, or if it is short in it and its neighbours."""
    near: float
    """The best hit of its conversation, less with each turn between: what is near a hit is on its subject."""
    session: float
    """The best hits of its conversation, over the best conversation: several hits in one are no chance."""
    news: float
    """How much it says that the question does not: what only repeats the question does not answer it."""
    telling: float
    """How much of it is no question: what only asks the same seldom is the answer."""
    day: float
    """It is of a day that the question names."""
    form: float
    """It has what the question asks for: a time, a number or a name."""
    speaker: float
    """The question says "I", and a person said it: people tell of themselves what they ask for later."""


# Between the fits on the histories of the split `tune` (`python -m tests.benchmarks.memory --tune`) as they are and
# with their turns joined to long ones, to the nearest 0.05 (decision 51).
WEIGHTS = Features(
    meaning=1.0,
    words=0.7,
    near=0.85,
    session=0.75,
    news=0.8,
    telling=0.55,
    day=1.0,
    form=0.5,
    speaker=0.4,
)
FEATURE_NAMES = tuple(field.name for field in fields(Features))
_values = attrgetter(*FEATURE_NAMES)  # `astuple` copies: 0.1 ms for each candidate
_FADE = 0.8
_OF_NEIGHBOURS = 0.8
_BEST_OF_SESSION = 3
_MANY_NEW_WORDS = 15
# Texts are read of those only that may come first.
_READ = 60


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
    word_share = _word_share(words)
    # Without a model, words are all there is: those of the entry itself stand for its meaning.
    meaning = _spread(nearness) or _shares(words.own)
    base = {number: meaning.get(number, 0.0) + word_share.get(number, 0.0) for number in _numbers(found)}
    near, sessions = _near(found, base), _sessions(found, base)
    by_person = question.is_about_asker
    ranked: list[Candidate] = []
    for one in found:
        entry = one.entry
        features = Features(
            meaning=meaning.get(entry.number, 0.0),
            words=word_share.get(entry.number, 0.0),
            near=near[entry.number],
            session=sessions[entry.conversation_id],
            news=0.0,
            telling=0.0,
            day=float(question.names_days and question.means(entry.at.date())),
            form=0.0,
            speaker=float(by_person and entry.role == "user"),
        )
        ranked.append(Candidate(one, features, _score(features, weights)))
    ranked.sort(key=_order)
    read = [_read(question, candidate, weights) for candidate in ranked[:_READ]]
    return sorted(read, key=_order) + ranked[_READ:]


def first_scores(words: WordHits, nearness: Mapping[int, float]) -> dict[int, float]:
    """What can be said of entries by their numbers before they are read."""
    parts = (_spread(nearness), _shares(words.own), _shares(words.window))
    numbers = {number for part in parts for number in part}
    return {number: sum(part.get(number, 0.0) for part in parts) for number in numbers}


def neighbours_of(found: Iterable[IndexedEntry]) -> set[Place]:
    return {(one.entry.conversation_id, one.position + step) for one in found for step in (-1, 1)}


def _read(question: Question, candidate: Candidate, weights: Features) -> Candidate:
    text = candidate.found.entry.text
    features = replace(
        candidate.features,
        news=min(1.0, count_new_words(question, text) / _MANY_NEW_WORDS),
        telling=1.0 - share_of_questions(text),
        form=float(has_asked_form(question, text)),
    )
    return Candidate(candidate.found, features, _score(features, weights))


def _score(features: Features, weights: Features) -> float:
    return sum(map(mul, _values(features), _values(weights)))


def _order(candidate: Candidate) -> tuple[float, int]:
    """Of equals the newest first."""
    return -candidate.score, -candidate.found.entry.number


def _numbers(found: Sequence[IndexedEntry]) -> Iterable[int]:
    return (one.entry.number for one in found)


def _spread(scores: Mapping[int, float]) -> dict[int, float]:
    if not scores:
        return {}
    lowest, highest = min(scores.values()), max(scores.values())
    return {number: (score - lowest) / ((highest - lowest) or 1.0) for number, score in scores.items()}


def _shares(scores: Mapping[int, float]) -> dict[int, float]:
    highest = max(scores.values(), default=0.0) or inf
    return {number: score / highest for number, score in scores.items()}


def _word_share(words: WordHits) -> dict[int, float]:
    own = _shares(words.own)
    window = {number: share * _OF_NEIGHBOURS for number, share in _shares(words.window).items()}
    return window | {number: max(share, window.get(number, 0.0)) for number, share in own.items()}


def _near(found: Sequence[IndexedEntry], base: Mapping[int, float]) -> dict[int, float]:
    in_order = sorted(found, key=lambda one: one.place)
    near = dict.fromkeys(_numbers(found), 0.0)
    for turns in (in_order, in_order[::-1]):
        best = 0.0
        for last, one in pairwise(turns):
            apart = abs(one.position - last.position) - 1
            is_same = one.entry.conversation_id == last.entry.conversation_id
            best = max(best * _FADE, base[last.entry.number] / 2) * _FADE**apart if is_same else 0.0
            near[one.entry.number] = max(near[one.entry.number], best)
    return near


def _sessions(found: Sequence[IndexedEntry], base: Mapping[int, float]) -> dict[str, float]:
    scores = dict[str, list[float]]()
    for one in found:
        scores.setdefault(one.entry.conversation_id, []).append(base[one.entry.number])
    best = {key: sum(sorted(values, reverse=True)[:_BEST_OF_SESSION]) for key, values in scores.items()}
    highest = max(best.values(), default=0.0) or inf
    return {key: score / highest for key, score in best.items()}
