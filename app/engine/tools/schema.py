"""Checks tool arguments against a tool's JSON Schema, after type coercion on a copy. The one user of fastjsonschema."""

import re
from collections.abc import Callable
from types import FunctionType
from typing import TypeAlias, cast

import fastjsonschema
import msgspec
import regex

from app.engine.tools.base import ToolError
from app.engine.tools.coerce import coerced
from app.protocol.json import JsonObject, JsonValue

Check: TypeAlias = Callable[[JsonValue], JsonValue]

_MOST_ERRORS = 20
_MOST_SHOWN = 2000
_MOST_KEPT = 500
# What its compiler raises for keywords whose values have another type than they should.
_BROKEN = (AttributeError, TypeError, ValueError, KeyError, RecursionError, SyntaxError, re.error, regex.error)
_MATCH_LIMIT_S = 0.2


def check_arguments(tool: str, schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Arguments as the tool may use them: a coerced copy. Raises ToolError with the list of what is wrong.

    Fields the schema does not declare pass, unless it forbids them.
    """
    check = _compiled(tool, schema)
    try:
        prepared = coerced(arguments, schema, schema)
        check(prepared)
    except fastjsonschema.JsonSchemaValuesException as failure:
        raise ToolError(_report(tool, [_sentence(error) for error in failure.errors], arguments)) from failure
    except fastjsonschema.JsonSchemaValueException as failure:
        raise ToolError(_report(tool, [_sentence(failure)], arguments)) from failure
    except (TimeoutError, RecursionError) as failure:
        what = "a pattern takes too long to match" if isinstance(failure, TimeoutError) else "nested too deep"
        raise ToolError(f'Validation failed for tool "{tool}":\n  - arguments: {what}') from failure
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
        _bound_patterns(cast(FunctionType, check))
    except (fastjsonschema.JsonSchemaDefinitionException, *_BROKEN) as failure:
        raise ToolError(f'The schema of tool "{tool}" is broken, so it cannot be called: {failure}') from failure
    return cast(Check, check)


class _BoundPattern:
    """In place of Python's own, which can search for ever and hold up the whole engine meanwhile."""

    def __init__(self, pattern: "re.Pattern[str]") -> None:
        self._pattern = regex.compile(pattern.pattern)

    def search(self, text: str) -> object:
        return self._pattern.search(text, timeout=_MATCH_LIMIT_S)

    def match(self, text: str) -> object:
        return self._pattern.match(text, timeout=_MATCH_LIMIT_S)


def _bound_patterns(check: FunctionType) -> None:
    patterns = cast("dict[str, re.Pattern[str] | _BoundPattern]", check.__globals__["REGEX_PATTERNS"])
    for name, pattern in patterns.items():
        if isinstance(pattern, re.Pattern):
            patterns[name] = _BoundPattern(pattern)


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
