"""What a question is read as."""

import pytest

from errand.engine.memory.ranking.question import count_new_words, has_asked_form, read_question
from errand.engine.memory.ranking.traits import traits_of


def test_words_that_say_nothing_are_left_out_and_the_others_keep_their_order() -> None:
    question = read_question("What did Mara's sister say about the leaking boiler?")
    assert question.terms == ("mara", "sister", "leaking", "boiler")


@pytest.mark.parametrize("question", ["When did the boiler leak?", "How long did it take?", "Wann war das undicht?"])
def test_a_question_for_a_time_is_told_from_others(question: str) -> None:
    assert read_question(question).asks_time and not read_question("Who mended the boiler?").asks_time


@pytest.mark.parametrize(
    ("question", "text", "has"),
    [
        ("How many pipes are there?", "There are 4 of them.", True),
        ("How many pipes are there?", "There are some.", False),
        ("Wie viele Rohre sind da?", "Es sind 4.", True),
        ("Who mended it?", "I think Olsen did.", True),
        ("Who mended Mara's boiler?", "The one of Mara. He did.", False),
        ("What is the boiler made of?", "Olsen mended 4 of them on Friday.", False),
        ("When was it mended?", "Olsen mended 4 of them on Friday.", True),
    ],
)
def test_a_text_has_the_form_of_the_answer_or_not(question: str, text: str, has: bool) -> None:
    assert has_asked_form(read_question(question), traits_of(text)) == has


def test_new_words_of_a_text_are_counted_without_those_of_the_question_and_common_ones() -> None:
    question = read_question("Who mended Mara's boiler?")
    traits = traits_of("Mara's boiler was mended by the plumber, the plumber of the school.")
    assert count_new_words(question, traits) == 2
    assert count_new_words(question, traits_of("")) == 0


def test_a_question_is_about_the_one_who_asks_if_it_says_so() -> None:
    assert read_question("Where's my key?").is_about_asker and read_question("What did I’ve said?").is_about_asker
    assert read_question("Wo habe ich den Schlüssel?").is_about_asker
    assert not read_question("Where is Mara's key?").is_about_asker


@pytest.mark.parametrize(
    "question",
    [
        "Which book did you recommend for the train?",
        "Can you remind me of the shop that you mentioned?",
        "In our previous conversation there was a list of shops; which was the third?",
        "What was in your draft?",
        "Welches Buch hast du mir empfohlen?",
    ],
)
def test_a_question_asks_for_what_the_agent_said(question: str) -> None:
    assert read_question(question).asks_agent


@pytest.mark.parametrize(
    "question", ["Can you recommend a hotel for my trip?", "What did you two eat?", "Kannst du mir ein Buch empfehlen?"]
)
def test_a_question_that_asks_for_something_new_does_not_ask_for_what_the_agent_said(question: str) -> None:
    assert not read_question(question).asks_agent


def test_a_question_of_any_length_is_read_in_bounded_time() -> None:
    assert len(read_question("on 5 march in may of " * 50_000).terms) <= 64
