"""The words of a message that say what it is about."""

import pytest

from errand.engine.memory.recall.message import is_identifier, parse_message


@pytest.mark.parametrize(
    "word",
    ["kTideBlue", "round_half_even_eur", "9187", "40001", "#0B6E99", "f3a91c7", "MX-4471-B", "318-K-55/24", "GPIO27"],
)
def test_names_and_numbers_that_people_make_up_are_identifiers(word: str) -> None:
    assert is_identifier(word)
    assert parse_message(f"What was it with {word}, again?").identifiers == (word,)


@pytest.mark.parametrize("word", ["2026", "14th", "250mm", "14:30", "2026-11-29", "12", "Tide", "DONE", "e", "9am"])
def test_amounts_days_and_words_are_none(word: str) -> None:
    assert not is_identifier(word)


def test_a_long_message_is_compared_as_a_whole_and_by_its_clauses() -> None:
    message = (
        "The boiler blinks since today, and the radiators are cold too. It is minus six degrees outside! Yes. What now?"
    )
    assert parse_message(message).parts == (
        message,
        "The boiler blinks since today,",
        "and the radiators are cold too.",
        "It is minus six degrees outside! Yes. What now?",
    )
    assert parse_message("What about the boiler?").parts == ("What about the boiler?",)
    assert len(parse_message("The boiler blinks since this morning, it seems.\n" * 50).parts) == 10


def test_names_have_a_capital_within_a_sentence() -> None:
    message = "Petra comes on Sunday. Bake something for Minka's owner, and for the people of ÖBB"
    assert parse_message(message).names == {"sunday", "minka", "öbb"}


def test_its_terms_are_its_telling_words_in_either_language() -> None:
    assert parse_message("Where is the key of the boiler?").terms == ("key", "boiler")
    assert parse_message("Wo ist der Schlüssel für den Kessel und die Pumpe?").terms == (
        "schlüssel",
        "kessel",
        "pumpe",
    )
