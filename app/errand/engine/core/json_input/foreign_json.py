"""Decodes JSON of other programs: bounded before anything is built, and in a thread if it is long."""

import asyncio
import json
import math
import re
from dataclasses import dataclass

import msgspec

from errand.engine.core.errors import EngineError
from errand.engine.core.fair_share import short_switches
from errand.protocol.base import JsonObject, JsonValue

# Shorter texts are decoded at once: a thread would cost more.
_MAX_INLINE_BYTES = 16 * 1024
TOO_DEEP = "[nested too deep]"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]},]', re.DOTALL)
# Integers of more than 64 bits and numbers beyond a double cannot be encoded again.
_LONG_NUMBER = re.compile(rb"\d{19}")
_MAX_INTEGER = 2**63 - 1
_MAX_INTEGER_DIGITS = 4_000


class UnreadableJson(EngineError, ValueError):
    """A text of another program that is not JSON or exceeds the bounds."""

    code = "unreadable_json"


@dataclass(frozen=True, slots=True)
class JsonBounds:
    """Limits of what is read of a text. Parts below `max_depth` lists and objects become the text `TOO_DEEP`."""

    max_bytes: int = 8 * 1024 * 1024
    max_values: int = 200_000
    max_depth: int = 64


BOUNDS = JsonBounds()


async def decode_foreign(data: bytes, bounds: JsonBounds = BOUNDS) -> JsonValue:
    """Decode a text, in a thread if it is long. Raises `UnreadableJson`.

    What many programs write in error is accepted: a byte order mark, NaN, line breaks in texts, invalid Unicode.
    """
    if len(data) <= _MAX_INLINE_BYTES:
        return decode_bounded(data, bounds)
    if len(data) > bounds.max_bytes:
        raise UnreadableJson(size_text(bounds.max_bytes))
    with short_switches():
        return await asyncio.to_thread(decode_bounded, data, bounds)


def decode_bounded(data: bytes, bounds: JsonBounds = BOUNDS) -> JsonValue:
    """Decode a text in this thread. Raises `UnreadableJson`."""
    if len(data) > bounds.max_bytes:
        raise UnreadableJson(size_text(bounds.max_bytes))
    data = _within_bounds(data.removeprefix(_BYTE_ORDER_MARK), bounds)
    try:
        value: JsonValue = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return _encodable(_repaired(data))
    return _encodable(value) if _LONG_NUMBER.search(data) else value


def object_or_empty(value: JsonValue) -> JsonObject:
    """Return an optional object of a decoded text; empty if there is something else in its place."""
    return value if isinstance(value, dict) else {}


def objects_in(value: JsonValue) -> list[JsonObject]:
    """Return the objects of an optional list; empty if there is something else in its place."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def flag_or_none(value: JsonValue) -> bool | None:
    """Return an optional boolean; None if there is something else in its place."""
    return value if isinstance(value, bool) else None


def check_bounds(data: bytes, bounds: JsonBounds) -> None:
    """Raises `UnreadableJson` for a text beyond the bounds, also one that is nested too deep."""
    if len(data) > bounds.max_bytes:
        raise UnreadableJson(size_text(bounds.max_bytes))
    if _within_bounds(data, bounds) is not data:
        raise UnreadableJson(f"it is nested deeper than {bounds.max_depth} lists and objects")


def size_text(max_bytes: int) -> str:
    return (
        f"it has more than {max_bytes // 1_048_576} MB" if max_bytes >= 1_048_576 else f"it has over {max_bytes} bytes"
    )


def _within_bounds(data: bytes, bounds: JsonBounds) -> bytes:
    """Count the values of a text, and replace what is nested too deep. Raises `UnreadableJson`."""
    opened = data.count(b"[") + data.count(b"{")
    if opened <= bounds.max_depth and opened + data.count(b",") < bounds.max_values:
        return data
    values, depth, cut_at = 1, 0, 0
    deep_parts: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(data):
        start = token.start()
        match data[start]:
            case 0x5B | 0x7B:  # [ {
                depth, values = depth + 1, values + 1
                if depth == bounds.max_depth + 1:
                    cut_at = start
            case 0x5D | 0x7D:  # ] }
                if depth == bounds.max_depth + 1:
                    deep_parts.append((cut_at, start + 1))
                depth -= 1
            case 0x2C:
                values += 1
            case _:
                pass
        if values > bounds.max_values:
            raise UnreadableJson(f"it has more than {bounds.max_values:,} values")
    if depth > bounds.max_depth:
        raise UnreadableJson("it is incomplete")
    return _without_parts(data, deep_parts) if deep_parts else data


def _without_parts(data: bytes, parts: list[tuple[int, int]]) -> bytes:
    pieces: list[bytes] = []
    end = 0
    for start, stop in parts:
        pieces += [data[end:start], msgspec.json.encode(TOO_DEEP)]
        end = stop
    return b"".join((*pieces, data[end:]))


def _repaired(data: bytes) -> JsonValue:
    """Decode what a strict decoder refuses. Raises `UnreadableJson`."""
    try:
        return json.loads(
            data.decode("utf-8", "replace"), strict=False, parse_int=_integer, parse_constant=lambda name: None
        )
    except (ValueError, RecursionError) as error:
        raise UnreadableJson(f"it is not JSON: {str(error)[:200]}") from error


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else digits


def _encodable(value: JsonValue) -> JsonValue:
    """Return a copy without what cannot be encoded: integers and numbers that are too large, half characters."""
    match value:
        case dict():
            return {_text(name): _encodable(item) for name, item in value.items()}
        case list():
            return [_encodable(item) for item in value]
        case str():
            return _text(value)
        case float():
            return value if math.isfinite(value) else None
        case bool() | None:
            return value
        case int():
            return value if -_MAX_INTEGER <= value <= _MAX_INTEGER else _large(value)


def _large(value: int) -> float | str:
    try:
        return float(value)
    except OverflowError:
        return str(value)


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
