"""When a rate limit ends: from headers, fields or text of a refusal, in seconds from now."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import msgspec

from errand.protocol.base import JsonValue

# Rate limits end within weeks; a longer time was misread.
_MAX_WAIT_S = 40 * 86_400.0
_MAX_TEXT_LENGTH = 4_000
# Unix times in seconds and in milliseconds; durations are smaller.
_EPOCH_S, _EPOCH_MS = 1e9, 1e12

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
# The text may be hostile: possessive quantifiers, anchored at the start of a number, so that each character is read
# once.
_PART = re.compile(
    r"(?<!\d)(\d++(?:\.\d++)?)\s*+(ms|milliseconds?|[smhd]|sec(?:ond)?s?|min(?:ute)?s?|hours?|days?)(?![a-z])", re.I
)
_LENGTH = re.compile(rf"(?:{_PART.pattern}[\s,]*+(?:and\s++)?)++", re.I)
_IN = re.compile(
    r"(?:(?:try|retry|available|resets?|renews?)\s+(?:again\s+)?(?:in|after)|(?:please\s+)?wait(?:\s+for)?)\s+(?:about\s+)?",
    re.I,
)
_AT = re.compile(
    r"(?:(?:try|retry|available)\s+(?:again\s+)?(?:at|after|on)|resets?\s++(?:at|on)?|(?:regain|until)\D{0,20}?)\s*"
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:\s*(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?|\d{10,13}(?!\d))",
    re.I,
)
# Names of fields with seconds, times or durations such as "34s": OpenAI, Google, OpenRouter and similar ones.
_FIELDS = frozenset(
    {
        "retry_after",
        "retry_after_seconds",
        "retryafter",
        "retrydelay",
        "resets_in_seconds",
        "resets_at",
        "reset_at",
        "x-ratelimit-reset",
    }
)
_RESET = re.compile(r"(?:x|anthropic)-ratelimit-(?:.+-)?reset(?:-.+)?")


def seconds_to_reset(headers: Mapping[str, str], body: bytes) -> float | None:
    """Return the most explicit source: a wait, a field or sentence of the body, then the state of the limits."""
    for wait in (retry_after(headers), _from_body(body), _from_limit_headers(headers)):
        if wait is not None:
            return wait
    return None


def asked_wait(headers: Mapping[str, str], body: bytes) -> float | None:
    """Return the wait that a refusal asks for: in a header, else in a field of the body, as `retryDelay` of Google."""
    wait = retry_after(headers)
    return wait if wait is not None else _from_fields(_decoded(body))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date."""
    lower_headers = _in_lower_case(headers)
    millis = _number(lower_headers.get("retry-after-ms", ""))
    if millis is not None:
        return _in_range(millis / 1000)
    asked = lower_headers.get("retry-after", "")
    seconds = _number(asked)
    if seconds is not None:
        return _in_range(seconds)
    try:
        return _seconds_until(parsedate_to_datetime(asked))
    except (ValueError, OverflowError):  # no date, or a number in it that no machine word holds
        return None


def _from_body(body: bytes) -> float | None:
    value = _decoded(body)
    if value is None:
        return _from_text(body[:_MAX_TEXT_LENGTH].decode("utf-8", "replace"))
    if (named := _from_fields(value)) is not None:
        return named
    waits = (_from_text(text) for text in _texts(value))
    return next((wait for wait in waits if wait is not None), None)


def _decoded(body: bytes) -> JsonValue:
    """Return None for what is not JSON."""
    try:
        return msgspec.json.decode(body[:100_000])
    except (ValueError, RecursionError):
        return None


def _from_fields(value: JsonValue) -> float | None:
    waits = (_date_or_duration(value_text) for value_text in _values_named(value, _FIELDS))
    return max((wait for wait in waits if wait is not None), default=None)


def _from_text(text: str) -> float | None:
    """Return the wait of sentences such as "Please try again in 6m0s" or "resets at 2026-01-31T14:05:00Z"."""
    text = text[:_MAX_TEXT_LENGTH]
    if (at := _AT.search(text)) is not None:
        return _date_or_duration(at[1])
    for start in _IN.finditer(text):
        if (length := _LENGTH.match(text, start.end())) is not None:
            return _duration(length[0])
    return None


def _from_limit_headers(headers: Mapping[str, str]) -> float | None:
    """Return the longest reset time of the exhausted limits; if none is marked as exhausted, the earliest one."""
    lower_headers = _in_lower_case(headers)
    ends: dict[str, float] = {}
    for name, value in lower_headers.items():
        wait = _date_or_duration(value) if _RESET.fullmatch(name) else None
        if wait is not None:
            ends[name] = wait
    used_up = [wait for name, wait in ends.items() if _number(lower_headers.get(_remaining(name), "")) == 0]
    return max(used_up) if used_up else min(ends.values(), default=None)


def _in_lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _remaining(reset: str) -> str:
    return reset.replace("reset", "remaining")


def _date_or_duration(value: JsonValue) -> float | None:
    """Return the seconds from now of a Unix time, an ISO date, a number of seconds or a duration such as "1m30s"."""
    text = str(value).strip()
    number = _number(text)
    if number is not None:
        now = datetime.now(UTC).timestamp()
        if number >= _EPOCH_MS:
            return _in_range(number / 1000 - now)
        return _in_range(number - now if number >= _EPOCH_S else number)
    try:
        return _seconds_until(datetime.fromisoformat(re.sub(r"\s*(UTC|GMT)$", "Z", text)))
    except ValueError:
        return _duration(text) if _LENGTH.fullmatch(text) else None


def _duration(text: str) -> float | None:
    total = 0.0
    for amount, unit in _PART.findall(text):
        word = unit.lower()
        total += float(amount) * _UNITS["ms" if word.startswith(("ms", "mil")) else word[0]]
    return _in_range(total)


def _seconds_until(moment: datetime) -> float | None:
    """Return a time without a zone is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return _in_range((aware - datetime.now(UTC)) / timedelta(seconds=1))


def _in_range(seconds: float) -> float | None:
    """Return a time in the past means now."""
    return max(0.0, seconds) if seconds <= _MAX_WAIT_S else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e15 else None


def _values_named(value: JsonValue, names: Iterable[str]) -> Iterator[JsonValue]:
    """Yield the values of these names at any depth; objects are searched too."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name.lower() in names and isinstance(inner, str | int | float):
                yield inner
            else:
                yield from _values_named(inner, names)
    elif isinstance(value, list):
        for inner in value:
            yield from _values_named(inner, names)


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
