"""JSON Schemas for the final answer of a task (decision 11)."""

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.core.json_input.schema_references import resolve_reference
from errand.engine.core.messages import TASK_COMPLETE
from errand.engine.tools.argument_check import check_schema_in_time
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject, JsonValue

SUMMARY: JsonObject = {"type": "string", "description": "What was accomplished, in a few sentences."}

_ANSWER = "answer"
_MAX_SCHEMA_BYTES = 100_000
# About 5 µs each. Nested references grow exponentially: two to one part, which has two to the next, and so on.
_MAX_PARTS = 20_000
# They define a base for references, but the schema is embedded into another one.
_BASE_KEYWORDS = ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef")
# From a later draft than the checker supports: with `items` beside it, it would reject every answer.
_PREFIX_ITEMS = "prefixItems"


async def check_answer_schema(schema: JsonObject) -> None:
    """Raises `InvalidParams` for a schema that cannot be used to check an answer."""
    size = len(msgspec.json.encode(schema))
    if size > _MAX_SCHEMA_BYTES:
        raise InvalidParams(f"answerSchema: {size:,} bytes; at most {_MAX_SCHEMA_BYTES:,} are taken.")
    if name := _first_base_keyword(schema):
        raise InvalidParams(f"answerSchema: {name} is not taken. Refer to places by `#/$defs/…` alone.")
    if _has_prefix_items(schema):
        raise InvalidParams(f"answerSchema: {_PREFIX_ITEMS} is not taken. Write the list as `items`, as in draft 7.")
    if has_too_many_parts(schema):
        raise InvalidParams(f"answerSchema: with its references followed it has more than {_MAX_PARTS:,} parts.")
    try:
        await check_schema_in_time(TASK_COMPLETE, with_answer_schema(schema))
    except ToolError as error:
        raise InvalidParams(f"answerSchema is not a usable JSON Schema: {error.__cause__ or error}") from error


def with_answer_schema(schema: JsonObject) -> JsonObject:
    """Return the parameters of `task_complete`: a summary, and an `answer` that follows the schema."""
    return {
        "type": "object",
        "properties": {"summary": SUMMARY, _ANSWER: _rebased(schema)},
        "required": ["summary", _ANSWER],
    }


def _rebased(schema: JsonValue) -> JsonValue:
    """Return the schema with its references rebased to its new location."""
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
    keyword = next((name for name in _BASE_KEYWORDS if isinstance(schema.get(name), str)), "")
    return keyword or next((name for item in schema.values() if (name := _first_base_keyword(item))), "")


def _has_prefix_items(schema: JsonValue) -> bool:
    if isinstance(schema, list):
        return any(map(_has_prefix_items, schema))
    return isinstance(schema, dict) and (
        isinstance(schema.get(_PREFIX_ITEMS), list) or any(map(_has_prefix_items, schema.values()))
    )


def has_too_many_parts(root: JsonObject) -> bool:
    """Return True if a check would take too long: with every reference followed; a reference cycle counts once."""
    numbers_by_id: dict[int, int] = {}

    def count(part: JsonValue) -> int:
        if not isinstance(part, dict | list):
            return 0
        if id(part) not in numbers_by_id:
            numbers_by_id[id(part)] = 1
            inner = [*part.values(), resolve_reference(root, part.get("$ref"))] if isinstance(part, dict) else part
            numbers_by_id[id(part)] = 1 + sum(map(count, inner))
        return numbers_by_id[id(part)]

    try:
        return count(root) > _MAX_PARTS
    except RecursionError:  # a chain of a thousand references
        return True
