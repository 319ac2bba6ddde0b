"""Times as they are typed after an option."""

from datetime import UTC, datetime, timedelta

import pytest

from errand.cli.arguments import UsageError, past_moment


def test_days_months_and_years_begin_at_midnight_of_this_machine() -> None:
    assert past_moment("2026-11-02") == datetime(2026, 11, 2).astimezone()
    assert past_moment("2026-11") == datetime(2026, 11, 1).astimezone()
    assert past_moment("2026") == datetime(2026, 1, 1).astimezone()
    assert past_moment("2026-11-02T10:30:00+00:00") == datetime(2026, 11, 2, 10, 30, tzinfo=UTC)


def test_ages_are_counted_from_now_and_days_have_names() -> None:
    now = datetime.now(UTC)
    assert abs(now - past_moment("30d") - timedelta(days=30)) < timedelta(minutes=1)
    assert abs(now - past_moment("8h") - timedelta(hours=8)) < timedelta(minutes=1)
    assert past_moment("Today") <= now < past_moment("today") + timedelta(days=1, hours=1)
    assert past_moment("yesterday") < past_moment("today")


@pytest.mark.parametrize("text", ["", "soon", "2026-13", "2026-02-30", "999999d", "0001", "-1d", "2026-11-02 and more"])
def test_anything_else_is_answered_with_advice(text: str) -> None:
    with pytest.raises(UsageError, match="Use an age such as 8h or 30d"):
        past_moment(text)
