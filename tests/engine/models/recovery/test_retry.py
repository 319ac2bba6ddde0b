"""The delay between attempts, as the policy and the provider require."""

from datetime import UTC, datetime, timedelta

from errand.engine.models.base import RetryLater
from errand.engine.models.failures import AttemptFailure, FailureKind, failure_from_response
from errand.engine.models.recovery.retry import RetryPolicy

PASSES = AttemptFailure("overloaded", "overloaded", FailureKind.UNAVAILABLE)


def test_delays_double_up_to_the_maximum_with_jitter() -> None:
    policy = RetryPolicy(attempts=9, first_delay_s=1, longest_delay_s=8)
    delays = [policy.delay(attempt, PASSES) or 0 for attempt in range(1, 9)]
    for delay, middle in zip(delays, (1, 2, 4, 8, 8, 8, 8, 8), strict=True):
        assert middle * 0.75 <= delay <= middle * 1.25
    assert len(set(delays)) == len(delays)


def test_last_attempt_and_permanent_failures_have_no_delay() -> None:
    policy = RetryPolicy(attempts=2)
    assert policy.delay(2, PASSES) is None
    assert policy.delay(1, AttemptFailure("no", "no", FailureKind.NOT_USABLE)) is None


def test_short_retry_after_is_honoured_and_a_long_one_is_left_to_the_caller() -> None:
    policy = RetryPolicy()
    assert policy.delay(1, AttemptFailure("slow", "slow", FailureKind.UNAVAILABLE, 7.0)) == 7.0
    hour = AttemptFailure("slow", "usage limit", FailureKind.RATE_LIMITED, 3600.0)
    assert policy.delay(1, hour) is None
    later = policy.retry_later(hour)
    assert later is not None
    assert later.at is not None
    assert timedelta(seconds=3590) < later.at - datetime.now(UTC) <= timedelta(hours=1)


def test_rate_limit_without_a_time_is_retried_later_and_other_failures_are_not() -> None:
    policy = RetryPolicy()
    assert policy.retry_later(AttemptFailure("slow", "rate limit", FailureKind.RATE_LIMITED)) == RetryLater(
        "rate limit"
    )
    assert policy.retry_later(PASSES) is None
    assert policy.retry_later(AttemptFailure("no", "no", FailureKind.NOT_USABLE, 3600.0)) is None


def test_server_errors_are_quoted_short_and_without_keys() -> None:
    body = b'{"error": {"message": "key sk-abcdefghijk1 is bad ' + b"x" * 9000 + b'"}}'
    text = failure_from_response("Test", 400, {}, body).text
    assert "sk-abcdefghijk1" not in text
    assert len(text) < 400
