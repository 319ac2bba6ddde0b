"""The order of what was found: what each feature is for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import count

import pytest

from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import EntryHead, IndexedEntry
from errand.engine.memory.ranking.days import Period
from errand.engine.memory.ranking.question import Question, read_question
from errand.engine.memory.ranking.ranking import NOTHING_STATED, READ, WEIGHTS, Features, Ranked, StatedDays, rank
from errand.engine.memory.ranking.traits import traits_of
from errand.engine.memory.words.hits import WordHits

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)
QUESTION = read_question("When did the boiler leak?")
NO_WORDS = WordHits({}, {})


def entries(*texts: str, conversation: str = "c1", first: int = 1) -> list[IndexedEntry]:
    return [
        IndexedEntry(
            MemoryEntry(number, str(number), conversation, "Mara", "user", AT, text), position, len(text.split())
        )
        for number, position, text in zip(count(first), count(), texts)
    ]


def ranked(
    indexed: Sequence[IndexedEntry],
    word_hits: WordHits = NO_WORDS,
    nearness: Mapping[int, float] | None = None,
    question: Question = QUESTION,
    weights: Features = WEIGHTS,
    stated: StatedDays = NOTHING_STATED,
) -> list[Ranked]:
    """All that was found; their traits are read by their numbers."""
    texts = {indexed_entry.entry.number: indexed_entry.entry.text for indexed_entry in indexed}

    def traits(numbers: Iterable[int]) -> dict[int, str]:
        return {number: traits_of(texts[number]).encode() for number in numbers}

    heads = [
        EntryHead(
            *indexed_entry.location,
            indexed_entry.entry.number,
            indexed_entry.entry.role,
            indexed_entry.entry.at.timestamp(),
            indexed_entry.entry.speaker,
            indexed_entry.word_count,
        )
        for indexed_entry in indexed
    ]
    return rank(question, heads, word_hits, nearness or {}, traits, weights=weights, stated=stated)


def order(
    indexed: list[IndexedEntry], word_hits: WordHits = NO_WORDS, nearness: dict[int, float] | None = None
) -> list[int]:
    return [candidate.number for candidate in ranked(indexed, word_hits, nearness)]


def test_without_vectors_the_words_decide() -> None:
    indexed = entries("It leaks since Monday.", "It leaked on Monday.")
    assert order(indexed, WordHits({2: 4.0, 1: 1.0}, {})) == [2, 1]


def test_vectors_decide_between_entries_that_share_no_word_with_the_question() -> None:
    indexed = entries("Water on the cellar floor.", "Bread and milk, please.")
    assert order(indexed, nearness={1: 0.2, 2: 0.6}) == [2, 1]


def test_what_only_asks_comes_after_what_tells() -> None:
    indexed = entries("Does the boiler leak there?", "The boiler leaks there now.")
    word_hits = WordHits({1: 2.0, 2: 2.0}, {})
    assert order(indexed, word_hits) == [2, 1]


def test_an_entry_among_hits_comes_before_the_same_alone() -> None:
    together = entries("The boiler, again.", "The boiler, again.", "The boiler, again.")
    alone = entries("The boiler, again.", conversation="c2", first=4)
    word_hits = WordHits(dict.fromkeys((1, 2, 3, 4), 2.0), {})
    assert order([*alone, *together], word_hits)[-1] == 4


def test_a_word_of_agreement_comes_last() -> None:
    indexed = entries("Ok.", "The plumber found a crack in the pipe behind the wall and closed it.")
    assert order(indexed, WordHits({}, {1: 3.0, 2: 3.0})) == [2, 1]


def test_what_only_repeats_the_question_comes_after_what_says_more() -> None:
    indexed = entries("The boiler did leak, the boiler.", "A crack in the pipe behind the wall.")
    assert order(indexed, WordHits({1: 3.0, 2: 3.0}, {})) == [2, 1]


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("When did the boiler leak?", "It leaked on Monday, at night.", "It leaked a bit, and badly."),
        ("How much did the boiler cost?", "They want 640 for it, they say.", "They want too much, they say."),
        ("Who mended the boiler?", "It was a friend of Mr. Olsen there.", "It was a friend of the plumber."),
    ],
)
def test_what_has_the_form_of_the_answer_comes_first(question: str, answer: str, other: str) -> None:
    indexed = entries(answer, other)
    best = ranked(indexed, WordHits({1: 2.0, 2: 2.0}, {}), question=read_question(question))
    assert [candidate.number for candidate in best] == [1, 2]


def test_what_a_person_said_comes_first_if_the_question_says_i() -> None:
    user, agent = entries("The boiler leaked there.", "The boiler leaked there.")
    agent = replace(agent, entry=replace(agent.entry, role="agent"))
    word_hits = WordHits({1: 2.0, 2: 2.0}, {})
    (first, second) = ranked([user, agent], word_hits, question=read_question("What did I say of the boiler?"))
    assert first.number == user.entry.number and second.features.speaker == 0.0


def test_what_the_agent_said_comes_first_if_the_question_asks_for_that() -> None:
    user, agent = entries("The boiler leaked there.", "The boiler leaked there.")
    agent = replace(agent, entry=replace(agent.entry, role="agent"))
    word_hits = WordHits({1: 2.0, 2: 2.0}, {})
    (first, _) = ranked([user, agent], word_hits, question=read_question("What did you tell me of the boiler?"))
    assert first.number == agent.entry.number


def test_what_a_named_person_said_comes_before_what_others_said() -> None:
    mara, olsen = entries("The boiler leaked there.", "The boiler leaked there.")
    olsen = replace(olsen, entry=replace(olsen.entry, speaker="Jan Olsen"))
    word_hits = WordHits({1: 2.0, 2: 2.0}, {})
    (first, _) = ranked([mara, olsen], word_hits, question=read_question("What did Olsen say of the boiler?"))
    assert first.number == olsen.entry.number


def test_a_statement_within_a_question_counts_as_told() -> None:
    asks, tells = (
        "Can you help me with the boiler plan?",
        "I'm worried that my $12.99 boiler plan ran out, can you help?",
    )
    indexed = entries(asks, tells)
    assert order(indexed, WordHits({1: 2.0, 2: 2.0}, {})) == [2, 1]


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("What does my boiler plan cost?", 1.0),
        ("What does the boiler plan cost?", 0.5),
        ("What did you suggest for my boiler?", 0.0),
    ],
)
def test_a_page_of_an_agent_counts_less_where_a_person_asks_of_themselves(question: str, page: float) -> None:
    (written,) = entries("boiler " * 400)
    written = replace(written, entry=replace(written.entry, role="agent"))
    (candidate,) = ranked([written], WordHits({1: 2.0}, {}), question=read_question(question))
    assert candidate.features.page == page and WEIGHTS.page < 0


def test_what_tells_of_the_named_day_comes_before_what_was_written_on_it() -> None:
    indexed = entries("The boiler is loud.", "The boiler is loud.", "The boiler is loud.")
    other_day = replace(indexed[1], entry=replace(indexed[1].entry, at=datetime(2026, 3, 9, 9, tzinfo=UTC)))
    question = read_question("What of the boiler on 4 March 2026?")
    day = date(2026, 3, 4)
    best = ranked([indexed[0], other_day, indexed[2]], question=question, stated={3: (Period(day, day),)})
    assert {candidate.number: candidate.features.day for candidate in best} == {3: 1.0, 1: 0.6, 2: 0.0}


def test_a_hit_counts_for_the_turns_near_it_less_with_each_turn_between() -> None:
    indexed = entries(*["So it is."] * 4, "The boiler leaks.", *["So it is."] * 2)
    indexed += entries("So it is.", conversation="c2", first=8)
    near = {
        candidate.number: round(candidate.features.near, 3) for candidate in ranked(indexed, WordHits({5: 2.0}, {}))
    }
    assert near == {1: 0.512, 2: 0.64, 3: 0.8, 4: 1.0, 5: 0.0, 6: 1.0, 7: 0.8, 8: 0.0}


def test_turns_that_were_not_found_count_as_turns_between() -> None:
    indexed = [entry for entry in entries(*["The boiler."] * 4) if entry.position in (0, 3)]
    best = ranked(indexed, WordHits({1: 2.0}, {}))
    assert {candidate.number: round(candidate.features.near, 3) for candidate in best} == {1: 0.0, 4: 0.64}


def test_texts_are_read_of_the_best_only() -> None:
    indexed = entries(*["What a long and new story this is."] * 200)
    best = order(indexed, WordHits({number: float(number) for number in range(1, 201)}, {}))
    assert best == list(range(200, 200 - READ, -1))


@pytest.mark.parametrize("name", Features._fields)
def test_every_feature_is_a_share(name: str) -> None:
    texts = ("Monday at 9:00, ok?", "", "boiler " * 5_000)
    word_hits = WordHits({1: 3.0, 3: 0.5}, {1: 9.0, 2: 1.0})
    for candidate in ranked(entries(*texts), word_hits, {1: 0.9, 3: -0.9}):
        assert 0.0 <= candidate.features._asdict()[name] <= 1.0


def test_a_score_is_the_sum_of_the_weighted_features() -> None:
    weights = Features(*([0.0] * len(WEIGHTS)))._replace(form=2.0)
    (candidate,) = ranked(entries("It leaked on Monday."), weights=weights)
    assert candidate.score == 2.0 and WEIGHTS.meaning == 1.0
