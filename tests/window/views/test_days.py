"""Headings of a list that goes back in time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.window.views.days import day_heading, short_time

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("moment", "heading", "time"),
    [
        (NOW, "Today", "09:30"),
        (datetime(2026, 11, 19, 23, 30, tzinfo=UTC), "Today", "00:30"),
        (NOW + timedelta(hours=20), "Today", "05:30"),
        (NOW - timedelta(days=1), "Yesterday", "09:30"),
        (NOW - timedelta(days=3), "Tuesday", "09:30"),
        (NOW - timedelta(days=8), "November 2026", "12 Nov"),
        (NOW - timedelta(days=400), "October 2025", "16 Oct"),
    ],
)
def test_a_moment_stands_under_its_day(moment: datetime, heading: str, time: str) -> None:
    assert (day_heading(moment, NOW), short_time(moment, NOW)) == (heading, time)
