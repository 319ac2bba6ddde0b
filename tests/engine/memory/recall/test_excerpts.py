"""Of a long text, the part that fits is shown."""

import pytest

from errand.engine.memory.recall.excerpts import excerpt


def test_of_a_long_text_the_part_with_the_words_is_shown() -> None:
    text = "Nothing here. " * 100 + "The kettle leaks at its spout. It is from Delft. " + "Nothing there. " * 100
    part = excerpt(text, ("kettle", "leak"), 120)
    assert part.startswith("… The kettle leaks at its spout.") and part.endswith(" …")
    assert len(part) <= 124


def test_without_such_words_the_part_with_the_nearest_meaning_is_shown() -> None:
    text = "Nothing here. " * 100 + "It drips at the spout. " + "Nothing there. " * 100
    terms = ("kettle", "leak")
    assert excerpt(text, terms, 120, text.index("It drips")).startswith("… It drips at the spout. Nothing there.")
    assert excerpt(text, terms, 120).startswith("Nothing here.")


@pytest.mark.parametrize("text", ["short", "x" * 5_000, "", "\n" * 5_000, "a b " * 2_000])
def test_any_text_has_a_part_of_bounded_length(text: str) -> None:
    assert len(excerpt(text, ("kettle",), 100)) <= 104
