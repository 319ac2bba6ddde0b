"""How long to wait between attempts, as the policy and the provider say."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from app.engine.models.failure import Failure
from app.engine.models.refusals import refusal, retry_after
from app.engine.models.retry import RetryPolicy

PASSES = Failure("overloaded", "overloaded", may_pass=True)


def test_delays_double_up_to_the_longest_and_differ_by_chance() -> None:
    policy = RetryPolicy(attempts=9, first_delay_s=1, longest_delay_s=8)
    delays = [policy.delay(attempt, PASSES) or 0 for attempt in range(1, 9)]
    for delay, middle in zip(delays, (1, 2, 4, 8, 8, 8, 8, 8), strict=True):
        assert middle * 0.75 <= delay <= middle * 1.25
    assert len(set(delays)) == len(delays)


def test_the_last_attempt_and_what_will_not_pass_have_no_delay() -> None:
    policy = RetryPolicy(attempts=2)
    assert policy.delay(2, PASSES) is None
    assert policy.delay(1, Failure("no", "no", may_pass=False)) is None


def test_a_wait_the_provider_names_is_kept_but_not_for_hours() -> None:
    policy = RetryPolicy()
    assert policy.delay(1, Failure("slow", "slow", True, 7.0)) == 7.0
    assert policy.delay(1, Failure("slow", "slow", True, 3600.0)) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_to_come_is_waited_for() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    wait = retry_after({"Retry-After": later})
    assert wait is not None
    assert 50 < wait <= 60


def test_what_a_server_says_is_quoted_short_and_without_keys() -> None:
    body = b'{"error": {"message": "key sk-abcdefghijkl is bad ' + b"x" * 9000 + b'"}}'
    text = refusal("Test", 400, {}, body).text
    assert "sk-abcdefghijkl" not in text
    assert len(text) < 400
