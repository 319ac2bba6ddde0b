"""Days in questions, counted from today, and in entries, counted from the day of the entry."""

from datetime import date, timedelta

import pytest

from errand.engine.memory.ranking.days import NamedDays, named_days, stated_days

# A Wednesday.
TODAY = date(2026, 3, 18)


def days_of(question: str, today: date | None = TODAY) -> NamedDays:
    return named_days(question.lower(), today)


@pytest.mark.parametrize(
    ("text", "day", "other"),
    [
        ("what broke on 2026-03-05?", date(2026, 3, 5), date(2025, 3, 5)),
        ("what broke on the 5th of March?", date(2024, 3, 5), date(2024, 3, 6)),
        ("what broke on March 5th, 2026", date(2026, 3, 5), date(2024, 3, 5)),
        ("was ging am 5. März 2026 kaputt?", date(2026, 3, 5), date(2024, 3, 5)),
        ("was ging am 05.03.2026 kaputt?", date(2026, 3, 5), date(2024, 3, 5)),
        ("was ging am 5.3. kaputt?", date(2024, 3, 5), date(2024, 5, 3)),
        ("what did we plan in May 2026?", date(2026, 5, 31), date(2025, 5, 31)),
        ("was war im Mai geplant?", date(2025, 5, 31), date(2025, 6, 1)),
        ("what did we plan in the second week of March?", date(2026, 3, 8), date(2026, 3, 15)),
        ("what happened in the last week of February?", date(2026, 2, 25), date(2026, 2, 20)),
        ("what did she say on Tuesday?", date(2026, 11, 24), date(2026, 11, 25)),
        ("what was on the Friday in March?", date(2026, 3, 6), date(2026, 4, 3)),
        ("what was on the Friday in March?", date(2026, 3, 13), date(2026, 3, 12)),
    ],
)
def test_days_are_read_from_dates_weeks_months_and_weekdays(text: str, day: date, other: date) -> None:
    days = days_of(text)
    assert days and days.mean(day) and not days.mean(other)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what did I do last Friday?", date(2026, 3, 13), date(2026, 3, 13)),
        ("what did I do last Wednesday?", date(2026, 3, 11), date(2026, 3, 11)),
        ("what is on this Friday?", date(2026, 3, 20), date(2026, 3, 20)),
        ("what is on next Wednesday?", date(2026, 3, 25), date(2026, 3, 25)),
        ("was war letzten Freitag?", date(2026, 3, 13), date(2026, 3, 13)),
        ("was ist nächsten Montag?", date(2026, 3, 23), date(2026, 3, 23)),
        ("what did I eat yesterday?", date(2026, 3, 17), date(2026, 3, 17)),
        ("the day before yesterday?", date(2026, 3, 16), date(2026, 3, 16)),
        ("was habe ich vorgestern gegessen?", date(2026, 3, 16), date(2026, 3, 16)),
        ("what is on the day after tomorrow?", date(2026, 3, 20), date(2026, 3, 20)),
        ("was ist morgen?", date(2026, 3, 19), date(2026, 3, 19)),
        ("what happened last week?", date(2026, 3, 9), date(2026, 3, 15)),
        ("was war vergangene Woche?", date(2026, 3, 9), date(2026, 3, 15)),
        ("where was I last weekend?", date(2026, 3, 14), date(2026, 3, 15)),
        ("the Friday of last week", date(2026, 3, 13), date(2026, 3, 13)),
        ("what did I buy last month?", date(2026, 2, 1), date(2026, 2, 28)),
        ("what did I buy ten days ago?", date(2026, 3, 8), date(2026, 3, 8)),
        ("what did I buy two weeks ago?", date(2026, 3, 2), date(2026, 3, 6)),
        ("was war vor zwei Wochen?", date(2026, 3, 2), date(2026, 3, 6)),
        ("was war vor drei Tagen?", date(2026, 3, 15), date(2026, 3, 15)),
        ("what did I buy in the past two weeks?", date(2026, 3, 4), TODAY),
    ],
)
def test_days_count_from_today(text: str, first: date, last: date) -> None:
    days = days_of(text)
    every = [TODAY + timedelta(days=step) for step in range(-100, 100)]
    assert [day for day in every if days.mean(day)] == [
        first + timedelta(days=step) for step in range((last - first).days + 1)
    ]


def test_without_today_a_relative_weekday_is_any_and_other_relative_days_are_none() -> None:
    assert days_of("what did I do last Friday?", None) == NamedDays(weekdays=(4,))
    assert not days_of("what did I do yesterday, and two weeks ago?", None)


@pytest.mark.parametrize(
    "text", ["may I march on?", "what is the mark of 30 february?", "version 2.3.4", "guten Morgen", "am Morgen", ""]
)
def test_verbs_and_days_that_do_not_exist_are_no_dates(text: str) -> None:
    assert not days_of(text)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("I went climbing yesterday.", date(2026, 3, 17), date(2026, 3, 17)),
        ("Vorgestern war ich klettern.", date(2026, 3, 16), date(2026, 3, 16)),
        ("Letzten Freitag war ich klettern.", date(2026, 3, 13), date(2026, 3, 13)),
        ("We moved two weeks ago.", date(2026, 3, 2), date(2026, 3, 6)),
        ("Last week I was in Ghent.", date(2026, 3, 9), date(2026, 3, 15)),
        ("The appointment is on 2 January.", date(2026, 1, 2), date(2026, 1, 2)),
        ("It was on 30 December.", date(2025, 12, 30), date(2025, 12, 30)),
    ],
)
def test_an_entry_tells_of_days_that_count_from_its_own(text: str, first: date, last: date) -> None:
    (period,) = stated_days(text, TODAY)
    assert (period.first, period.last) == (first, last)


def test_a_weekday_alone_is_the_one_before_and_the_one_after() -> None:
    before, after = stated_days("We met on Friday.", TODAY)
    assert (before.first, after.first) == (date(2026, 3, 13), date(2026, 3, 20))


def test_an_entry_does_not_tell_of_whole_months_or_of_no_day() -> None:
    assert stated_days("It was like that all last year, and in May.", TODAY) == ()
    assert stated_days("The boiler leaks.", TODAY) == ()


@pytest.mark.parametrize("today", [date.min, date.max])
@pytest.mark.parametrize("text", ["last friday", "next friday", "last month", "next year", "999 years ago", "0-1-1"])
def test_days_beyond_the_calendar_are_no_error(text: str, today: date) -> None:
    assert isinstance(days_of(text, today), NamedDays)
    assert isinstance(stated_days(text, today), tuple)
