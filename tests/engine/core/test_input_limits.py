"""Numbers from outside: plausible ones stay, all others become zero or the maximum."""

from datetime import UTC, datetime, timedelta

import pytest

from errand.engine.core.input_limits import MAX_TOKENS, dollars, past_moment, price, token_count, window_size
from errand.protocol.base import JsonValue


@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        (12, 12),
        (12.0, 12),
        (2**63, MAX_TOKENS),
        (1e300, MAX_TOKENS),
        (-1, 0),
        (True, 0),
        ("12", 0),
        (None, 0),
        ([], 0),
        (float("nan"), 0),
        (float("inf"), 0),
        (float("-inf"), 0),
    ],
)
def test_token_counts_are_normalised_to_valid_numbers(reported: JsonValue, counted: int) -> None:
    assert token_count(reported) == counted
    assert window_size(reported) == (counted or None)


def test_money_is_finite_and_never_negative() -> None:
    assert [dollars(value) for value in (0.5, -1, float("nan"), float("inf"), 1e300)] == [0.5, 0, 0, 0, 1_000_000]
    assert [price(value) for value in (0, 2.5, -1, True)] == [0, 2.5, None, None]


def test_future_moments_become_now() -> None:
    now = datetime.now(UTC)
    assert past_moment(datetime(9999, 1, 1, tzinfo=UTC)) - now < timedelta(minutes=1)
    assert past_moment(datetime(1, 1, 1)) == datetime(1970, 1, 1, tzinfo=UTC)  # noqa: DTZ001 - as files have it
    assert past_moment(now) == now
