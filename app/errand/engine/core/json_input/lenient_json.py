"""JSON as models and gateways write it: repeated, in a fence, in a text, with raw line breaks. Never guesses."""

import json
import math
import re
from collections.abc import Iterable
from typing import Never

import msgspec

from errand.protocol.base import JsonObject, JsonValue

# What may stand around and between values: blanks, a byte order mark, fences, and marks of chat templates.
_FILLER = re.compile(
    r"(?:\s|\ufeff|```(?:json\w?\b)?|<\|[\w/ -]{1,40}\|>|</?(?:s|eos|bos|end_of_turn|tool_calls?|function_calls?)>"
    r"|\[/?TOOL_CALLS\])++"
)
# Closing brackets that a model adds after its value.
_CLOSERS = re.compile(r"[\s}\]]*+")
_MAX_VALUES = 16
_MAX_TEXT_LEVELS = 3
# A text longer than this is not searched for a beginning that was sent again.
_MAX_RESTARTED_LENGTH = 65_536
_MAX_RESTARTS = 32
# A text of JSON with its quotes; an escape, the valid ones as a group; a backslash that begins no valid escape.
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_VALID = r'["\\/bfnrt]|u[0-9a-fA-F]{4}'
# Nobody writes a backspace or a form feed: `\b` and `\f` begin `\beta`, `\frac` or the edge of a word.
_ESCAPE = re.compile(rf"\\((?![bf])(?:{_VALID}))?")
_LONE_BACKSLASH = re.compile(rf"(?<!\\)(?:\\\\)*+\\(?!{_VALID})")
_AMBIGUOUS = re.compile(r"(?<!\\)(?:\\\\)*+\\['`$!\s]")
_WINDOWS_PATH = re.compile(r'"(?:[A-Za-z]:|\.{1,2})\\(?![\\"])[^\n]*+\Z')
# Beside commands of LaTeX and names in paths, what looks like a line end or a tab may be one of them: `\nu`, `C:\temp`.
_COMMAND = re.compile(rf"(?<!\\)(?:\\\\)*+\\(?!{_VALID})[A-Za-z]{{2}}")
_WHITE_SPACE_OR_COMMAND = re.compile(r"(?<!\\)(?:\\\\)*+\\[nrt][A-Za-z]")
_ANY_BACKSLASH = re.compile(r'\\\\|\\(?!")')


def read_object(text: str) -> JsonObject | None:
    """Return the object that a text means beyond doubt; None if there is none, or if there are two different ones.

    Empty objects and `null` before or after another object are left out.
    """
    value = _strict(text)
    if isinstance(value, dict):
        return None if _has_two_values_for_a_key(text) else value
    objects = _objects(text, _MAX_TEXT_LEVELS)
    if objects is None:
        return _restarted_object(text) or _object_with_backslashes(text)
    distinct = {msgspec.json.encode(entry, order="sorted"): entry for entry in objects if entry}
    if len(distinct) > 1 or not objects:
        return None
    for only in distinct.values():
        return only
    return {}


def read_strict_object(text: str) -> JsonObject | None:
    """Return the object if the text is exactly one JSON object."""
    value = _strict(text)
    return value if isinstance(value, dict) else None


def read_container(text: str) -> JsonObject | list[JsonValue] | None:
    """Return the list or object that a text is, with blanks, marks or a fence around it."""
    values = _values(text)
    value = values[0] if values is not None and len(values) == 1 else None
    return value if isinstance(value, dict | list) else None


def _strict(text: str) -> JsonValue:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):  # not JSON, lone surrogates, nested too deep
        return None


def _objects(text: str, levels: int) -> list[JsonObject] | None:
    """Return the objects of a text that consists of nothing else, also of texts and lists that hold only an object."""
    values = _values(text)
    objects: list[JsonObject] = []
    for value in values or ():
        inner = _objects_of(value, levels)
        if inner is None:
            return None
        objects += inner
    return None if values is None else objects


def _objects_of(value: JsonValue, levels: int) -> list[JsonObject] | None:
    match value:
        case dict():
            return [value]
        case None:
            return [{}]
        case str() if levels and value.strip():
            return _objects(value, levels - 1)
        case [dict() as only]:
            return [only]
        case _:
            return None


def _values(text: str) -> list[JsonValue] | None:
    """Return the values of a text, with only filler between them; None if anything else is there."""
    values: list[JsonValue] = []
    at = _after(_FILLER, text, 0)
    while at < len(text):
        if len(values) == _MAX_VALUES:
            return None
        try:
            value, end = _decoder.raw_decode(text, at)
            # Refuses lone surrogates and numbers that cannot be stored.
            values.append(msgspec.json.decode(msgspec.json.encode(value)))
        except (ValueError, OverflowError, RecursionError):
            return values if values and _CLOSERS.fullmatch(text, at) else None
        at = _after(_FILLER, text, end)
    return values


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _restarted_object(text: str) -> JsonObject | None:
    """Return the object at the end of a text whose other parts are beginnings of it: a server that sends all so far
    again.
    """
    if len(text) > _MAX_RESTARTED_LENGTH:
        return None
    text = text.strip()
    starts = [match.start() for match in re.finditer(r"\{", text)]
    if not starts or starts[0] != 0 or len(starts) > _MAX_RESTARTS:
        return None
    for start in starts[1:]:
        last = text[start:]
        value = read_strict_object(last)
        if value and _are_beginnings(text, [at for at in starts if at <= start], last):
            return None if _has_two_values_for_a_key(last) else value
    return None


def _are_beginnings(text: str, starts: list[int], last: str) -> bool:
    """Return True if the text up to the last start can be divided at `starts` into beginnings of `last`."""
    reachable = {0}
    for index, start in enumerate(starts[1:], 1):
        if any(begin in reachable and last.startswith(text[begin:start]) for begin in starts[:index]):
            reachable.add(start)
    return starts[-1] in reachable


def _object_with_backslashes(text: str) -> JsonObject | None:
    """Return the object of a text whose only fault is backslashes that were not doubled, as in `"\\d+"`.

    A path of Windows holds neither a line end nor a tab: there `\\n` and `\\t` are no escapes either. Before a quote,
    a dollar sign or an exclamation mark the backslash may be one too many.
    """
    if _AMBIGUOUS.search(text) or any(_is_ambiguous(match[0]) for match in _TEXT.finditer(text)):
        return None
    doubled = _TEXT.sub(lambda match: _with_doubled_backslashes(match[0]), text)
    objects = None if doubled == text else _objects(doubled, 0)
    return objects[0] if objects is not None and len(objects) == 1 else None


def _is_ambiguous(literal: str) -> bool:
    is_path = _WINDOWS_PATH.match(literal) is not None
    return not is_path and bool(_COMMAND.search(literal) and _WHITE_SPACE_OR_COMMAND.search(literal))


def _with_doubled_backslashes(literal: str) -> str:
    if not _LONE_BACKSLASH.search(literal):
        return literal
    if _WINDOWS_PATH.match(literal):
        return _ANY_BACKSLASH.sub(r"\\\\", literal)
    return _ESCAPE.sub(lambda match: match[0] if match[1] else f"\\{match[0]}", literal)


def _has_two_values_for_a_key(text: str) -> bool:
    try:
        _decoder.decode(text)
    except _TwoValues:
        return True
    except (ValueError, RecursionError):  # numbers that only the strict decoder reads
        return False
    return False


class _TwoValues(ValueError):
    """An object names a key twice, with different values."""


def _pairs(pairs: Iterable[tuple[str, JsonValue]]) -> JsonObject:
    members: JsonObject = {}
    for key, value in pairs:
        if key in members and json.dumps(members[key], sort_keys=True) != json.dumps(value, sort_keys=True):
            raise _TwoValues(f"{key} has two values")
        members[key] = value
    return members


def _refuse_constant(constant: str) -> Never:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


# Not strict: control characters, such as raw line breaks, may stand in texts.
_decoder = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_refuse_constant, strict=False
)
