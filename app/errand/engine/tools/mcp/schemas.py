"""Schemas of tools of other programs, made usable: what has no meaning is left out, and references stay references."""

import asyncio
import re
from collections.abc import Iterator

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.core.fair_share import short_switches
from errand.engine.core.json_input.schema_references import resolve_reference
from errand.engine.tools.answer_schema import has_too_many_parts
from errand.engine.tools.argument_check import check_schema_in_time
from errand.engine.tools.patterns import is_usable_pattern
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject, JsonValue

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_OF_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_OF_ONE_SCHEMA = frozenset(
    {"additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames"}
)
_SIZES = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_TEXTS = frozenset({"title", "description", "format", "$comment"})
_FLAGS = frozenset({"uniqueItems", "readOnly", "writeOnly", "deprecated"})
# They name another draft than the checker knows, or a base for references; the parameters are part of a request.
_LEFT_OUT = frozenset(
    {
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"),
        *("$vocabulary", "dependencies", "dependentRequired", "unevaluatedProperties", "unevaluatedItems"),
    }
)
# With its slashes and flags, as in the source of a program.
_JAVASCRIPT_LITERAL = re.compile(r"/.+/[dgimsuvy]*+", re.DOTALL)
_WITHOUT_EFFECT = frozenset({"$schema", "$id", "$comment"})
_MAX_BYTES = 100_000
_MAX_ROOT_REFERENCES = 20
# Of a tool that names none.
NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


async def usable_parameters(tool: str, schema: JsonValue) -> tuple[JsonObject, bool]:
    """Return the parameters of a tool for models and for the check, and whether they can be checked in full.

    The schema must be decoded within the bounds of foreign JSON. What this leaves out is checked by the server alone.
    Raises `InvalidParams` if even the names of the parameters are too much.
    """
    with short_switches():
        parameters, is_whole = await asyncio.to_thread(_prepared, schema)
    if parameters is not None:
        try:
            await check_schema_in_time(tool, parameters)
        except ToolError:
            pass
        else:
            return parameters, is_whole
    names = _names_alone(schema)
    if len(msgspec.json.encode(names)) > _MAX_BYTES:
        raise InvalidParams(f"its parameters have more than {_MAX_BYTES:,} bytes")
    return names, False


def _prepared(schema: JsonValue) -> tuple[JsonObject | None, bool]:
    """Return the parameters without flaws, None if they cannot be checked, and whether nothing was left out."""
    try:
        root = _root(schema)
        parameters = _without_flaws(root, root)
        assert isinstance(parameters, dict)
        parameters = {**NO_PARAMETERS, **parameters}
        if len(msgspec.json.encode(parameters)) > _MAX_BYTES or has_too_many_parts(parameters):
            return None, False
        if _has_endless_reference(parameters):
            return None, False
    except RecursionError:  # a chain of a thousand references
        return None, False
    expected = {name: value for name, value in root.items() if name not in _WITHOUT_EFFECT}
    return parameters, bool(root) and parameters == {**NO_PARAMETERS, **expected}


def _root(schema: JsonValue) -> JsonObject:
    """Return the schema of an object; parameters of any other kind cannot be passed by name."""
    if not isinstance(schema, dict):
        return {}
    definitions = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    root = schema
    for _ in range(_MAX_ROOT_REFERENCES):
        target = resolve_reference(schema, root.get("$ref"))
        if not isinstance(target, dict):
            break
        root = {**target, **definitions}
    kind = root.get("type", "object")
    is_object = kind == "object" or not isinstance(kind, str | list) or (isinstance(kind, list) and "object" in kind)
    return {**root, "type": "object"} if is_object else {}


def _without_flaws(schema: JsonValue, root: JsonObject) -> JsonValue:
    """Return a schema without keywords that have no meaning; anything but a schema becomes one that takes all."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        return {}
    keywords = {name: _keyword(name, value, root) for name, value in schema.items() if name not in _LEFT_OUT}
    result: JsonObject = {name: value[0] for name, value in keywords.items() if value}
    if "prefixItems" in result:
        result.pop("items", None)  # draft 7 reads `items` as the schema of every item
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and "pattern" not in result:
        result["description"] = f"{result.get('description', '')} Pattern: {pattern}".strip()
    return result


def _keyword(name: str, value: JsonValue, root: JsonObject) -> tuple[JsonValue, ...]:
    """Return the usable value of a keyword, or nothing."""
    if name in _OF_SCHEMAS:
        parts = value if isinstance(value, dict) else None
        return () if parts is None else ({key: _without_flaws(part, root) for key, part in parts.items()},)
    if name in _LISTS_OF_SCHEMAS or (name == "items" and isinstance(value, list)):
        is_list = isinstance(value, list) and bool(value)
        return ([_without_flaws(part, root) for part in value],) if is_list and isinstance(value, list) else ()
    if name in _OF_ONE_SCHEMA or name == "items":
        return (_without_flaws(value, root),) if isinstance(value, dict | bool) else ()
    return (value,) if _is_usable(name, value, root) else ()


def _is_usable(name: str, value: JsonValue, root: JsonObject) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match name:
        case "type":
            types = value if isinstance(value, list) else [value]
            return bool(types) and all(isinstance(name, str) and name in _TYPES for name in types)
        case "required":
            return isinstance(value, list) and all(isinstance(name, str) for name in value)
        case "enum":
            return isinstance(value, list) and bool(value)
        case "pattern":
            return isinstance(value, str) and is_usable_pattern(value) and not _JAVASCRIPT_LITERAL.fullmatch(value)
        case "$ref":
            return isinstance(value, str) and isinstance(resolve_reference(root, value), dict)
        case "multipleOf":
            return is_number and isinstance(value, int | float) and value > 0
        case _ if name in _SIZES:
            return isinstance(value, int) and is_number and value >= 0
        case _ if name in _NUMBERS:
            return is_number
        case _ if name in _TEXTS:
            return isinstance(value, str)
        case _ if name in _FLAGS:
            return isinstance(value, bool)
        case _:
            return True


def _has_endless_reference(root: JsonObject) -> bool:
    """Return True if a reference leads back to itself before it takes a part of the arguments."""
    open_parts, settled = set[int](), set[int]()

    def is_endless(part: JsonValue) -> bool:
        if not isinstance(part, dict) or id(part) in settled:
            return False
        if id(part) in open_parts:
            return True
        open_parts.add(id(part))
        inner = [resolve_reference(root, part.get("$ref")), *_parts_in_place(part)]
        result = any(map(is_endless, inner))
        open_parts.remove(id(part))
        settled.add(id(part))
        return result

    return any(map(is_endless, _all_objects(root)))


def _parts_in_place(schema: JsonObject) -> Iterator[JsonValue]:
    """Yield the schemas that apply to the same value."""
    for name in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(name)
        yield from branches if isinstance(branches, list) else ()
    yield from (schema.get(name) for name in ("not", "if", "then", "else"))


def _all_objects(value: JsonValue) -> Iterator[JsonObject]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from _all_objects(part)
    elif isinstance(value, list):
        for part in value:
            yield from _all_objects(part)


def _names_alone(schema: JsonValue) -> JsonObject:
    """Return the parameters with the name and the description of each alone, for a schema that cannot be checked."""
    properties = _root(schema).get("properties")
    named = properties if isinstance(properties, dict) else {}
    return {**NO_PARAMETERS, "properties": {name: _description(part) for name, part in named.items()}}


def _description(part: JsonValue) -> JsonObject:
    text = part.get("description") if isinstance(part, dict) else None
    return {"description": text} if isinstance(text, str) else {}
