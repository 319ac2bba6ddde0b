"""What is stored of an entry's text for the ranking."""

import pytest

from errand.engine.memory.ranking.traits import Traits, decode_traits, statements, traits_of


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Does it leak?", []),
        ("It leaks. Why?", ["It leaks."]),
        ("I'm worried that my $12.99 plan ran out, can you help?", ["I'm worried that my $12.99 plan ran out"]),
        ("I bought a Gazelle last week - what lock would you take?", ["I bought a Gazelle last week "]),
        ("Meine Mutter verträgt kein Pflaster, was kann ich nehmen?", ["Meine Mutter verträgt kein Pflaster"]),
        ("Thanks! Can you tell me more, and what does it cost?", ["Thanks!"]),
        ("Which of these, my friend, is best?", []),
        ("My plan is the old one?", ["My plan is the old one?"]),
        ("", [""]),
    ],
)
def test_statements_are_told_from_what_only_asks(text: str, stated: list[str]) -> None:
    assert list(statements(text)) == stated


def test_texts_with_a_time_are_told_from_others() -> None:
    with_time = (
        "See you on Friday",
        "it was at 14:30",
        "two weeks ago",
        "on 2026-03-05",
        "am 5.3. um 9 Uhr",
        "gestern",
    )
    assert all(traits_of(text).tells_time for text in with_time)
    assert not any(traits_of(text).tells_time for text in ("The boiler leaks", "four pipes", ""))


def test_traits_are_read_as_they_were_stored() -> None:
    traits = traits_of("I asked Jan Olsen, who wants 640 for it. Is that much?")
    assert traits == Traits(("asked", "jan", "olsen", "wants", "640"), ("jan", "olsen"), False, True)
    assert decode_traits(traits.encode()) == traits
    assert decode_traits(traits_of("").encode()) == decode_traits("") == Traits()


def test_a_text_of_any_length_has_few_traits() -> None:
    traits = traits_of(" ".join(f"word{number} Name{number}" for number in range(100_000)))
    assert len(traits.encode()) < 1_000
