"""Coerces tool arguments and validates them against the tool's JSON Schema. The only user of fastjsonschema."""

import asyncio
import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from inspect import CO_GENERATOR
from types import FrameType, FunctionType
from typing import TypeAlias, TypeGuard, TypeVar, cast

import fastjsonschema
import msgspec
import regex

from errand.engine.core.fair_share import short_switches
from errand.engine.core.json_input.lenient_json import read_container
from errand.engine.tools.patterns import compile_pattern
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject, JsonValue

_NUMBER = re.compile(r"[+-]?(\d++\.?\d*+|\.\d++)([eE][+-]?\d++)?\Z")
_MAX_DEPTH = 64

Check: TypeAlias = Callable[[JsonValue], JsonValue]
_Result = TypeVar("_Result")

_MAX_ERRORS = 20
_MAX_SUMMARY_LENGTH = 120
_MAX_QUOTED_LENGTH = 2000
_MAX_CACHED_SCHEMAS = 500
# Raised by its compiler for keywords whose values have the wrong type.
_BROKEN = (AttributeError, TypeError, ValueError, KeyError, RecursionError, SyntaxError, re.error, regex.error)
_MATCH_LIMIT_S = 0.2
_CHECK_LIMIT_S = 15.0
# The keywords of an argument that takes one value, whose check takes microseconds.
_OF_ONE_VALUE = frozenset(
    {"type", "description", "default", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)


def coerce(value: JsonValue, schema: JsonValue, root: JsonObject, depth: int = 0) -> JsonValue:
    """Return a copy of `value` with scalars converted to the schema's type where that is unambiguous.

    `root` is the schema that local `$ref`s point into. Other values stay unchanged for the validator to reject.
    """
    if not _is_object(schema) or depth > _MAX_DEPTH:
        return value
    schema = _resolve(schema, root)
    value = _to_type(value, _types(schema))
    for branch in _schemas(schema.get("allOf")):
        value = coerce(value, branch, root, depth + 1)
    branches = _schemas(schema.get("anyOf")) + _schemas(schema.get("oneOf"))
    if branches:
        value = _to_branch(value, branches, root, depth)
    if _is_object(value):
        return _members(value, schema, root, depth)
    if isinstance(value, list):
        return _items(value, schema, root, depth)
    return value


def _members(value: JsonObject, schema: JsonObject, root: JsonObject, depth: int) -> JsonObject:
    declared = schema.get("properties")
    properties = declared if _is_object(declared) else {}
    others, required = schema.get("additionalProperties"), schema.get("required")
    needed = required if isinstance(required, list) else []
    return {
        name: coerce(item, properties.get(name, others), root, depth + 1)
        for name, item in value.items()
        # Models send null for omitted fields.
        if item is not None or name in needed or not _refuses_null(properties.get(name), root)
    }


def _refuses_null(schema: JsonValue, root: JsonObject) -> bool:
    if not _is_object(schema):
        return False
    schema = _resolve(schema, root)
    branches = [_resolve(branch, root) for branch in _schemas(schema.get("anyOf")) + _schemas(schema.get("oneOf"))]
    return _excludes_null(schema) or (bool(branches) and all(_excludes_null(branch) for branch in branches))


def _excludes_null(schema: JsonObject) -> bool:
    """Return True if the schema names types and null is not among them."""
    types = _types(schema)
    return bool(types) and "null" not in types


def _items(value: list[JsonValue], schema: JsonObject, root: JsonObject, depth: int) -> list[JsonValue]:
    items = schema.get("items")
    if isinstance(items, list):
        return [coerce(item, items[i] if i < len(items) else None, root, depth + 1) for i, item in enumerate(value)]
    return [coerce(item, items, root, depth + 1) for item in value]


def _to_branch(value: JsonValue, branches: list[JsonObject], root: JsonObject, depth: int) -> JsonValue:
    """Follow the first branch that has the value's type; failing that, the first it can be converted to."""
    resolved = [_resolve(branch, root) for branch in branches]
    for branch in resolved:
        if _fits(value, _types(branch)) and _has_required_fields(value, branch):
            return coerce(value, branch, root, depth + 1)
    for branch in resolved:
        attempt = _to_type(value, _types(branch))
        if _fits(attempt, _types(branch)):
            return coerce(attempt, branch, root, depth + 1)
    return value


def _has_required_fields(value: JsonValue, branch: JsonObject) -> bool:
    """Return False if an object lacks required fields of the branch, so that another branch is meant."""
    required = branch.get("required")
    return not (_is_object(value) and isinstance(required, list)) or all(name in value for name in required)


def _to_type(value: JsonValue, types: list[str]) -> JsonValue:
    if _fits(value, types):
        return value
    for name in types:
        attempt = _convert(value, name)
        if _fits(attempt, [name]):
            return attempt
    return value


def _fits(value: JsonValue, types: list[str]) -> bool:
    return not types or any(_has_type(value, name) for name in types)


def _has_type(value: JsonValue, name: str) -> bool:
    match name:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return is_whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return True


def _convert(value: JsonValue, name: str) -> JsonValue:
    match name:
        case "integer" | "number":
            return _to_number(value)
        case "boolean":
            return _to_boolean(value)
        case "string" if isinstance(value, bool):
            return "true" if value else "false"
        case "string" if isinstance(value, int | float):
            return str(value)
        case "null" if isinstance(value, str) and value.lower() in ("", "null"):
            return None
        case "array" | "object" if isinstance(value, str):
            container = read_container(value)
            return value if container is None else container
        case _:
            return value


def _to_boolean(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    return bool(value) if isinstance(value, int) and value in (0, 1) else value


def _to_number(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str) or not _NUMBER.match(value.strip()):
        return value
    number = float(value)
    if not math.isfinite(number):
        return value
    if re.fullmatch(r"[+-]?\d{1,4000}", value.strip()):
        return int(value)  # exact, while a float would lose digits
    return int(number) if number.is_integer() else number


def _types(schema: JsonObject) -> list[str]:
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    return [name for name in names if isinstance(name, str)]


def _schemas(value: JsonValue) -> list[JsonObject]:
    return [branch for branch in value if _is_object(branch)] if isinstance(value, list) else []


def _resolve(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Resolve a local `$ref`; the validator rejects all others."""
    for _ in range(_MAX_DEPTH):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        target: JsonValue = root
        for step in reference[1:].strip("/").split("/") if len(reference) > 1 else []:
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if _is_object(target) else None
        if not _is_object(target):
            return schema
        schema = target
    return schema


def _is_object(value: JsonValue | Mapping[str, JsonValue]) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


async def check_in_time(
    tool: str, schema: JsonObject, arguments: JsonObject, is_cancelled: Callable[[], bool]
) -> JsonObject:
    """`check_arguments`, in a thread and for a limited time if it may be long: each value may have many alternatives.

    Raises ToolError after that time, and soon after `is_cancelled` turns true.
    """
    if _is_quick(schema, arguments):
        return check_arguments(tool, schema, arguments)
    with short_switches():
        return await asyncio.to_thread(_check_in_time, tool, schema, arguments, is_cancelled)


def _is_quick(schema: JsonObject, arguments: JsonObject) -> bool:
    """Return True if the validator exists, and each of these arguments takes one value: the others cost nothing."""
    properties = schema.get("properties")
    declared = properties if _is_object(properties) else {}
    fields = (declared[name] for name in arguments if name in declared)
    return (
        id(schema) in _by_identity
        and schema.keys() <= {"type", "properties", "required"}
        and all(_is_object(field) and field.keys() <= _OF_ONE_VALUE for field in fields)
    )


def _check_in_time(
    tool: str, schema: JsonObject, arguments: JsonObject, is_cancelled: Callable[[], bool]
) -> JsonObject:
    _compiled(tool, schema)
    try:
        return _run_in_time(lambda: check_arguments(tool, schema, arguments), is_cancelled)
    except _CheckTooLong as failure:
        if is_cancelled():
            raise ToolError("Operation aborted") from failure
        what = f"checking them takes more than {_CHECK_LIMIT_S:g} s; send less, or in a simpler form"
        raise _refusal(tool, [f"arguments: {what}"]) from failure


def _run_in_time(work: Callable[[], _Result], is_cancelled: Callable[[], bool]) -> _Result:
    """Looks at the clock with each call of a function: nothing else ends a validator or its compiler from outside.

    Never raises inside a generator: an error while that is closed would be ignored.
    """
    ends_at = time.monotonic() + _CHECK_LIMIT_S

    def look(frame: FrameType, event: str, argument: object) -> None:
        if (time.monotonic() > ends_at or is_cancelled()) and not frame.f_code.co_flags & CO_GENERATOR:
            raise _CheckTooLong

    sys.setprofile(look)
    try:
        return work()
    finally:
        sys.setprofile(None)


class _CheckTooLong(Exception):
    """The check exceeded its time, or its task was stopped, or its request cancelled."""

    def __str__(self) -> str:
        return f"checking it takes more than {_CHECK_LIMIT_S:g} s"


def check_arguments(tool: str, schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Return a coerced copy of the arguments. Raises ToolError with the list of faults.

    Undeclared fields pass, unless the schema forbids them.
    """
    check = _compiled(tool, schema)
    try:
        prepared = coerce(arguments, schema, schema)
        check(prepared)
    except fastjsonschema.JsonSchemaValuesException as failure:
        raise _refusal(tool, [_fault(error) for error in failure.errors], arguments) from failure
    except fastjsonschema.JsonSchemaValueException as failure:
        raise _refusal(tool, [_fault(failure)], arguments) from failure
    except (TimeoutError, RecursionError) as failure:
        what = "a pattern takes too long to match" if isinstance(failure, TimeoutError) else "nested too deep"
        raise _refusal(tool, [f"arguments: {what}"]) from failure
    assert isinstance(prepared, dict)
    return prepared


async def check_schema_in_time(tool: str, schema: JsonObject) -> None:
    """Compile a schema, in a thread and for a limited time: a long pattern or hundreds of parts take seconds.

    Raises `ToolError`, from the cause, for an invalid schema, and after that time. Python's own compiler, which ends
    the work, cannot be interrupted and lets no other thread run: 0.4 s for 500 alternatives.
    """
    is_over = False

    def compile_schema() -> None:
        try:
            _run_in_time(lambda: _compiled(tool, schema), lambda: is_over)
        except _CheckTooLong as failure:
            raise ToolError(f'The schema of tool "{tool}" cannot be used: {failure}') from failure

    try:
        with short_switches():
            await asyncio.to_thread(compile_schema)
    finally:
        is_over = True  # ends the thread of a cancelled request


_by_identity: dict[int, tuple[JsonObject, Check]] = {}
_by_content: dict[bytes, Check] = {}


def _compiled(tool: str, schema: JsonObject) -> Check:
    """Return the validator of a schema, compiled once (some milliseconds): found by identity first, then by content.

    A schema must not change after its first use. The cache is cleared when it is full.
    """
    cached = _by_identity.get(id(schema))
    if cached is not None and cached[0] is schema:
        return cached[1]
    content = msgspec.json.encode(schema, order="sorted")
    check = _by_content.get(content) or _compile(tool, schema)
    if len(_by_identity) >= _MAX_CACHED_SCHEMAS:
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
    """Replaces Python's patterns, which can backtrack without end and block the engine."""

    def __init__(self, pattern: "re.Pattern[str]") -> None:
        self._pattern = compile_pattern(pattern.pattern)

    def search(self, text: str) -> object:
        return self._pattern.search(text, concurrent=True, timeout=_MATCH_LIMIT_S)

    def match(self, text: str) -> object:
        return self._pattern.match(text, concurrent=True, timeout=_MATCH_LIMIT_S)


def _bound_patterns(check: FunctionType) -> None:
    patterns = cast("dict[str, re.Pattern[str] | _BoundPattern]", check.__globals__["REGEX_PATTERNS"])
    for name, pattern in patterns.items():
        if isinstance(pattern, re.Pattern):
            patterns[name] = _BoundPattern(pattern)


def _refuse_reference(uri: str) -> JsonObject:
    """Tools may come from untrusted sources; their schemas must not make us fetch or read anything."""
    raise fastjsonschema.JsonSchemaDefinitionException(f"a reference outside the schema: {uri}")


def _fault(error: fastjsonschema.JsonSchemaValueException) -> str:
    path = [str(step) for step in error.path[1:]]
    name = ".".join(path) or "arguments"
    return f"{name}: {error.message.removeprefix(error.name or '').strip()}"


def _refusal(tool: str, faults: list[str], arguments: JsonObject | None = None) -> ToolError:
    """Return all faults for the model, the first one for people."""
    listed = "\n".join(f"  - {fault}" for fault in dict.fromkeys(faults[:_MAX_ERRORS]))
    received = msgspec.json.encode(arguments).decode() if arguments is not None else ""
    excerpt = received if len(received) <= _MAX_QUOTED_LENGTH else received[:_MAX_QUOTED_LENGTH] + "…"
    ending = f"\n\nReceived arguments:\n{excerpt}" if excerpt else ""
    summary = f"wrong arguments: {faults[0].removeprefix('arguments: ')}"
    return ToolError(f'Validation failed for tool "{tool}":\n{listed}{ending}', summary[:_MAX_SUMMARY_LENGTH])
