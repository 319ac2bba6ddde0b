"""What an agent is given unasked has to bear on the message."""

from datetime import UTC, datetime

import pytest

from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.relevance import bears_on, excerpt

ENTRY = MemoryEntry(
    7, "n7", "c1", "Mara", "user", datetime(2026, 3, 2, tzinfo=UTC), "The tide tables of the harbour are in tides.csv."
)


@pytest.mark.parametrize(
    ("message", "cosine", "bears"),
    [
        ("where are the tide tables?", 0.0, True),
        ("harbour tides, tables", 0.0, True),
        ("which tables did we paint in the kitchen last summer?", 0.0, False),
        ("when does the water rise?", 0.5, True),
        ("when does the water rise?", 0.1, False),
        ("go on", 0.0, False),
        ("", 0.0, False),
    ],
)
def test_it_has_a_near_meaning_or_most_of_the_telling_words(message: str, cosine: float, bears: bool) -> None:
    assert bears_on(read_question(message), ENTRY, {7: cosine}) is bears


def test_of_a_long_text_the_part_with_the_words_is_shown() -> None:
    text = "Nothing here. " * 100 + "The kettle leaks at its spout. It is from Delft. " + "Nothing there. " * 100
    part = excerpt(text, read_question("where does the kettle leak?"), 120)
    assert part.startswith("… The kettle leaks at its spout.") and part.endswith(" …")
    assert len(part) <= 124


def test_without_such_words_the_part_with_the_nearest_meaning_is_shown() -> None:
    text = "Nothing here. " * 100 + "It drips at the spout. " + "Nothing there. " * 100
    question = read_question("where does the kettle leak?")
    assert excerpt(text, question, 120, text.index("It drips")).startswith("… It drips at the spout. Nothing there.")
    assert excerpt(text, question, 120).startswith("Nothing here.")


@pytest.mark.parametrize("text", ["short", "x" * 5_000, "", "\n" * 5_000, "a b " * 2_000])
def test_any_text_has_a_part_of_bounded_length(text: str) -> None:
    assert len(excerpt(text, read_question("the kettle"), 100)) <= 104
