"""JSON Schemas from outside: for the final answer of a task (decision 11), and of tools of other programs."""

from urllib.parse import unquote

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.core.messages import TASK_COMPLETE
from errand.engine.tools.argument_check import check_schema_in_time
from errand.engine.tools.base import ToolError
from errand.protocol.base import JsonObject, JsonValue

SUMMARY: JsonObject = {"type": "string", "description": "What was accomplished, in a few sentences."}

_ANSWER = "answer"
_MOST_BYTES = 100_000
# About 5 µs each. Nested references grow exponentially: two to one part, which has two to the next, and so on.
_MOST_PARTS = 20_000
# They define a base for references, but the schema is embedded into another one.
_BASE_KEYWORDS = ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef")
# From a later draft than the checker supports: with `items` beside it, it would reject every answer.
_PREFIX_ITEMS = "prefixItems"


async def check_answer_schema(schema: JsonObject) -> None:
    """Raises `InvalidParams` for a schema that cannot be used to check an answer."""
    size = len(msgspec.json.encode(schema))
    if size > _MOST_BYTES:
        raise InvalidParams(f"answerSchema: {size:,} bytes; at most {_MOST_BYTES:,} are taken.")
    if name := _first_base_keyword(schema):
        raise InvalidParams(f"answerSchema: {name} is not taken. Refer to places by `#/$defs/…` alone.")
    if _has_prefix_items(schema):
        raise InvalidParams(f"answerSchema: {_PREFIX_ITEMS} is not taken. Write the list as `items`, as in draft 7.")
    if _count_parts(schema) > _MOST_PARTS:
        raise InvalidParams(f"answerSchema: with its references followed it has more than {_MOST_PARTS:,} parts.")
    try:
        await check_schema_in_time(TASK_COMPLETE, with_answer_schema(schema))
    except ToolError as error:
        raise InvalidParams(f"answerSchema is not a usable JSON Schema: {error.__cause__ or error}") from error


async def usable_schema(tool: str, schema: JsonObject) -> JsonObject:
    """The parameters of another program's tool, without references, which several providers reject.

    Raises `InvalidParams` for parameters that are too large, recursive or broken.
    """
    try:
        size = len(msgspec.json.encode(schema))
        if size > _MOST_BYTES:
            raise InvalidParams(f"its parameters have {size:,} bytes; at most {_MOST_BYTES:,} are taken")
        if _count_parts(schema) > _MOST_PARTS:
            raise InvalidParams(f"with its references followed, its parameters have more than {_MOST_PARTS:,} parts")
        if base := _first_base_keyword(schema):
            raise InvalidParams(f"its parameters have {base}, which is not taken")
        plain = _without_references(schema, schema, ())
    except RecursionError as error:
        raise InvalidParams("its parameters are nested too deep") from error
    assert isinstance(plain, dict)
    plain = {name: part for name, part in plain.items() if name not in ("$defs", "definitions")}
    try:
        await check_schema_in_time(tool, plain)
    except ToolError as error:
        raise InvalidParams(f"its parameters cannot be used: {error.__cause__ or error}") from error
    return plain


def _without_references(part: JsonValue, root: JsonObject, inside: tuple[str, ...]) -> JsonValue:
    """A copy with each local reference replaced by what it refers to."""
    if isinstance(part, list):
        return [_without_references(item, root, inside) for item in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if isinstance(reference, str):
        if reference in inside:
            raise InvalidParams(f"its parameters contain themselves ({reference[:80]})")
        target = _resolve(root, reference)
        if not isinstance(target, dict):
            raise InvalidParams(f"its parameters refer to {reference[:80]!r}, which is not in them")
        beside = {name: item for name, item in part.items() if name != "$ref"}
        return _without_references({**target, **beside}, root, (*inside, reference))
    return {name: _without_references(item, root, inside) for name, item in part.items() if name != "$defs"}


def with_answer_schema(schema: JsonObject) -> JsonObject:
    """The parameters of `task_complete`: a summary, and an `answer` that follows the schema."""
    return {
        "type": "object",
        "properties": {"summary": SUMMARY, _ANSWER: _rebased(schema)},
        "required": ["summary", _ANSWER],
    }


def _rebased(schema: JsonValue) -> JsonValue:
    """The schema with its references rebased to its new location."""
    if isinstance(schema, list):
        return [_rebased(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _rebased_reference(item) if name == "$ref" else _rebased(item) for name, item in schema.items()}


def _rebased_reference(reference: JsonValue) -> JsonValue:
    if isinstance(reference, str) and reference.startswith("#"):
        return f"#/properties/{_ANSWER}{reference[1:]}"
    return reference


def _first_base_keyword(schema: JsonValue) -> str:
    if isinstance(schema, list):
        return next((name for item in schema if (name := _first_base_keyword(item))), "")
    if not isinstance(schema, dict):
        return ""
    found = next((name for name in _BASE_KEYWORDS if isinstance(schema.get(name), str)), "")
    return found or next((name for item in schema.values() if (name := _first_base_keyword(item))), "")


def _has_prefix_items(schema: JsonValue) -> bool:
    if isinstance(schema, list):
        return any(map(_has_prefix_items, schema))
    return isinstance(schema, dict) and (
        isinstance(schema.get(_PREFIX_ITEMS), list) or any(map(_has_prefix_items, schema.values()))
    )


def _count_parts(root: JsonObject) -> int:
    """The number of subschemas with every reference followed; a reference cycle counts once."""
    known: dict[int, int] = {}

    def count(part: JsonValue) -> int:
        if not isinstance(part, dict | list):
            return 0
        if id(part) not in known:
            known[id(part)] = 1
            inner = [*part.values(), _resolve(root, part.get("$ref"))] if isinstance(part, dict) else part
            known[id(part)] = 1 + sum(map(count, inner))
        return known[id(part)]

    try:
        return count(root)
    except RecursionError:  # a chain of a thousand references
        return _MOST_PARTS + 1


def _resolve(root: JsonObject, reference: JsonValue) -> JsonValue:
    """The part at `#/$defs/name`; None if it is missing, which the checker reports."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place: JsonValue = root
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict):
            place = place.get(name)
        elif isinstance(place, list) and name.isdecimal() and len(name) < 7 and int(name) < len(place):
            place = place[int(name)]
        else:
            return None
    return place
