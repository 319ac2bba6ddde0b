"""Arguments of calls: their schema for the model, and their reading into structs."""

from collections.abc import Mapping
from typing import TypeVar, cast

import msgspec

from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject, JsonValue

T = TypeVar("T", bound=msgspec.Struct)

_MAX_WHOLE_NUMBER = 2**53


def text_argument(arguments: JsonObject, name: str) -> str:
    """Return a text of raw arguments or of details; empty if it is missing or no text."""
    value = arguments.get(name)
    return value if isinstance(value, str) else ""


def whole_number(value: JsonValue) -> int | None:
    """Return a count, a time in milliseconds or a line; None if it is no such number, or larger than JSON can hold."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MAX_WHOLE_NUMBER else None


def schema_of(arguments: type[msgspec.Struct]) -> JsonObject:
    """Return a plain JSON Schema of type object, without references, which several providers reject."""
    schema = cast(JsonObject, msgspec.json.schema(arguments))
    definitions = cast(dict[str, JsonObject], schema.pop("$defs", {}))
    # Each request holds the schema: the names of our structs and empty defaults tell a model nothing.
    unnamed: JsonObject = {
        name: {key: value for key, value in definition.items() if key != "title"}
        for name, definition in definitions.items()
    }
    plain = cast(JsonObject, _inline(schema, unnamed))
    return {key: plain[key] for key in ("type", "properties", "required") if plain.get(key)}


def renamed(arguments: JsonObject, other_names: Mapping[str, str]) -> JsonObject:
    """Return the arguments with the tool's own names for those that models call otherwise."""
    own = dict(arguments)
    for other, name in other_names.items():
        if other in own and name not in own:
            own[name] = own.pop(other)
    return own


def decode(arguments: JsonObject, into: type[T]) -> T:
    """Convert raw arguments to the struct; ignores unknown fields, since models add some."""
    try:
        return msgspec.convert(arguments, into, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"Wrong arguments: {error}", "wrong arguments") from error


def _inline(value: JsonValue, definitions: JsonObject) -> JsonValue:
    if isinstance(value, list):
        return [_inline(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        return _inline(definitions[reference.removeprefix("#/$defs/")], definitions)
    return {key: _inline(item, definitions) for key, item in value.items() if key != "default" or item}
