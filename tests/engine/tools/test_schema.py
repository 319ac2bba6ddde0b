"""Tool arguments against JSON Schema: coercion on a copy, several errors at once, invalid schemas."""

import re
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errand.engine.tools.argument_check import check_arguments
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject, JsonValue


def field(schema: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {"x": schema}}


@pytest.mark.parametrize(
    ("schema", "given_value", "used"),
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, " -5 ", -5),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "integer"}, "12345678901234567890", 12345678901234567890),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "number"}, "1e3", 1000),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, 0, False),
        ({"type": "boolean"}, "False", False),
        ({"type": ["boolean", "integer"]}, "1", 1),
        ({"oneOf": [{"type": "boolean"}, {"type": "number"}]}, "1", 1),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, True, "true"),
        ({"type": "null"}, "null", None),
        ({"type": ["integer", "null"]}, "7", 7),
        ({"type": ["string", "integer"]}, "7", "7"),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 3),
        ({"oneOf": [{"type": "object", "required": ["b"]}, field({"type": "integer"})]}, {"x": "1"}, {"x": 1}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"any": "1"}, {"any": 1}),
        ({"allOf": [{"type": "integer"}]}, "4", 4),
    ],
)
def test_values_of_the_wrong_type_are_converted_if_unambiguous(
    schema: JsonObject, given_value: JsonValue, used: JsonValue
) -> None:
    checked = check_arguments("t", field(schema), {"x": given_value})

    assert checked == {"x": used}
    assert type(checked["x"]) is type(used)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["string", "integer"]},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"$ref": "#/$defs/count"},
    ],
)
def test_null_for_an_optional_argument_counts_as_missing(schema: JsonObject) -> None:
    optional: JsonObject = {"$defs": {"count": {"type": "integer"}}, **field(schema)}

    assert check_arguments("t", optional, {"x": None, "extra": None}) == {"extra": None}
    with pytest.raises(ToolError, match="x"):
        check_arguments("t", {**optional, "required": ["x"]}, {"x": None})


@pytest.mark.parametrize(
    "schema", [{}, {"type": ["integer", "null"]}, {"anyOf": [{"type": "integer"}, {"enum": [None]}]}]
)
def test_null_stays_if_the_schema_allows_it(schema: JsonObject) -> None:
    assert check_arguments("t", field(schema), {"x": None}) == {"x": None}


def test_references_inside_the_schema_are_followed() -> None:
    schema: JsonObject = {"$defs": {"count": {"type": "integer"}}, **field({"$ref": "#/$defs/count"})}

    assert check_arguments("t", schema, {"x": "2"}) == {"x": 2}


def test_recursive_schema_does_not_loop() -> None:
    schema: JsonObject = {"type": "object", "properties": {"x": {"$ref": "#"}, "n": {"type": "integer"}}}

    assert check_arguments("t", schema, {"x": {"x": {"n": "1"}}}) == {"x": {"x": {"n": 1}}}


def test_unknown_arguments_pass_and_the_original_arguments_are_unchanged() -> None:
    arguments: JsonObject = {"x": "1", "extra": {"deep": ["2"]}}
    before = deepcopy(arguments)

    assert check_arguments("t", field({"type": "integer"}), arguments) == {"x": 1, "extra": {"deep": ["2"]}}
    assert arguments == before


def test_all_errors_are_reported_at_once() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "items": {"type": "array", "items": {"type": "number"}}},
        "required": ["n", "path"],
    }

    with pytest.raises(ToolError) as failure:
        check_arguments("read", schema, {"n": "many", "items": [1, "x"]})

    assert str(failure.value) == (
        'Validation failed for tool "read":\n'
        "  - arguments: must contain ['path'] properties\n"
        "  - n: must be integer\n"
        "  - items.1: must be number\n\n"
        'Received arguments:\n{"n":"many","items":[1,"x"]}'
    )
    assert failure.value.summary == "wrong arguments: must contain ['path'] properties"


def test_long_arguments_are_truncated_in_errors() -> None:
    with pytest.raises(ToolError) as failure:
        check_arguments("t", field({"type": "integer"}), {"x": "a" * 100_000})

    assert len(str(failure.value)) < 3000


@pytest.mark.parametrize("schema", [{"type": 5}, {"$ref": "http://127.0.0.1:9/schema"}, {"$ref": "file:///etc/passwd"}])
def test_invalid_or_external_schema_is_refused_without_fetching(schema: JsonObject) -> None:
    with pytest.raises(ToolError, match='The schema of tool "t" is broken'):
        check_arguments("t", field(schema), {"x": 1})


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x, max_size=3), max_leaves=5)
)
def test_any_arguments_give_valid_arguments_or_a_tool_error(value: JsonValue) -> None:
    try:
        checked = check_arguments("t", field({"type": "integer"}), {"x": value})
    except ToolError:
        return
    assert checked == {} if value is None else isinstance(checked["x"], int)


@pytest.mark.parametrize(
    ("schema", "given_value", "reason"),
    [
        ({"type": "string", "pattern": "^(a|aa)+$"}, "a" * 80 + "!", "a pattern takes too long to match"),
        ({"type": "object", "patternProperties": {"^(a|aa)+$": {}}}, {"a" * 80 + "!": 1}, "takes too long"),
        ({"type": "string", "pattern": "("}, "x", "unterminated subpattern"),
        ({"$ref": "#/properties/x"}, 5, "nested too deep"),
        ({"type": "string", "pattern": "^\\d+$"}, "12x", "must match pattern"),
        ({"type": "string", "format": "date"}, "12x", "must be date"),
    ],
)
def test_hostile_schema_neither_blocks_the_engine_nor_runs_code(
    schema: JsonObject, given_value: JsonValue, reason: str
) -> None:
    with pytest.raises(ToolError, match=re.escape(reason)):
        check_arguments("tool", field(schema), {"x": given_value})
