"""Bounds for numbers and JSON from outside."""

import math
from datetime import UTC, datetime, timedelta

from errand.engine.core.errors import InvalidParams
from errand.protocol.base import JsonValue

MAX_TOKENS = 1_000_000_000
_MAX_USD = 1_000_000.0
# Allows for clock differences; a later time is invalid.
_MAX_CLOCK_DIFFERENCE = timedelta(days=1)
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)

MAX_RECORD_BYTES = 32 * 1024 * 1024
MAX_VALUES = 1_000_000


def token_count(value: JsonValue) -> int:
    """Tokens of one model call; 0 if the value is not a valid number."""
    return int(_amount(value, MAX_TOKENS) or 0)


def window_size(value: JsonValue) -> int | None:
    """Return a context window in tokens; None if the value is not a valid number."""
    tokens = _amount(value, MAX_TOKENS)
    return int(tokens) if tokens is not None and tokens >= 1 else None


def dollars(value: JsonValue) -> float:
    """Return the cost of one call; 0 if the value is not a valid number."""
    return float(_amount(value, _MAX_USD) or 0)


def price(value: JsonValue) -> float | None:
    """US dollars per million tokens; None if the value is not a valid number."""
    amount = _amount(value, _MAX_USD)
    return None if amount is None else float(amount)


def past_moment(value: datetime) -> datetime:
    """Return a creation time, clamped to between 1970 and now. A time without a zone counts as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    now = datetime.now(UTC)
    return now if aware > now + _MAX_CLOCK_DIFFERENCE else max(aware, _FIRST)


def _amount(value: JsonValue, most: float) -> int | float | None:
    """Return a number from 0 to `most`, clamped to that; None for other types, booleans included."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return None if math.isinf(value) else min(value, most)


def check_record(data: bytes, what: str) -> None:
    """Raises `InvalidParams` for a record beyond the limits; `what` names it in the text, as "one of its lines"."""
    if len(data) > MAX_RECORD_BYTES:
        raise too_large(what)
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise too_many(what)


def too_large(what: str) -> InvalidParams:
    return InvalidParams(f"{what} is larger than {MAX_RECORD_BYTES // (1024 * 1024)} MB")


def too_many(what: str) -> InvalidParams:
    return InvalidParams(f"{what} has more than {MAX_VALUES:,} values")
