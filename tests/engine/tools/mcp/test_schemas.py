"""Parameters of tools of other programs: flaws cost the flaw, not the tool, and references stay small."""

import msgspec
import pytest

from errand.engine.core.json_input.schema_references import without_references
from errand.engine.tools.argument_check import check_arguments
from errand.engine.tools.mcp.definitions import SchemaRoom, checked_tools
from errand.engine.tools.mcp.schemas import usable_parameters
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject, JsonValue

TEXT: JsonObject = {"type": "string"}


def with_property(schema: JsonValue, **others: JsonValue) -> JsonObject:
    return {"type": "object", "properties": {"a": schema}, **others}


def with_definitions(schema: JsonValue, definitions: JsonObject) -> JsonObject:
    return {**with_property(schema), "$defs": definitions}


FLAWS: tuple[JsonValue, ...] = (
    None,
    True,
    "text",
    [],
    {},
    {"type": "object", "properties": None},
    {"type": "object", "properties": []},
    {"type": ["object", "null"]},
    {"type": "array"},
    {"properties": {"a": TEXT}, "required": None},
    with_property(TEXT, required={}, additionalProperties="yes", allOf=None),
    with_property({"type": "string", "required": True}),
    with_property({"type": "any"}),
    with_property({"type": ["string", 3]}),
    with_property({"type": "string", "pattern": r"^[\p{L}]+$"}),
    with_property({"type": "string", "pattern": r"^(?<y>\d{4})$"}),
    with_property({"type": "string", "pattern": "["}),
    with_property({"type": "string", "pattern": "/^[0-9]+$/i"}),
    with_property({"type": "string", "pattern": r"\u{1F600}", "minLength": "3", "format": 7}),
    with_property({"enum": []}),
    with_property({"anyOf": []}),
    with_property({"anyOf": [TEXT, "?"], "items": "x", "not": None}),
    with_property({"minimum": 1, "exclusiveMinimum": True, "multipleOf": 0}),
    with_property({"$ref": "https://example.org/schema"}),
    with_property({"$ref": "#/$defs/missing"}),
    with_definitions({"$ref": "#/$defs/x"}, {"x": {"$ref": "#/$defs/x"}}),
    with_definitions({"$ref": "#/$defs/x"}, {"x": {"anyOf": [{"$ref": "#/$defs/x"}, TEXT]}}),
    {"$id": "https://example.org/", "$recursiveAnchor": True, **with_property({"$dynamicRef": "#x"})},
    with_property(3),
)


@pytest.mark.parametrize("schema", FLAWS, ids=repr)
async def test_a_tool_with_a_flaw_in_its_parameters_can_be_called(schema: JsonValue) -> None:
    parameters, _ = await usable_parameters("t", schema)
    assert parameters["type"] == "object" and isinstance(parameters["properties"], dict)
    assert check_arguments("t", parameters, {"a": "x"}) == {"a": "x"}
    assert check_arguments("t", parameters, {}) == {}


@pytest.mark.parametrize("flaw", [{"pattern": r"\p{L}"}, {"minLength": None}, {"required": True}, {"format": []}])
async def test_what_can_be_checked_beside_a_flaw_is_checked(flaw: JsonObject) -> None:
    parameters, is_whole = await usable_parameters("t", with_property({"type": "integer", **flaw}, required=["a"]))
    assert not is_whole
    for arguments in ({}, {"a": "x"}):
        with pytest.raises(ToolError):
            check_arguments("t", parameters, {**arguments})


async def test_the_model_reads_a_pattern_that_is_not_checked() -> None:
    parameters, _ = await usable_parameters("t", with_property({"description": "A name.", "pattern": r"\p{L}+"}))
    assert parameters["properties"] == {"a": {"description": r"A name. Pattern: \p{L}+"}}


async def test_a_schema_may_contain_itself() -> None:
    tree: JsonObject = {"type": "object", "properties": {"name": TEXT, "child": {"$ref": "#/$defs/tree"}}}
    parameters, is_whole = await usable_parameters("t", with_definitions({"$ref": "#/$defs/tree"}, {"tree": tree}))
    assert is_whole
    assert check_arguments("t", parameters, {"a": {"child": {"name": "x"}}})
    with pytest.raises(ToolError):
        check_arguments("t", parameters, {"a": {"child": {"name": [1]}}})


async def test_parameters_behind_a_reference_have_their_names_at_the_top() -> None:
    schema: JsonObject = {"$ref": "#/definitions/In", "definitions": {"In": with_property(TEXT, required=["a"])}}
    parameters, _ = await usable_parameters("t", schema)
    assert parameters["properties"] == {"a": TEXT} and parameters["required"] == ["a"]


def nested(levels: int, text: str) -> JsonObject:
    """Return a schema whose parts refer twice to the next one: small as it is, 2 to the `levels` if written out."""
    names = [f"d{level}" for level in range(levels)]
    parts: JsonObject = {
        name: {"type": "object", "properties": {side: {"$ref": f"#/$defs/{following}"} for side in "lr"}}
        for name, following in zip(names, [*names[1:], "end"], strict=True)
    }
    return with_definitions({"$ref": "#/$defs/d0"}, {**parts, "end": {"type": "string", "description": text}})


@pytest.mark.parametrize("levels", [4, 13, 30])
async def test_shared_definitions_are_never_written_out(levels: int) -> None:
    schema = nested(levels, "x" * 10_000)
    parameters, _ = await usable_parameters("t", schema)
    assert len(msgspec.json.encode(parameters)) <= len(msgspec.json.encode(schema)) + 100
    assert check_arguments("t", parameters, {"a": {"l": {"r": {}}}})


@pytest.mark.parametrize("levels", [3, 30])
def test_references_are_written_out_within_a_bound_for_those_who_take_none(levels: int) -> None:
    encoded = msgspec.json.encode(without_references(nested(levels, "x" * 1_000)))
    assert b"$" not in encoded and len(encoded) < 150_000
    assert levels > 3 or encoded.count(b"xxxx") >= 8


async def test_the_schemas_of_one_server_and_of_all_are_bounded() -> None:
    used: dict[str, int] = {}
    entries: list[JsonValue] = [
        {"name": f"t{number}", "inputSchema": with_property({"type": "string", "description": "x" * 90_000})}
        for number in range(30)
    ]
    counts: list[int] = []
    for server in range(6):
        listed = await checked_tools("s", entries, SchemaRoom(used, str(server)))
        counts.append(len(listed.tools))
        assert any("too large" in note for note in listed.notes)
        assert used.get(str(server), 0) <= 2 * 1024 * 1024
    assert counts[:3] == [23] * 3 and sum(counts) < 23 * 5 and sum(used.values()) <= 8 * 1024 * 1024
    SchemaRoom(used, "0").clear()
    assert len((await checked_tools("s", entries, SchemaRoom(used, "5"))).tools) == 23


def test_references_that_lead_deeper_and_deeper_are_written_out_within_a_bound() -> None:
    definitions: JsonObject = {f"part{index}": deep_schema(20, f"#/$defs/part{index + 1}") for index in range(60)}
    schema: JsonObject = {"type": "object", "properties": {"x": {"$ref": "#/$defs/part0"}}, "$defs": definitions}
    written_out = msgspec.json.encode(without_references(schema))
    assert written_out.count(b'{"properties"') >= 20
    assert b"$ref" not in written_out


def deep_schema(levels: int, reference: str) -> JsonObject:
    schema: JsonObject = {"$ref": reference}
    for _ in range(levels):
        schema = {"properties": {"inner": schema}}
    return schema
