"""What bears on a message, in a store of words and of given cosines."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import WordIndex
from errand.engine.memory.recall.message import parse_message
from errand.engine.memory.recall.relevance import Nearest, quoted_last, relevant_entries
from errand.engine.memory.vectors.base import VectorFilter, VectorHit
from errand.protocol.blocks import MemoryRole

AT = datetime(2026, 3, 2, tzinfo=UTC)
CHATTER = [
    ("The tram was late again and so was I", "That happens on Mondays, take the earlier one"),
    ("We painted the hall green in the end", "Green is a good choice for a hall without windows"),
    ("My aunt sends her regards from Malmö", "How kind of her, shall I draft an answer?"),
    ("The meeting is moved to the small room", "I have changed the invitation of everybody"),
]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[WordIndex]:
    index = WordIndex(tmp_path / "memory.db")
    for number, (statement, answer) in enumerate(CHATTER):
        add(index, f"chatter-{number}", ("user", statement), ("agent", answer))
    yield index
    index.close()


def add(index: WordIndex, conversation_id: str, *turns: tuple[MemoryRole, str]) -> list[int]:
    numbers = [index.next_number() + offset for offset in range(len(turns))]
    index.add(
        MemoryEntry(number, f"n{number}", conversation_id, role, role, AT + timedelta(seconds=number), text)
        for number, (role, text) in zip(numbers, turns, strict=True)
    )
    return numbers


def given(
    index: WordIndex, message: str, nearest: Nearest | None = None, where: VectorFilter | None = None
) -> list[tuple[int, str]]:
    relevant = relevant_entries(parse_message(message), nearest or Nearest(), where, index)
    return [(entry.indexed.entry.number, entry.reason) for entry in relevant]


def by_cosine(index: WordIndex, cosines: dict[int, float]) -> Nearest:
    """The nearest entries of a message of one sentence; those that are not named are far."""
    hits = [VectorHit(number, cosines.get(number, 0.08)) for number in range(1, index.last_number() + 1)]
    return Nearest(tuple(sorted(hits, key=lambda hit: -hit.score)))


@pytest.mark.parametrize("name", ["kTideBlue", "9187", "40001"])
def test_an_identifier_that_few_entries_have_is_enough(index: WordIndex, name: str) -> None:
    number, answer = add(index, "c", ("user", f"{name} must stay as it is"), ("agent", "Then I leave it alone"))
    message = f"Go through everything and make it darker where you can. Careful with {name}, I forgot why."
    expected = [(number, "words"), (answer, "answer")]
    assert given(index, message) == expected
    assert given(index, message, by_cosine(index, {})) == expected


def test_an_identifier_that_many_entries_have_is_not(index: WordIndex) -> None:
    for number in range(6):
        add(index, f"c{number}", ("user", f"mail {number} about 40001 came in"))
    assert given(index, "What a day, my phone shows 40001 steps and I am tired") == []


def test_a_question_comes_with_its_answer_and_an_answer_with_its_question(index: WordIndex) -> None:
    numbers = add(
        index,
        "c",
        ("user", "what did we do about the sticky worktop?"),
        ("agent", "[shell: ls notes]"),
        ("tool", "worktop.md"),
        ("agent", "Three parts of hardwax oil to one part of turpentine"),
        ("user", "thanks, that is all"),
    )
    question, answer = numbers[0], numbers[3]
    near = by_cosine(index, {question: 0.7, numbers[1]: 0.3})
    message = "I have sanded the kitchen counter, how do I treat it now?"
    assert given(index, message, near) == [(question, "meaning"), (answer, "answer")]
    near = by_cosine(index, {answer: 0.7, numbers[2]: 0.3})
    assert given(index, message, near) == [(question, "question"), (answer, "meaning")]


def test_what_any_message_reaches_in_this_store_is_not_enough(index: WordIndex) -> None:
    numbers = [
        number
        for session in range(12)
        for number in add(index, f"c{session}", ("user", f"about tests {session}"), ("agent", f"about runs {session}"))
    ]
    message = "fix the failing one please, it broke this morning"
    crowd = dict.fromkeys(numbers, 0.42)
    assert given(index, message, by_cosine(index, crowd)) == []
    first, second = numbers[:2]
    assert given(index, message, by_cosine(index, crowd | {first: 0.75, second: 0.6}))[:2] == [
        (first, "meaning"),
        (second, "answer"),
    ]


def near_one_clause(index: WordIndex, number: int, cosine: float) -> Nearest:
    """The nearest entries of a message with two clauses, of which one is near an entry; as a whole it is not."""
    return Nearest(
        by_cosine(index, {number: 0.25}).message,
        (by_cosine(index, {number: cosine}).message, by_cosine(index, {}).message),
    )


def test_one_clause_that_an_entry_stands_out_for_is_enough(index: WordIndex) -> None:
    text = "The vet told us that the old cat may never get anything with permethrin"
    (number,) = add(index, "c", ("user", text))
    message = "She scratches behind the ears, and the shop has a shelf of drops and sprays"
    assert given(index, message, near_one_clause(index, number, 0.62)) == [(number, "meaning")]
    assert given(index, message, near_one_clause(index, number, 0.3)) == []


def test_what_a_person_said_in_a_sentence_needs_least(index: WordIndex) -> None:
    text = "a hinge of the big wardrobe is turned around since we moved it to this flat"
    message = "Which doors did I want to repair, and with what exactly?"
    roles: tuple[MemoryRole, ...] = ("user", "agent", "tool")
    numbers = [add(index, role, (role, text))[0] for role in roles]
    (short,) = add(index, "short", ("user", "the hinge is turned"))
    judged = [(number, given(index, message, near_one_clause(index, number, 0.6))) for number in (*numbers, short)]
    assert [number for number, entries in judged if entries] == [numbers[0]]


def test_a_name_that_few_entries_have_is_evidence(index: WordIndex) -> None:
    (number,) = add(index, "c", ("user", "we are six, and Petra cannot have hazelnuts or walnuts at all"))
    for name, expected in (("Petra", [(number, "meaning")]), ("she", [])):
        message = f"On Sunday {name} comes for coffee, and I want to bake something without cream"
        assert given(index, message, by_cosine(index, {number: 0.48})) == expected


def test_a_bare_order_of_then_is_left_out(index: WordIndex) -> None:
    order, answer = add(index, "c", ("user", "delete the folder"), ("agent", "I removed build/old, 3 files"))
    near = by_cosine(index, {order: 0.8, answer: 0.7})
    assert given(index, "which folder did we get rid of?", near) == [(answer, "answer")]


def test_what_tools_put_out_stands_last(index: WordIndex) -> None:
    number, *_ = add(index, "c", ("tool", "serial kTideBlue of the page"))
    other, answer = add(index, "d", ("user", "kTideBlue is measured"), ("agent", "I will not change it"))
    relevant = relevant_entries(parse_message("what is kTideBlue?"), Nearest(), None, index)
    assert [entry.indexed.entry.number for entry in quoted_last(relevant)] == [other, answer, number]


def test_nothing_of_conversations_that_are_left_out_counts(index: WordIndex) -> None:
    add(index, "own", ("user", "kTideBlue must stay"), ("agent", "As you wish"))
    assert given(index, "what about kTideBlue?", where=VectorFilter(not_conversations=("own",))) == []


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("潮汐表在哪里?", "我把潮汐表放在厨房的抽屉里了。"),
        ("Brandstaetter Schluessel", "Herr Brandstätter hat den Schlüssel."),
        ("roundHalfEven fences", "The fence is paid by round_half_even."),
    ],
)
def test_words_are_shared_in_any_script_and_spelling(index: WordIndex, message: str, text: str) -> None:
    (number,) = add(index, "c", ("user", text))
    add(index, "d", ("user", "明天下午去医院看牙。"), ("agent", "Der Maler kommt morgen."))
    assert [entry for entry, _ in given(index, message)] == [number]
