"""What a question is read as."""

from datetime import date

import pytest

from errand.engine.memory.ranking.question import (
    count_new_words,
    has_asked_form,
    read_question,
    share_of_questions,
    tells_time,
)


def test_words_that_say_nothing_are_left_out_and_the_others_keep_their_order() -> None:
    question = read_question("What did Mara's sister say about the leaking boiler?")
    assert question.terms == ("mara", "sister", "leaking", "boiler")


@pytest.mark.parametrize(
    ("text", "day", "other"),
    [
        ("what broke on 2026-03-05?", date(2026, 3, 5), date(2025, 3, 5)),
        ("what broke on the 5th of March?", date(2024, 3, 5), date(2024, 3, 6)),
        ("what broke on March 5th, 2026", date(2026, 3, 5), date(2024, 3, 5)),
        ("what did we plan in May 2026?", date(2026, 5, 31), date(2025, 5, 31)),
        ("what did we plan in the second week of March?", date(2026, 3, 8), date(2026, 3, 15)),
        ("what happened in the last week of February?", date(2026, 2, 25), date(2026, 2, 20)),
        ("what did she say on Tuesday?", date(2026, 11, 24), date(2026, 11, 25)),
    ],
)
def test_days_are_read_from_dates_weeks_months_and_weekdays(text: str, day: date, other: date) -> None:
    question = read_question(text)
    assert question.names_days and question.means(day) and not question.means(other)


@pytest.mark.parametrize("text", ["may I march on?", "what is the mark of 30 february?", "version 2.3.4", ""])
def test_verbs_and_days_that_do_not_exist_are_no_dates(text: str) -> None:
    assert not read_question(text).names_days


def test_a_question_for_a_time_is_told_from_others() -> None:
    assert read_question("When did the boiler leak?").asks_time
    assert read_question("How long did the repair take?").asks_time
    assert not read_question("Who mended the boiler?").asks_time


def test_texts_with_a_time_are_told_from_others() -> None:
    assert all(map(tells_time, ("See you on Friday", "it was at 14:30", "two weeks ago", "on 2026-03-05")))
    assert not any(map(tells_time, ("The boiler leaks", "four pipes", "")))


@pytest.mark.parametrize(
    ("question", "text", "has"),
    [
        ("How many pipes are there?", "There are 4 of them.", True),
        ("How many pipes are there?", "There are some.", False),
        ("Who mended it?", "I think Olsen did.", True),
        ("Who mended Mara's boiler?", "The one of Mara. He did.", False),
        ("What is the boiler made of?", "Olsen mended 4 of them on Friday.", False),
    ],
)
def test_a_text_has_the_form_of_the_answer_or_not(question: str, text: str, has: bool) -> None:
    assert has_asked_form(read_question(question), text) == has


def test_new_words_of_a_text_are_counted_without_those_of_the_question_and_common_ones() -> None:
    question = read_question("Who mended Mara's boiler?")
    assert count_new_words(question, "Mara's boiler was mended by the plumber, the plumber of the school.") == 2
    assert count_new_words(question, "") == 0


def test_a_question_is_about_the_one_who_asks_if_it_says_so() -> None:
    assert read_question("Where's my key?").is_about_asker and read_question("What did I’ve said?").is_about_asker
    assert not read_question("Where is Mara's key?").is_about_asker


def test_a_question_of_any_length_is_read_in_bounded_time() -> None:
    assert len(read_question("on 5 march in may of " * 50_000).terms) <= 64


@pytest.mark.parametrize(
    ("text", "share"),
    [("Does it leak?", 1.0), ("It leaks. Why?", 0.5), ("It leaks.", 0.0), ("", 0.0), ("Really?!\nYes: `a?b`.", 0.0)],
)
def test_how_much_of_a_text_asks_is_counted_by_sentences(text: str, share: float) -> None:
    assert share_of_questions(text) == share
