"""Checks tool arguments against a tool's JSON Schema, after type coercion on a copy. The one user of fastjsonschema."""

from collections.abc import Callable
from typing import TypeAlias, cast

import fastjsonschema
import msgspec

from app.engine.tools.base import ToolError
from app.engine.tools.coerce import coerced
from app.protocol.json import JsonObject, JsonValue

Check: TypeAlias = Callable[[JsonValue], JsonValue]

_MOST_ERRORS = 20
_MOST_SHOWN = 2000
_MOST_KEPT = 500
# What its compiler raises for keywords whose values have another type than they should.
_BROKEN = (AttributeError, TypeError, ValueError, KeyError, RecursionError, SyntaxError)


def check_arguments(tool: str, schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Arguments as the tool may use them: a coerced copy. Raises ToolError with the list of what is wrong.

    Fields the schema does not declare pass, unless it forbids them.
    """
    check = _compiled(tool, schema)
    prepared = coerced(arguments, schema, schema)
    try:
        check(prepared)
    except fastjsonschema.JsonSchemaValuesException as failure:
        raise ToolError(_report(tool, [_sentence(error) for error in failure.errors], arguments)) from failure
    except fastjsonschema.JsonSchemaValueException as failure:
        raise ToolError(_report(tool, [_sentence(failure)], arguments)) from failure
    assert isinstance(prepared, dict)
    return prepared


def check_schema(tool: str, schema: JsonObject) -> None:
    """Raises `ToolError`, from what is wrong, for a schema that nothing can be checked against."""
    _compiled(tool, schema)


_by_identity: dict[int, tuple[JsonObject, Check]] = {}
_by_content: dict[bytes, Check] = {}


def _compiled(tool: str, schema: JsonObject) -> Check:
    """The validator of a schema, compiled once (some milliseconds): found by identity first, then by content.

    A schema must not be changed after its first use. Schemas of tools that came and went are dropped in bulk.
    """
    known = _by_identity.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    content = msgspec.json.encode(schema, order="sorted")
    check = _by_content.get(content) or _compile(tool, schema)
    if len(_by_identity) >= _MOST_KEPT:
        _by_identity.clear()
        _by_content.clear()
    _by_identity[id(schema)] = (schema, check)
    _by_content[content] = check
    return check


def _compile(tool: str, schema: JsonObject) -> Check:
    handlers = {scheme: _refuse_reference for scheme in ("http", "https", "file", "ftp", "")}
    try:
        check = fastjsonschema.compile(schema, handlers=handlers, use_default=False, fast_fail=False)
    except (fastjsonschema.JsonSchemaDefinitionException, *_BROKEN) as failure:
        raise ToolError(f'The schema of tool "{tool}" is broken, so it cannot be called: {failure}') from failure
    return cast(Check, check)


def _refuse_reference(uri: str) -> JsonObject:
    """Tools may come from anywhere; their schemas must not make us fetch or read things."""
    raise fastjsonschema.JsonSchemaDefinitionException(f"a reference outside the schema: {uri}")


def _sentence(error: fastjsonschema.JsonSchemaValueException) -> str:
    path = [str(step) for step in error.path[1:]]
    name = ".".join(path) or "arguments"
    return f"  - {name}: {error.message.removeprefix(error.name or '').strip()}"


def _report(tool: str, errors: list[str], arguments: JsonObject) -> str:
    received = msgspec.json.encode(arguments).decode()
    shown = received if len(received) <= _MOST_SHOWN else received[:_MOST_SHOWN] + "…"
    listed = "\n".join(dict.fromkeys(errors[:_MOST_ERRORS]))
    return f'Validation failed for tool "{tool}":\n{listed}\n\nReceived arguments:\n{shown}'
