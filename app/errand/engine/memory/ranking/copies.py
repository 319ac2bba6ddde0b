"""Texts that are equal, or nearly so, stand once among the candidates, or the newer one before the older."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeAlias, TypeVar

from errand.engine.memory.index import EntryHead, IndexedEntry
from errand.engine.memory.ranking.question import Question
from errand.engine.memory.ranking.ranking import Candidate, Ranked
from errand.engine.memory.words.stop_words import stop_words

T = TypeVar("T")
# In the order of the text.
_Words: TypeAlias = Mapping[str, None]

_WORD = re.compile(r"\w+")
# Longer texts are compared by their beginnings.
_MAX_LENGTH = 1_000
_COMPARED = 20
_DAY_S = 86_400
# The share of words that two texts about one thing have in common.
_NEAR = 0.74
_MAY_BE_NEAR = 0.5
# The share of words in which results of tools that say the same may differ: times and durations.
_MAX_DIFFERENT = 0.2
# In fewer words, one that differs may be all that matters.
_MIN_COMPARED_WORDS = 4
# What is shorter means something else in each place: "Yes.", "Dark green."
_MIN_WORDS = 3


def without_most_copies(
    question: Question, heads: Sequence[EntryHead], scores: Mapping[int, float]
) -> Sequence[EntryHead]:
    """Return the heads with at most two of each text: the newest, and the one with the best score.

    A hundred copies would leave no room for others. Where a day is asked for, each day has its own.
    """
    by_text: dict[tuple[int, int], list[EntryHead]] = {}
    for head in heads:
        day = int(head.at // _DAY_S) if question.days else 0
        by_text.setdefault((head.text_number or head.number, day), []).append(head)
    if len(by_text) == len(heads):
        return heads
    chosen: set[EntryHead] = set()
    for copies in by_text.values():
        if len(copies) > 1:
            chosen.add(max(copies, key=lambda head: (head.at, head.number)))
            chosen.add(max(copies, key=lambda head: (scores.get(head.number, 0.0), head.number)))
        else:
            chosen.add(copies[0])
    return list(chosen)


def newest_of_each(entries: Iterable[T], indexed_of: Callable[[T], IndexedEntry]) -> list[T]:
    """Return what holds entries; of equal texts the newest, where the first of them stood."""
    newest: dict[int, T] = {}
    for entry in entries:
        indexed = indexed_of(entry)
        is_telling = indexed.text_number and indexed.word_count >= _MIN_WORDS
        text = indexed.text_number if is_telling else indexed.entry.number
        other = newest.get(text)
        if other is None or indexed.entry.at > indexed_of(other).entry.at:
            newest[text] = entry
    return list(newest.values())


def equal_once(ranked: Sequence[Ranked], heads: Iterable[EntryHead]) -> list[Ranked]:
    """Return what was ranked, of which equal texts stand once, where the best of them stood.

    The newest stands for them all, unless another is of the day that is asked for; what is too short to mean the same
    everywhere is left as the one that fits best.
    """
    by_number = {head.number: head for head in heads}
    best: dict[int, Ranked] = {}
    for candidate in ranked:
        head = by_number[candidate.number]
        text = head.text_number or head.number
        first = best.get(text)
        if first is None:
            best[text] = candidate
            continue
        is_newer = (head.at, head.number) > (by_number[first.number].at, first.number)
        is_as_good = candidate.features.day >= first.features.day and candidate.features.futile <= first.features.futile
        if is_newer and head.word_count >= _MIN_WORDS and is_as_good:
            best[text] = first._replace(number=candidate.number)
    return list(best.values())


def stand_once(question: Question, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, of which nearly equal texts stand once, where the best of them stood.

    Of two statements about one thing that differ, the newer stands first, and the older names it as `newer`.
    """
    different: list[Candidate] = []
    chunks: list[frozenset[str]] = []
    groups: list[list[int]] = []
    for candidate in candidates[:_COMPARED]:
        its_chunks = _chunks(candidate.entry)
        position = len(different)
        for earlier, other_chunks in enumerate(chunks):
            other = different[earlier]
            is_futile_alike = candidate.features.futile == other.features.futile
            if not (is_futile_alike and _share(its_chunks, other_chunks, _MAY_BE_NEAR)):
                continue
            differing = _difference(_words(candidate.entry), _words(other.entry))
            if differing is None or not differing.isdisjoint(question.terms):  # the question tells which it means
                continue
            if _say_the_same(question, other, candidate, differing):
                different[earlier] = _joined(other, candidate)
                break
            if _are_about_one_thing(question, other, candidate):
                group = next((group for group in groups if earlier in group), None)
                if group is None:
                    groups.append(group := [earlier])
                group.append(position)
                different.append(candidate)
                chunks.append(its_chunks)
                break
        else:
            different.append(candidate)
            chunks.append(its_chunks)
    for group in groups:
        _order(different, group)
    return [*different, *candidates[_COMPARED:]]


def _order(candidates: list[Candidate], positions: Sequence[int]) -> None:
    """Order those at these positions by age, the newest first; each names the one before it."""
    scores = [candidates[position].score for position in positions]
    newer = 0
    members = sorted((candidates[position] for position in positions), key=_age, reverse=True)
    for position, score, candidate in zip(positions, scores, members, strict=True):
        candidates[position] = replace(candidate, score=score, newer=newer)
        newer = candidate.entry.entry.number


def _joined(one: Candidate, other: Candidate) -> Candidate:
    """Return the candidate that stands for both, in the place of the first: the newest, unless a day is asked for."""
    texts = tuple(dict.fromkeys((*one.all_texts, *other.all_texts)))
    is_newer = _age(other) > _age(one) and other.entry.word_count >= _MIN_WORDS
    is_newer = is_newer and other.features.day >= one.features.day
    return replace(one, entry=other.entry if is_newer else one.entry, texts=texts)


def _chunks(indexed: IndexedEntry) -> frozenset[str]:
    """Return what stands between spaces, with commas and full stops: a first look, which is cheap."""
    return frozenset(indexed.entry.text[:_MAX_LENGTH].lower().split())


def _words(indexed: IndexedEntry) -> _Words:
    return dict.fromkeys(_WORD.findall(indexed.entry.text[:_MAX_LENGTH].lower()))


def _difference(one: _Words, other: _Words) -> set[str] | None:
    """Return the words that one of two texts has alone; None if they are not near each other."""
    if min(len(one), len(other)) < _MIN_COMPARED_WORDS or not _share(one.keys(), other.keys(), _NEAR):
        return None
    return one.keys() ^ other.keys()


def _share(one: Set[str], other: Set[str], share: float) -> bool:
    """Return True if two texts have at least that share of their words in common."""
    needed = share * (len(one) + len(other)) / 2
    return min(len(one), len(other)) >= needed and len(one & other) >= needed


def _say_the_same(question: Question, one: Candidate, other: Candidate, differing: Collection[str]) -> bool:
    """Return True for results that hardly differ, and for statements that differ in words without meaning alone."""
    role = one.entry.entry.role
    if role != other.entry.entry.role:
        return False
    if role == "tool":
        return len(differing) <= _MAX_DIFFERENT * min(one.entry.word_count, other.entry.word_count)
    is_one_speaker = one.entry.entry.speaker == other.entry.entry.speaker
    return is_one_speaker and stop_words(question.language).issuperset(differing)


def _are_about_one_thing(question: Question, one: Candidate, other: Candidate) -> bool:
    """Return True for two statements of one speaker that begin alike: they say different things about one."""
    first, second = one.entry.entry, other.entry.entry
    if (first.role, first.speaker) != (second.role, second.speaker) or first.role == "tool":
        return False
    meaningless = stop_words(question.language)
    subjects = (
        next((word for word in _words(indexed) if word not in meaningless), "") for indexed in (one.entry, other.entry)
    )
    return len(set(subjects)) == 1


def _age(candidate: Candidate) -> tuple[float, int]:
    """Return the sort key, the newest last."""
    entry = candidate.entry.entry
    return entry.at.timestamp(), entry.number
