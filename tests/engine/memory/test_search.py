"""Finding entries by full text, without a model."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.search import MemorySearch
from errand.protocol.blocks import MemoryRole

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Memory:
    def __init__(self, index: IndexThread) -> None:
        self.index = index
        self.search = MemorySearch(index)
        self._count = 0

    async def add(self, *texts: str, session: str = "c1", speaker: str = "Mara", role: MemoryRole = "user") -> None:
        """Entries on days that follow each other; their ids are their numbers from 1."""
        entries: list[MemoryEntry] = []
        for text in texts:
            self._count += 1
            at = START + timedelta(days=self._count - 1)
            entries.append(MemoryEntry(self._count, str(self._count), session, speaker, role, at, text))
        await self.index.run(lambda index: index.add(entries))

    async def find(self, question: str, limit: int = 10, today: date | None = None) -> list[str]:
        search_result = await self.search.find(read_question(question, today), limit, CancelSignal())
        return [candidate.entry.entry.id for candidate in search_result.candidates]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    index = IndexThread(tmp_path / "memory.db")
    yield Memory(index)
    await index.close()


async def test_the_entry_with_the_rarest_words_comes_first(memory: Memory) -> None:
    await memory.add("The printer is out of toner.", "The printer in the hall works.", "Paper for the hall is ordered.")
    await memory.add(*(f"The printer printed page {page}." for page in range(30)), session="c2")
    assert (await memory.find("Which printer has no toner?"))[0] == "1"


async def test_words_are_found_in_their_other_forms(memory: Memory) -> None:
    await memory.add("We booked the ferries.", "The weather is fine.")
    assert (await memory.find("ferry bookings"))[0] == "1"


async def test_a_short_answer_is_found_by_the_words_of_its_question(memory: Memory) -> None:
    await memory.add("Which colour do we paint the fence?", "Dark green.", "Fine.")
    await memory.add("The fence is 12 m long.", session="c2")
    assert "2" in await memory.find("colour of the fence", 3)


async def test_an_entry_of_the_day_that_is_asked_for_comes_before_others(memory: Memory) -> None:
    await memory.add(*["The backup failed."] * 5)
    assert (await memory.find("Which backup failed on 4 March 2026?"))[0] == "3"


@pytest.mark.parametrize("question", ["What was the weather last Friday?", "Wie war das Wetter letzten Freitag?"])
async def test_a_relative_day_is_found_also_by_entries_without_a_word_of_the_question(
    memory: Memory, question: str
) -> None:
    await memory.add(*(f"Stage {number}: rain and wind." for number in range(30)))
    assert (await memory.find(question, today=date(2026, 3, 17)))[0] == "12"


async def test_what_tells_of_a_day_comes_before_what_was_written_on_it(memory: Memory) -> None:
    await memory.add("The backup is dull.", "The backup is dull, too.", "The backup? A dull thing.")
    await memory.add("Yesterday the backup failed.", "Gestern war das Backup langsam.", "It runs now.")
    assert (await memory.find("What was it with the backup on 4 March 2026?"))[:2] == ["4", "3"]
    assert (await memory.find("Was war mit dem Backup am 5. März 2026?"))[0] == "5"


async def test_days_leave_with_the_entries_that_tell_of_them(memory: Memory) -> None:
    await memory.add("Yesterday the backup failed.", "It runs now.")
    await memory.index.run(lambda index: index.remove((1,)))
    assert await memory.index.run(lambda index: index.stated_days((1, 2))) == {}
    assert await memory.index.run(lambda index: index.traits((1, 2)).keys()) == {2}


async def test_who_is_named_in_the_question_comes_before_others(memory: Memory) -> None:
    await memory.add("The soup needs more salt.", speaker="Ilse")
    await memory.add("The soup needs more salt.", session="c2", speaker="Ruben")
    assert (await memory.find("What did Ruben say about the soup?"))[0] == "2"


async def test_what_is_added_twice_is_there_once(memory: Memory) -> None:
    entry = MemoryEntry(1, "1", "c1", "Mara", "user", START, "The kettle leaks.")
    for _ in range(2):
        await memory.index.run(lambda index: index.add([entry]))
    assert await memory.find("kettle") == ["1"]


@pytest.mark.parametrize("question", ["", "the of and", '"unclosed AND (NEAR', "\0", "x" * 100_000, "🦊", "a* OR b:c"])
async def test_any_question_is_answered(memory: Memory, question: str) -> None:
    await memory.add("The kettle leaks.")
    assert len(await memory.find(question)) <= 1


async def test_searches_at_the_same_time_do_not_disturb_each_other(memory: Memory) -> None:
    await memory.add("The kettle leaks.", "The roof is new.")
    answers = await asyncio.gather(*(memory.find(word) for word in ("kettle", "roof") * 20))
    assert [hit_ids[0] for hit_ids in answers] == ["1", "2"] * 20


async def test_the_index_is_there_again_after_it_was_closed(tmp_path: Path) -> None:
    for _ in range(2):
        memory = Memory(IndexThread(tmp_path / "memory.db"))
        await memory.add("The kettle leaks.")
        assert await memory.find("kettle") == ["1"]
        await memory.index.close()
