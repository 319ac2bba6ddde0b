"""Ranks the hits of a search: one score from a handful of features."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nlargest
from math import inf
from operator import mul
from typing import Final, NamedTuple, TypeAlias

from errand.engine.memory.index import EntryHead, IndexedEntry
from errand.engine.memory.ranking.days import Period
from errand.engine.memory.ranking.question import Question, count_new_words, has_asked_form
from errand.engine.memory.ranking.traits import decode_traits
from errand.engine.memory.words.hits import WordHits

# By the number of the entry.
StatedDays: TypeAlias = Mapping[int, Sequence[Period]]
NOTHING_STATED: Final[StatedDays] = {}


class Features(NamedTuple):
    """The arguments for an entry, each from 0 to 1; also the weight of each argument."""

    meaning: float
    """Similarity of its vector to that of the question, between the least and the most similar candidate."""
    term_match: float
    """BM25, relative to the best: rare words of the question that occur in it, or, if it is short, around it."""
    near: float
    """The best hit of its conversation, less with each turn between: turns near a hit share its subject."""
    session: float
    """The best hits of its conversation, relative to the best conversation: several hits are no coincidence."""
    news: float
    """Words that it states and that are not in the question: a text that only repeats or asks it does not answer it."""
    day: float
    """It tells of a day that the question names, or, less, was written on one."""
    form: float
    """It has what the question asks for: a time, a number or a name."""
    speaker: float
    """It was said by whom the question asks about: "I" a person, "you" an agent, a name that of the speaker."""
    page: float
    """An agent wrote it, up to a page: pages share many words with their subject, and people tell what they ask for.

    Half of that if the question is not about who asks, and nothing if it asks for what the agent said.
    """
    exact: float
    """It has rare identifiers of the question: error numbers, file names, amounts."""


# Round numbers near the fits on the histories of the split `tune`, one set for all their styles (decision 86).
WEIGHTS = Features(
    meaning=1.0,
    term_match=0.8,
    near=0.8,
    session=0.6,
    news=1.0,
    day=1.0,
    form=0.5,
    speaker=0.5,
    page=-0.6,
    exact=12.0,  # more than all others together
)
_FADE = 0.8
_OF_NEIGHBOURS = 0.8
_BEST_OF_SESSION = 3
_MANY_NEW_WORDS = 15
_PAGE_WORDS = 250
_OF_WRITTEN_DAY = 0.6
_OF_NAMED_SPEAKER = 0.6
# What speakers are called that have no name.
_NO_NAMES = frozenset(("user", "assistant", "agent", "tool", "task", "summary"))
# Only texts of entries that may come first are read.
READ = 60


@dataclass(frozen=True, slots=True)
class Candidate:
    entry: IndexedEntry
    features: Features
    score: float


def rank(
    question: Question,
    heads: Sequence[EntryHead],
    hits: WordHits,
    nearness: Mapping[int, float],
    read: Callable[[Iterable[int]], Iterable[IndexedEntry]],
    max_candidates: int = READ,
    weights: Features = WEIGHTS,
    stated: StatedDays = NOTHING_STATED,
) -> list[Candidate]:
    """Return the best candidates in order, at most `max_candidates`. `read` returns the entries with some numbers.

    `nearness` has the cosines of the nearest entries, empty without a model. `stated` has the days that entries tell
    of, if the question names days.
    """
    in_order = sorted(heads)
    unread = _unread(question, in_order, hits, nearness, stated)
    scored = (
        (_score(features, weights), head.number, features) for head, features in zip(in_order, unread, strict=True)
    )
    best = {number: features for _, number, features in nlargest(max_candidates, scored)}
    return sorted((_read(question, indexed, best[indexed.entry.number], weights) for indexed in read(best)), key=_order)


def first_scores(hits: WordHits, nearness: Mapping[int, float]) -> dict[int, float]:
    """Return scores of entries by their numbers, as far as they are known before any entry is read."""
    scores = _spread(nearness)
    for shares in (_shares(hits.own), _shares(hits.window)):
        for number, share in shares.items():
            scores[number] = scores.get(number, 0.0) + share
    for number, share in hits.exact.items():
        scores[number] = scores.get(number, 0.0) + WEIGHTS.exact * share
    return scores


def _unread(
    question: Question,
    heads: Sequence[EntryHead],
    hits: WordHits,
    nearness: Mapping[int, float],
    stated: StatedDays,
) -> list[Features]:
    """Return the features of entries in the order of conversations, except those that need their traits."""
    word_share = _word_share(hits)
    # Without a model there are only words: those of the entry itself stand for its meaning.
    meaning = _spread(nearness) or _shares(hits.own)
    base = [meaning.get(head.number, 0.0) + word_share.get(head.number, 0.0) for head in heads]
    sessions = _sessions(heads, base)
    named_speakers = _named_speakers(question, heads)
    return [
        Features(
            meaning=meaning.get(head.number, 0.0),
            term_match=word_share.get(head.number, 0.0),
            near=near,
            session=sessions[head.conversation_id],
            news=0.0,
            day=_day(question, head, stated) if question.days else 0.0,
            form=0.0,
            speaker=_speaker(question, head, named_speakers),
            page=_page(question, head),
            exact=hits.exact.get(head.number, 0.0),
        )
        for head, near in zip(heads, _near(heads, base), strict=True)
    ]


def _read(question: Question, indexed: IndexedEntry, features: Features, weights: Features) -> Candidate:
    traits = decode_traits(indexed.traits)
    features = features._replace(
        news=min(1.0, count_new_words(question, traits) / _MANY_NEW_WORDS),
        form=float(has_asked_form(question, traits)),
    )
    return Candidate(indexed, features, _score(features, weights))


def _day(question: Question, head: EntryHead, stated: StatedDays) -> float:
    if any(map(question.days.mean_any_of, stated.get(head.number, ()))):
        return 1.0
    written_on = datetime.fromtimestamp(head.at, UTC).astimezone().date()
    return _OF_WRITTEN_DAY if question.days.mean(written_on) else 0.0


def _named_speakers(question: Question, heads: Iterable[EntryHead]) -> frozenset[str]:
    """Return the speakers of whose name the question has a word."""
    question_words = question.all_words.union(question.terms) - _NO_NAMES
    speakers = {head.speaker for head in heads}
    return frozenset(speaker for speaker in speakers if not question_words.isdisjoint(speaker.lower().split()))


def _speaker(question: Question, head: EntryHead, named_speakers: Collection[str]) -> float:
    if (head.role == "agent") if question.asks_agent else (head.role == "user" and question.is_about_asker):
        return 1.0
    return _OF_NAMED_SPEAKER if head.speaker in named_speakers else 0.0


def _page(question: Question, head: EntryHead) -> float:
    if head.role != "agent" or question.asks_agent:
        return 0.0
    return min(1.0, head.word_count / _PAGE_WORDS) / (1 if question.is_about_asker else 2)


def _score(features: Features, weights: Features) -> float:
    return sum(map(mul, features, weights))


def _order(candidate: Candidate) -> tuple[float, int]:
    """Return the sort key: best first, of equals the newest first."""
    return -candidate.score, -candidate.entry.entry.number


def _spread(scores: Mapping[int, float]) -> dict[int, float]:
    if not scores:
        return {}
    lowest, highest = min(scores.values()), max(scores.values())
    return {number: (score - lowest) / ((highest - lowest) or 1.0) for number, score in scores.items()}


def _shares(scores: Mapping[int, float]) -> dict[int, float]:
    highest = max(scores.values(), default=0.0) or inf
    return {number: score / highest for number, score in scores.items()}


def _word_share(hits: WordHits) -> dict[int, float]:
    own = _shares(hits.own)
    window = {number: share * _OF_NEIGHBOURS for number, share in _shares(hits.window).items()}
    return window | {number: max(share, window.get(number, 0.0)) for number, share in own.items()}


def _near(heads: Sequence[EntryHead], base: Sequence[float]) -> list[float]:
    """Return, for each, the best hit of its conversation before or after it, less with each turn between."""
    near = [0.0] * len(heads)
    for order in (range(len(heads)), range(len(heads) - 1, -1, -1)):
        best, conversation, position, own = 0.0, "", 0, 0.0
        for index in order:
            head = heads[index]
            if head.conversation_id == conversation:
                best = max(best * _FADE, own / 2) * _FADE ** (abs(head.position - position) - 1)
                near[index] = max(near[index], best)
            else:
                best, conversation = 0.0, head.conversation_id
            position, own = head.position, base[index]
    return near


def _sessions(heads: Sequence[EntryHead], base: Sequence[float]) -> dict[str, float]:
    scores = dict[str, list[float]]()
    for head, score in zip(heads, base, strict=True):
        scores.setdefault(head.conversation_id, []).append(score)
    best = {key: sum(sorted(values, reverse=True)[:_BEST_OF_SESSION]) for key, values in scores.items()}
    highest = max(best.values(), default=0.0) or inf
    return {key: score / highest for key, score in best.items()}
