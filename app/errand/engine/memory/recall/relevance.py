"""Judges which entries bear on a message, compared with what any message reaches in this store.

A ranking has a first place even if nothing fits. Here entries gather evidence: how far they stand out for a clause of
the message, the turns beside them, rare words, names, identifiers, and who said them. Nothing is given unless one of
them has enough.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from errand.engine.memory.index import EntryHead, IndexedEntry, WordIndex
from errand.engine.memory.recall.message import ParsedMessage
from errand.engine.memory.recall.orders import is_bare_order
from errand.engine.memory.recall.shared_words import SharedWords, shared_words
from errand.engine.memory.vectors.base import VectorFilter, VectorHit
from errand.engine.memory.words.spelling import count_words
from errand.protocol.blocks import RecallReason


@dataclass(frozen=True, slots=True)
class _Weights:
    """Weights of the evidence for an entry, fitted by logistic regression on tests/benchmarks/memory and rounded."""

    standing: float
    """How far the cosine of the entry with a clause is above those of others."""
    neighbour: float
    """The best cosine of a turn beside it."""
    crowd: float
    """The cosine of others with the whole message."""
    rare_words: float
    """Shared words, by how rare they are."""
    name: float
    """Names among them."""
    identifier: float
    """An identifier, a little more than fitted: it is enough by itself, whatever the meanings."""
    person: float
    """A person said it."""
    quoted: float
    """A tool put it out, which is worth less."""
    short: float
    """It has a few words, which are near many messages."""
    enough: float
    """The evidence that one entry needs."""
    enough_beside_others: float
    """What others of the same store then need."""


# Fitted on both splits (decision 88).
_OF_MODEL = _Weights(
    standing=8.8,
    neighbour=3.8,
    crowd=4.1,
    rare_words=0.09,
    name=0.9,
    identifier=4.8,
    person=1.0,
    quoted=0.5,
    short=1.1,
    enough=5.3,
    enough_beside_others=4.3,
)
# Near a fit on the split `tune` (decision 94): its cosines say less, and where those of others are high, nothing.
_OF_SIMPLE_MODEL = _Weights(
    standing=12.0,
    neighbour=10.0,
    crowd=-8.0,
    rare_words=0.23,
    name=1.1,
    identifier=9.0,
    person=0.4,
    quoted=2.9,
    short=2.0,
    enough=7.0,
    enough_beside_others=6.0,
)
# Of the nearest entries: what so many reach is no sign that one of them is meant.
_CROWD_SIZE = 20
# A store where everything is near the message has no more for it.
_MAX_CROWD = 0.3
_MAX_NAMES = 2
_MAX_SHORT_WORDS = 7
# Not among the nearest.
_FAR = 0.1
_RAREST = 4
# Without a model: the rarest shared words together weigh as much as so many words of one entry each.
_ENOUGH_WORDS, _ENOUGH_WORDS_BESIDE_OTHERS = 2.7, 1.7
# A message of few words: at least two of them, and half.
_FEW_WORDS = 6
_SIMILAR = 0.35
_SHOWN_WORDS = 3
_MAX_JUDGED = 60
_MAX_BEARING = 20
# Turns between a question and the agent's last answer to it, with the calls and results of tools.
_MAX_TURNS_OF_ANSWER = 12
_MIN_ANSWER_WORDS = 3
_QUOTED_ROLES = ("tool", "task")
# As entries show the calls of a reply.
_CALLS = re.compile(r"(?:\[[a-z_]+: [^\n]*\]\n?)+")


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest entries of the message, and of its clauses; empty where meanings are not searched.

    `is_simple`: the simple model found them.
    """

    message: tuple[VectorHit, ...] = ()
    clauses: tuple[tuple[VectorHit, ...], ...] = ()
    is_simple: bool = False


@dataclass(frozen=True, slots=True)
class Relevant:
    """An entry to give, and why. It has words `shared` with the message, `passage` is its nearest part."""

    indexed: IndexedEntry
    score: float
    reason: RecallReason
    shared: tuple[str, ...] = ()
    passage: int | None = None


@dataclass(frozen=True, slots=True)
class _Evidence:
    head: EntryHead
    score: float
    cosine: float
    shared: SharedWords


def relevant_entries(
    message: ParsedMessage, nearest: Nearest, where: VectorFilter | None, index: WordIndex
) -> list[Relevant]:
    """Return the entries that bear on a message, best first, each beside the question or the answer to it."""
    bearing = _bearing(message, nearest, where, index)
    passages = {hit.number: hit.part for hits in reversed((nearest.message, *nearest.clauses)) for hit in hits}
    by_number = {indexed.entry.number: indexed for indexed in index.entries(item.head.number for item in bearing)}
    groups: list[Relevant] = []
    given_numbers: set[int] = set()
    for item in bearing:
        indexed = by_number.get(item.head.number)
        if indexed is None or item.head.number in given_numbers:
            continue
        own = Relevant(indexed, item.score, _reason(item), _shown_words(item.shared), passages.get(item.head.number))
        group = [relevant for relevant in _with_other_side(own, index, passages) if _tells(relevant)]
        groups += (relevant for relevant in group if relevant.indexed.entry.number not in given_numbers)
        given_numbers.update(relevant.indexed.entry.number for relevant in group)
    return groups


def quoted_last(entries: Iterable[Relevant]) -> list[Relevant]:
    """Return the entries with those last that quote pages, files and programs."""
    return sorted(entries, key=lambda relevant: relevant.indexed.entry.role in _QUOTED_ROLES)


def _bearing(message: ParsedMessage, nearest: Nearest, where: VectorFilter | None, index: WordIndex) -> list[_Evidence]:
    shared = shared_words(message, index, where)
    if nearest.message:
        weights = _OF_SIMPLE_MODEL if nearest.is_simple else _OF_MODEL
        evidence = _evidence(nearest, shared, weights, where, index)
        enough, enough_beside = weights.enough, weights.enough_beside_others
    else:
        total = index.last_number()
        evidence = _evidence_of_words(message, shared, index, log(total + 1) if total else 1.0)
        enough, enough_beside = _ENOUGH_WORDS, _ENOUGH_WORDS_BESIDE_OTHERS
    if not evidence or evidence[0].score < enough:
        return []
    return [item for item in evidence if item.score >= enough_beside][:_MAX_BEARING]


def _evidence(
    nearest: Nearest,
    shared: Mapping[int, SharedWords],
    weights: _Weights,
    where: VectorFilter | None,
    index: WordIndex,
) -> list[_Evidence]:
    """Return the evidence of the most likely entries, best first."""
    cosines = _cosines(nearest.message)
    clauses = [(_cosines(hits), _crowd(hits)) for hits in nearest.clauses if hits] or [
        (cosines, _crowd(nearest.message))
    ]
    base = weights.crowd * min(_MAX_CROWD, _crowd(nearest.message))

    def alone(number: int) -> float:
        standing = max(clause.get(number, _FAR) - crowd for clause, crowd in clauses)
        shared_with = shared.get(number)
        return base + weights.standing * standing + (_weight(shared_with, weights) if shared_with is not None else 0.0)

    numbers = {*cosines, *shared}.union(*(clause for clause, _ in clauses))
    likely = sorted(numbers, key=lambda number: -alone(number))[:_MAX_JUDGED]
    heads = index.heads(likely)
    by_location = {(head.conversation_id, head.position): head.number for head in index.neighbour_heads(heads, where)}
    evidence: list[_Evidence] = []
    for head in heads:
        locations = ((head.conversation_id, head.position + step) for step in (-1, 1))
        best_beside = max(
            (cosines.get(by_location[location], _FAR) for location in locations if location in by_location),
            default=_FAR,
        )
        entry_words = shared.get(head.number, SharedWords())
        score = alone(head.number) + weights.neighbour * best_beside + _weight_of_speaker(head, entry_words, weights)
        evidence.append(_Evidence(head, score, cosines.get(head.number, _FAR), entry_words))
    return sorted(evidence, key=lambda item: (-item.score, -item.head.number))


def _cosines(hits: Iterable[VectorHit]) -> dict[int, float]:
    return {hit.number: hit.score for hit in hits}


def _crowd(hits: Sequence[VectorHit]) -> float:
    """Return the cosine that about any text reaches in this store."""
    return max(0.0, hits[min(_CROWD_SIZE, len(hits) - 1)].score)


def _weight(words: SharedWords, weights: _Weights) -> float:
    return (
        weights.rare_words * words.weight(_RAREST)
        + weights.name * min(_MAX_NAMES, len(words.names))
        + weights.identifier * bool(words.identifiers)
    )


def _weight_of_speaker(head: EntryHead, words: SharedWords, weights: _Weights) -> float:
    is_short = head.word_count <= _MAX_SHORT_WORDS and not words.identifiers
    role_weight = weights.person * (head.role == "user") - weights.quoted * (head.role in _QUOTED_ROLES)
    return role_weight - weights.short * is_short


def _evidence_of_words(
    message: ParsedMessage, shared: Mapping[int, SharedWords], index: WordIndex, heaviest: float
) -> list[_Evidence]:
    likely = sorted(shared, key=lambda number: -shared[number].weight(_RAREST))[:_MAX_JUDGED]
    likely += [number for number, entry_words in shared.items() if entry_words.identifiers]
    evidence: list[_Evidence] = []
    for head in index.heads(dict.fromkeys(likely)):
        entry_words = shared[head.number]
        score = entry_words.weight(_RAREST) / heaviest - (head.role in _QUOTED_ROLES)
        if entry_words.identifiers or _has_most_of(message.terms, entry_words):
            score += _ENOUGH_WORDS
        evidence.append(_Evidence(head, score, 0.0, entry_words))
    return sorted(evidence, key=lambda item: (-item.score, -item.head.number))


def _has_most_of(terms: Sequence[str], words: SharedWords) -> bool:
    count = sum(map(count_words, terms))
    return count <= _FEW_WORDS and len(words.weights) >= max(2, count / 2)


def _reason(item: _Evidence) -> RecallReason:
    if item.shared.identifiers or (item.cosine < _SIMILAR and item.shared.weights):
        return "words"
    return "meaning"


def _shown_words(shared: SharedWords) -> tuple[str, ...]:
    return tuple(shared.identifiers[:_SHOWN_WORDS]) or shared.rarest(_SHOWN_WORDS)


def _tells(relevant: Relevant) -> bool:
    """Return False for an order, which an agent that reads it may carry out, and for nothing but calls of tools."""
    entry = relevant.indexed.entry
    if entry.role == "user":
        return not is_bare_order(entry.text)
    return entry.role != "agent" or _CALLS.fullmatch(entry.text) is None


def _with_other_side(own: Relevant, index: WordIndex, passages: Mapping[int, int]) -> list[Relevant]:
    """Return an entry with the answer to it, or the question before it, in the order in which they were said."""
    match own.indexed.entry.role:
        case "user":
            answer = _answer(own.indexed, index)
            return [own] if answer is None else [own, _beside(answer, own, "answer", passages)]
        case "agent":
            question = _question(own.indexed, index)
            return [own] if question is None else [_beside(question, own, "question", passages), own]
        case "tool" | "task":
            return [own]


def _beside(indexed: IndexedEntry, own: Relevant, reason: RecallReason, passages: Mapping[int, int]) -> Relevant:
    return Relevant(indexed, own.score, reason, own.shared, passages.get(indexed.entry.number))


def _answer(question: IndexedEntry, index: WordIndex) -> IndexedEntry | None:
    """Return the last that an agent said before the person spoke again."""
    conversation_id, position = question.location
    after = range(position + 1, position + 1 + _MAX_TURNS_OF_ANSWER)
    turns = sorted(index.entries_at((conversation_id, later) for later in after), key=lambda turn: turn.position)
    answer: IndexedEntry | None = None
    for turn in turns:
        if turn.entry.role == "user":
            break
        if turn.entry.role == "agent" and turn.word_count >= _MIN_ANSWER_WORDS:
            answer = turn
    return answer


def _question(answer: IndexedEntry, index: WordIndex) -> IndexedEntry | None:
    """Return what the person said before the agent."""
    conversation_id, position = answer.location
    before = range(position - 1, max(-1, position - 1 - _MAX_TURNS_OF_ANSWER), -1)
    turns = sorted(index.entries_at((conversation_id, earlier) for earlier in before), key=lambda turn: -turn.position)
    return next((turn for turn in turns if turn.entry.role == "user"), None)
