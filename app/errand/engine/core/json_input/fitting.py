"""JSON of servers that differ in details: read loosely, and cut to the fields and items that fit a struct."""

import json
import types
from typing import Union, get_args, get_origin

import msgspec

from errand.protocol.base import JsonObject, JsonValue

# Python refuses to parse longer integers; no field that is read has such a number.
_MAX_DIGITS = 18


def read_loose(text: str) -> JsonValue:
    """Return the JSON value of a text, None if it is invalid.

    NaN, raw line breaks and halves of characters are accepted.
    """
    try:
        return json.loads(text, strict=False, parse_int=_integer)
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


class Misfits:
    """The parts of JSON values that do not fit a type; `count` of them were removed."""

    def __init__(self) -> None:
        self.count = 0

    def removed_from(self, value: JsonValue, kind: object) -> JsonValue:
        """Return the value without the fields and items that do not fit `kind`, a struct, a list or a union of them."""
        for option in _options(kind):
            if isinstance(value, dict) and isinstance(option, type) and issubclass(option, msgspec.Struct):
                return self._without_fields(value, option)
            if isinstance(value, list) and get_origin(option) is list:
                (item_kind,) = get_args(option)
                return [self.removed_from(item, item_kind) for item in value if self._fits(item, item_kind)]
        return value

    def _without_fields(self, value: JsonObject, kind: type[msgspec.Struct]) -> JsonObject:
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
        return {
            name: self.removed_from(part, fields[name])
            for name, part in value.items()
            if name in fields and self._fits(part, fields[name])
        }

    def _fits(self, value: JsonValue, kind: object) -> bool:
        fits = _fits(value, kind)
        self.count += not fits and value is not None
        return fits


def _options(kind: object) -> tuple[object, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _fits(value: JsonValue, kind: object) -> bool:
    """Return True if the value fits, apart from what is inside it."""
    for option in _options(kind):
        if isinstance(value, dict) and isinstance(option, type) and issubclass(option, msgspec.Struct):
            return True
        if isinstance(value, list) and get_origin(option) is list:
            return True
    try:
        msgspec.convert(value, kind)
    except (ValueError, RecursionError):
        return False
    return True
