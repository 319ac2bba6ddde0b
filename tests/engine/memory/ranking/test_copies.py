"""Equal and nearly equal texts among what is matches."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.ranking.copies import newest_of_each
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.ranking.ranking import Candidate
from tests.engine.memory.words.conftest import Memory

CLEAN = "On branch main\nnothing to commit, working tree clean"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    index = IndexThread(tmp_path / "memory.db")
    yield Memory(index)
    await index.close()


async def candidates(memory: Memory, question: str, limit: int = 10) -> tuple[Candidate, ...]:
    return (await memory.search.find(read_question(question), limit, CancelSignal())).candidates


@pytest.mark.parametrize("count", [10, 400])
async def test_copies_stand_once_as_the_newest_and_leave_room_for_others(memory: Memory, count: int) -> None:
    await memory.add("The hook refuses a commit without a signature, so there was nothing to push.", role="agent")
    await memory.add(*(CLEAN + " " * (number % 3) for number in range(count)), role="tool", speaker="run_command")
    await memory.add("Commit the tide tables before Friday.", "There was much to commit after the move.")
    texts = await memory.find("Was there nothing to commit?", 5)
    assert len([text for text in texts if text.strip() == CLEAN]) == 1
    assert len(texts) == 4
    (matches,) = [
        candidate
        for candidate in await candidates(memory, "nothing to commit")
        if "working tree" in candidate.entry.entry.text
    ]
    assert matches.entry.entry.number == count + 1
    assert await memory.index.run(lambda index: index.count_texts(matches.all_texts)) == {
        matches.entry.text_number: count
    }


async def test_results_that_differ_in_a_duration_stand_once_too(memory: Memory) -> None:
    for seconds in (12, 34, 56):
        await memory.add(
            f"All checks of the project passed: 48 tests were run on this machine in 0.{seconds} seconds, none failed.",
            role="tool",
        )
    (matches,) = await candidates(memory, "Did the tests pass?")
    assert (matches.entry.entry.number, len(matches.all_texts)) == (3, 3)


async def test_of_two_statements_about_one_thing_the_newer_stands_first_and_the_older_names_it(memory: Memory) -> None:
    await memory.add("My phone plan costs $12.99 a month.", "The phone rings.")
    await memory.add("My phone plan costs $14.99 a month.", "My phone plan costs $9.99 a month!")
    matches = await candidates(memory, "How much is my phone plan a month?")
    assert [(candidate.entry.entry.number, candidate.newer) for candidate in matches[:3]] == [(4, 0), (3, 4), (1, 3)]
    assert [candidate.score for candidate in matches] == sorted(
        (candidate.score for candidate in matches), reverse=True
    )


async def test_what_the_question_names_is_not_taken_for_something_older(memory: Memory) -> None:
    await memory.add("The key of room 12 hangs in the hall.", "The key of room 13 hangs in the hall.")
    matches = await candidates(memory, "Where is the key of room 12?")
    assert [(candidate.entry.entry.number, candidate.newer) for candidate in matches] == [(1, 0), (2, 0)]


async def test_what_others_say_or_what_is_about_another_thing_is_not_newer(memory: Memory) -> None:
    await memory.add("Tea with milk and sugar is best.", speaker="Ilse")
    await memory.add("Tea with milk and honey is best.", speaker="Ruben")
    await memory.add("Ilse likes tea with milk.", "Ruben likes tea with milk.", speaker="Mara")
    await memory.add("The soup needs salt.", speaker="Ilse")
    await memory.add("The soup needs salt.", speaker="Ruben")
    matches = await candidates(memory, "tea with milk, soup with salt")
    assert len(matches) == 6
    assert {candidate.newer for candidate in matches} == {0}


async def test_a_short_answer_stays_where_its_question_is(memory: Memory) -> None:
    await memory.add("Which colour do we paint the fence?", "Dark green.", session="fence")
    await memory.add("Which colour has your bicycle?", "Dark green.", session="bicycle")
    matches = await candidates(memory, "Which colour do we paint the fence?")
    (answer,) = [candidate.entry.entry for candidate in matches if candidate.entry.entry.text == "Dark green."]
    assert answer.conversation_id == "fence"


async def test_of_equal_entries_the_newest_stands_where_the_first_stood(memory: Memory) -> None:
    await memory.add("There is nothing to commit.", "The kettle leaks.", "there is nothing  to commit", "Yes.", "Yes.")
    entries = await memory.index.run(lambda index: index.select("true ORDER BY number", ()))
    assert [indexed.entry.number for indexed in newest_of_each(entries, lambda entry: entry)] == [3, 2, 4, 5]
