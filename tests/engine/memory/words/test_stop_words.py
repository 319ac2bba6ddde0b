"""Stop words: the language of a question, and what is left of it."""

import pytest

from errand.engine.memory.ranking.question import read_question


@pytest.mark.parametrize(
    ("question", "language", "terms"),
    [
        ("Where did we put the tide tables?", "en", ("put", "tide", "tables")),
        ("Wo haben wir die Gezeitentabellen hingelegt?", "de", ("gezeitentabellen", "hingelegt")),
        ("Où est la clé de la cave ?", "fr", ("clé", "cave")),
        ("¿Dónde está la llave del sótano?", "es", ("llave", "sótano")),
        ("Dove sono le chiavi della cantina?", "it", ("chiavi", "cantina")),
        ("Onde está a chave da adega?", "pt", ("chave", "adega")),
        ("Waar is de sleutel van de kelder?", "nl", ("sleutel", "kelder")),
        ("tide tables", "en", ("tide", "tables")),
    ],
)
def test_stop_words_are_those_of_the_language_of_the_question(
    question: str, language: str, terms: tuple[str, ...]
) -> None:
    parsed = read_question(question)
    assert (parsed.language, parsed.terms) == (language, terms)


def test_a_word_that_is_a_stop_word_in_another_language_alone_is_kept() -> None:
    assert read_question("When did the old printer die?").terms == ("old", "printer", "die")
