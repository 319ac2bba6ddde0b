"""The end of a rate limit, in the formats that providers document for their refusals."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from errand.engine.models.failures import FailureKind, failure_from_response
from errand.engine.models.rate_limit_reset import asked_wait, retry_after, seconds_to_reset

LATER = datetime.now(UTC) + timedelta(hours=1)


def ends_later(wait: float | None) -> bool:
    """True for a wait from now to `LATER`; some formats have whole seconds only."""
    return wait is not None and abs(wait - (LATER - datetime.now(UTC)).total_seconds()) < 2


def said(message: str, **more: object) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "9999999999"}, None),
        ({"Retry-After": f"Wed, 21 Oct {'9' * 20} 07:28:00 GMT"}, None),
        ({"Retry-After": f"Wed, 21 Oct 2026 07:28:00 +{'9' * 20}"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_server_that_is_overloaded_may_say_when_it_is_not() -> None:
    busy = said("Overloaded", details=[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}])
    assert asked_wait({}, busy) == 7
    assert asked_wait({"Retry-After": "3"}, busy) == 3
    assert asked_wait({}, said("Try again in 9 s.")) is None
    failure = failure_from_response("Test", 503, {}, busy)
    assert (failure.kind, failure.retry_after_s) == (FailureKind.UNAVAILABLE, 7)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        # OpenAI: durations; exhausted limits count.
        (
            {
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            360,
        ),
        ({"x-ratelimit-reset-requests": "8.64s", "x-ratelimit-reset-tokens": "1h2m3s"}, 8.64),
        ({"x-ratelimit-reset-requests": "20ms"}, 0.02),
        # GitHub and others: remaining seconds.
        ({"X-RateLimit-Reset": "45"}, 45),
        ({"X-RateLimit-Reset": "never"}, None),
        # An explicit wait takes precedence.
        ({"Retry-After": "30", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 30),
    ],
)
def test_rate_limit_headers_give_the_reset_time(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_reset(headers, b"") == seconds


@pytest.mark.parametrize(
    "headers",
    [
        {
            "anthropic-ratelimit-requests-remaining": "12",
            "anthropic-ratelimit-requests-reset": datetime.now(UTC).isoformat(),
            "anthropic-ratelimit-input-tokens-remaining": "0",
            "anthropic-ratelimit-input-tokens-reset": LATER.isoformat(timespec="seconds").replace("+00:00", "Z"),
        },
        {"anthropic-ratelimit-unified-reset": str(int(LATER.timestamp()))},
        {"X-RateLimit-Reset": str(int(LATER.timestamp() * 1000))},
        {"Retry-After": format_datetime(LATER, usegmt=True)},
    ],
)
def test_timestamps_and_durations_in_headers_are_distinguished(headers: dict[str, str]) -> None:
    assert ends_later(seconds_to_reset(headers, b""))


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (
            said("Rate limit reached for gpt-x on tokens per min. Limit 10000, Used 9000. Please try again in 6m0s."),
            360,
        ),
        (said("Rate limit reached on requests. Please try again in 20ms. Visit https://x."), 0.02),
        (said("Rate limit reached for model on TPD. Please try again in 7m12.4s."), 432.4),
        (said("Requests have exceeded the call rate limit. Please retry after 20 seconds."), 20),
        (said("You exceeded your current quota, check your plan and billing details. Please retry in 34.07s."), 34.07),
        (said("You've hit your usage limit. Try again in 2 days 3 hours 5 minutes."), 183_900),
        (said("The usage limit has been reached", type="usage_limit_reached", resets_in_seconds=1234), 1234),
        (said("Quota exceeded", details=[{"@type": "x/google.rpc.RetryInfo", "retryDelay": "34s"}]), 34),
        (b"[" + said("Resource exhausted", details=[{"retryDelay": "7.5s"}]) + b"]", 7.5),
        (b"Too many requests, please wait 90 seconds", 90),
        (said("Try again in a while."), None),
        (said("At most 5 m of text in one request."), None),
        (b"\xff{", None),
        (b"", None),
    ],
)
def test_response_bodies_give_a_duration(body: bytes, seconds: float | None) -> None:
    wait = seconds_to_reset({}, body)
    assert wait is None if seconds is None else wait == pytest.approx(seconds)


@pytest.mark.parametrize(
    "body",
    [
        said("The usage limit has been reached", resets_at=int(LATER.timestamp())),
        said("Rate limit exceeded", metadata={"headers": {"X-RateLimit-Reset": str(int(LATER.timestamp() * 1e3))}}),
        said(f"Usage limit reached. Your limit resets at {LATER:%Y-%m-%dT%H:%M:%SZ}."),
        said(f"You will regain access on {LATER:%Y-%m-%d at %H:%M:%S UTC}.".replace(" at ", " ")),
        said(f"Limit reached|try again at {LATER:%Y-%m-%d %H:%M:%S}"),
        f"usage limit reached, resets at {int(LATER.timestamp())}".encode(),
    ],
)
def test_response_bodies_give_a_timestamp(body: bytes) -> None:
    assert ends_later(seconds_to_reset({}, body))


def test_long_rate_limit_is_a_usage_limit_with_its_end() -> None:
    short, long = (
        failure_from_response("Test", 429, {"Retry-After": "30"}, b""),
        failure_from_response("Test", 429, {"Retry-After": "7300"}, b""),
    )
    assert (short.short, short.retry_after_s, short.kind) == ("rate limit", 30, FailureKind.RATE_LIMITED)
    assert (long.short, long.retry_after_s) == ("usage limit", 7300)
    assert "Try again in 2 h" in long.text


def test_quota_with_a_reset_time_is_temporary_and_missing_credit_is_not() -> None:
    quota = "You exceeded your current quota, please check your plan and billing details."
    assert failure_from_response("Test", 429, {}, said(quota, code="insufficient_quota")).short == "no credit left"
    assert failure_from_response("Test", 429, {}, said(quota)).short == "no credit left"
    assert failure_from_response(
        "Test", 429, {}, said(f"{quota} Please retry in 34.07s.")
    ).retry_after_s == pytest.approx(34.07)
