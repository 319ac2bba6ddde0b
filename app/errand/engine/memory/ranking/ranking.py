"""Ranks the hits of a search: one score from a handful of features."""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    futile: float
    """An agent or a tool said it in a task that failed, that did not do its work, or whose changes were undone."""
    exact: float
    """It has rare identifiers of the question: error numbers, file names, amounts."""


# Round numbers near the fits on the histories of the split `tune`, one set for all their styles (decision 86).
WEIGHTS = Features(
    meaning=1.0,
    term_match=0.75,
    near=0.85,
    session=0.65,
    news=0.9,
    day=1.5,
    form=0.5,
    speaker=0.5,
    page=-0.6,
    futile=-6.0,  # less than all others together, but for identifiers
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
# Only traits of entries that may come first are read.
READ = 60


@dataclass(frozen=True, slots=True)
class Candidate:
    """`texts` are the numbers of the texts that it stands for, with its own, if there are several.

    `newer` is the number of an entry that says something else about the same thing, later.
    """

    entry: IndexedEntry
    features: Features
    score: float
    texts: tuple[int, ...] = ()
    newer: int = 0

    @property
    def all_texts(self) -> tuple[int, ...]:
        return self.texts or (self.entry.text_number,)


class Ranked(NamedTuple):
    """An entry by its number, before it is read."""

    score: float
    number: int
    features: Features


def rank(
    question: Question,
    heads: Sequence[EntryHead],
    hits: WordHits,
    nearness: Mapping[int, float],
    traits: Callable[[Iterable[int]], Mapping[int, str]],
    max_candidates: int = READ,
    weights: Features = WEIGHTS,
    stated: StatedDays = NOTHING_STATED,
) -> list[Ranked]:
    """Return the best entries in order, of equals the newest first, at most `max_candidates`.

    `nearness` has the cosines of the nearest entries, empty without a model. `traits` returns the encoded traits of
    entries by their numbers. `stated` has the days that entries tell of, if the question names days.
    """
    in_order = sorted(heads)
    unread = _unread(question, in_order, hits, nearness, stated)
    scored = (
        Ranked(_score(features, weights), head.number, features)
        for head, features in zip(in_order, unread, strict=True)
    )
    best = {ranked.number: ranked.features for ranked in nlargest(max_candidates, scored)}
    codes = traits(best)
    return sorted((_read(question, number, codes[number], best[number], weights) for number in codes), reverse=True)


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
    speakers = _speakers(question, heads)
    page_share = 0.0 if question.asks_agent else 1.0 if question.is_about_asker else 0.5
    unknown = [0.0] * len(heads)
    columns = (  # in the order of the features
        [meaning.get(head.number, 0.0) for head in heads],
        [word_share.get(head.number, 0.0) for head in heads],
        _near(heads, base),
        [sessions[head.conversation_id] for head in heads],
        unknown,
        [_day(question, head, stated) for head in heads] if question.days else unknown,
        unknown,
        [speakers[head.role, head.speaker] for head in heads],
        [page_share * min(1.0, head.word_count / _PAGE_WORDS) * (head.role == "agent") for head in heads],
        [float(head.is_futile) for head in heads],
        [hits.exact.get(head.number, 0.0) for head in heads],
    )
    return list(map(Features._make, zip(*columns, strict=True)))


def _read(question: Question, number: int, code: str, features: Features, weights: Features) -> Ranked:
    traits = decode_traits(code)
    features = features._replace(
        news=min(1.0, count_new_words(question, traits) / _MANY_NEW_WORDS),
        form=float(has_asked_form(question, traits)),
    )
    return Ranked(_score(features, weights), number, features)


def _day(question: Question, head: EntryHead, stated: StatedDays) -> float:
    if any(map(question.days.mean_any_of, stated.get(head.number, ()))):
        return 1.0
    written_on = datetime.fromtimestamp(head.at, UTC).astimezone().date()
    return _OF_WRITTEN_DAY if question.days.mean(written_on) else 0.0


def _speakers(question: Question, heads: Iterable[EntryHead]) -> dict[tuple[str, str], float]:
    """Return the share of each speaker who said something: whether the question asks for what they said."""
    question_words = question.all_words.union(question.terms) - _NO_NAMES
    asked_role = "agent" if question.asks_agent else "user" if question.is_about_asker else ""
    return {
        (role, speaker): 1.0
        if role == asked_role
        else _OF_NAMED_SPEAKER * (not question_words.isdisjoint(speaker.lower().split()))
        for role, speaker in {(head.role, head.speaker) for head in heads}
    }


def _score(features: Features, weights: Features) -> float:
    return sum(map(mul, features, weights))


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
                best = max(best * _FADE, own / 2)
                between = abs(head.position - position) - 1
                if between:
                    best *= _FADE**between
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
