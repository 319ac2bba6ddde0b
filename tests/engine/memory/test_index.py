"""The index of words: what is removed is gone, also from its neighbours, and what is left stays findable."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errand.engine.core.errors import InvalidParams
from errand.engine.memory import vector_states
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import IndexedEntry, WordIndex
from errand.engine.memory.index_thread import IndexThread, IndexUnavailable
from errand.engine.memory.vectors.base import VectorFilter
from errand.engine.memory.words.hits import word_hits
from errand.protocol.memory import MemoryPruneParams

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
WORDS = ("kettle", "roof", "fence", "boat")


def entry(number: int, text: str, conversation: str = "c1", folder: str = "") -> MemoryEntry:
    at = START + timedelta(hours=number)
    return MemoryEntry(number, f"n{number}", conversation, "Mara", "user", at, text, folder)


@pytest.fixture
def index(tmp_path: Path) -> WordIndex:
    return WordIndex(tmp_path / "memory.db")


def test_a_short_entry_is_found_by_its_neighbours_until_they_are_removed(index: WordIndex) -> None:
    index.add([entry(1, "Which colour has the fence?"), entry(2, "Dark green."), entry(3, "I like the boat.")])
    assert set(word_hits(("fence",), index).window) == {1, 2}
    assert set(word_hits(("boat",), index).window) == {2, 3}
    index.remove([1])
    assert word_hits(("fence",), index).own == word_hits(("fence",), index).window == {}
    assert set(word_hits(("boat",), index).window) == {2, 3}
    index.add([entry(4, "And the roof?")])
    assert set(word_hits(("roof",), index).window) == {3, 4}


@given(
    st.lists(st.tuples(st.sampled_from(("c1", "c2")), st.lists(st.sampled_from(WORDS), max_size=60)), max_size=12),
    st.sets(st.integers(1, 12)),
)
def test_what_is_removed_is_gone_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, list[str]]], removed: set[int]
) -> None:
    index = WordIndex(tmp_path_factory.mktemp("index") / "memory.db")
    entries = [entry(number, " ".join(entry_words), name) for number, (name, entry_words) in enumerate(texts, 1)]
    index.add(entries)
    index.remove(removed)
    for word in WORDS:
        assert set(word_hits((word,), index).own) == {
            stored.number for stored in entries if stored.number not in removed and word in stored.text
        }
    index.remove(stored.number for stored in entries)
    for word in WORDS:
        assert word_hits((word,), index).window == {}
    index.close()


def test_what_was_removed_is_not_in_the_file_once_it_is_compact(index: WordIndex, tmp_path: Path) -> None:
    index.add([entry(number, f"The wilhelmina{number} file") for number in range(50)])
    index.remove(range(50))
    index.compact_if_loose()
    assert b"wilhelmina" not in (tmp_path / "memory.db").read_bytes()
    assert (tmp_path / "memory.db-wal").stat().st_size < 16_384  # the note that it is compact


def test_numbers_of_removed_entries_are_not_given_again(index: WordIndex) -> None:
    assert index.next_number() == 1
    index.add([entry(1, "one"), entry(2, "two")])
    index.remove([2])
    assert index.next_number() == 3


def test_a_filter_lets_through_what_fulfils_all_conditions(index: WordIndex) -> None:
    index.add([entry(number, "kettle", f"c{number % 2}", f"/work/{number % 3}") for number in range(12)])

    def found(where: VectorFilter) -> set[int]:
        return set(word_hits(("kettle",), index, where).own)

    assert found(VectorFilter(conversations=("c1",), folders=("/work/0",))) == {3, 9}
    assert found(VectorFilter(not_conversations=("c1",), folders=("/work/0", "/work/1"))) == {0, 4, 6, 10}
    after, before = START + timedelta(hours=3), START + timedelta(hours=5)
    assert found(VectorFilter(after=after.timestamp(), before=before.timestamp())) == {3, 4}
    assert found(VectorFilter(kinds=("tool",))) == set()


def test_states_of_vectors_are_noted_for_this_index_alone_and_never_undo_a_pruning(index: WordIndex) -> None:
    index.add([entry(1, "kettle"), entry(2, "roof"), entry(3, "fence")])
    assert vector_states.prune(MemoryPruneParams(keep=2), index) == (1,)
    assert vector_states.set_states(index.identity(), (1, 2, 9), "made", index) == {2}
    assert vector_states.set_states("another", (3,), "made", index) == {3}
    assert vector_states.counts(index) == {"pruned": 1, "made": 1, "wanted": 1}
    identity, waiting = vector_states.waiting_entries(10, index)
    assert (identity, [indexed.entry.number for indexed in waiting]) == (index.identity(), [3])


async def test_work_that_fails_changes_nothing_and_the_index_goes_on(tmp_path: Path) -> None:
    thread = IndexThread(tmp_path / "memory.db")
    await thread.run(lambda index: index.add([entry(1, "kettle")]))
    with pytest.raises(InvalidParams):
        await thread.run(lambda index: index.add([entry(2, "roof"), entry(2**70, "too large")]))
    assert await thread.run(lambda index: index.next_number()) == 2
    assert (await _all(thread)) == [1]
    await thread.close()


async def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    thread = IndexThread(tmp_path / "memory.db")
    await thread.run(lambda index: index.add([entry(1, "kettle")]))
    await thread.run(lambda index: index.connection.execute("PRAGMA max_page_count = 40").fetchone())
    with pytest.raises(IndexUnavailable, match="full"):
        await thread.run(lambda index: index.add([entry(number, f"roof {number} " * 500) for number in range(2, 99)]))
    assert (await _all(thread)) == [1]  # opened anew, with the space that there is now
    await thread.run(lambda index: index.add([entry(2, "roof")]))
    assert thread.generation == 0
    await thread.close()


async def _all(thread: IndexThread) -> list[int]:
    indexed_entries: list[IndexedEntry] = await thread.run(lambda index: index.select("true ORDER BY number", ()))
    return [indexed.entry.number for indexed in indexed_entries]
