"""References within a JSON Schema: looked up where they are needed, written out only within a bound."""

from urllib.parse import unquote

import msgspec

from errand.protocol.base import JsonObject, JsonValue

_MAX_COPIED_BYTES = 100_000
_MAX_REFERENCES = 50  # within each other
_MAX_DEPTH = 100
_DEFINITIONS = ("$defs", "definitions")


def resolve_reference(root: JsonObject, reference: JsonValue) -> JsonValue:
    """Return the part at `#/$defs/name`; None if it is missing."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    part: JsonValue = root
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict):
            part = part.get(name)
        elif isinstance(part, list) and name.isdecimal() and len(name) < 7 and int(name) < len(part):
            part = part[int(name)]
        else:
            return None
    return part


def without_references(schema: JsonObject) -> JsonObject:
    """Return a schema for a reader that takes no references: each is written out.

    One that contains itself, and what exceeds 100 KB of copies or a hundred levels, becomes a schema that takes
    anything.
    """
    if b'"$ref"' not in msgspec.json.encode(schema):
        return schema
    result = _Copier(schema).copy(schema, (), 0)
    assert isinstance(result, dict)
    return {name: part for name, part in result.items() if name not in _DEFINITIONS}


class _Copier:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._room = _MAX_COPIED_BYTES

    def copy(self, part: JsonValue, inside: tuple[str, ...], depth: int) -> JsonValue:
        if isinstance(part, list):
            return [self.copy(item, inside, depth + 1) for item in part]
        if not isinstance(part, dict):
            return part
        if depth > _MAX_DEPTH:
            return {}
        reference = part.get("$ref")
        if isinstance(reference, str):
            return self._target(part, reference, inside, depth)
        return {name: self.copy(item, inside, depth + 1) for name, item in part.items() if name not in _DEFINITIONS}

    def _target(self, part: JsonObject, reference: str, inside: tuple[str, ...], depth: int) -> JsonValue:
        siblings = {name: item for name, item in part.items() if name != "$ref"}
        target = resolve_reference(self._root, reference)
        if not isinstance(target, dict) or reference in inside or len(inside) > _MAX_REFERENCES:
            return siblings
        self._room -= len(msgspec.json.encode(target)) if self._room > 0 else 0
        return self.copy({**target, **siblings}, (*inside, reference), depth + 1) if self._room > 0 else siblings
