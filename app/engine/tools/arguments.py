"""Arguments of tools: declared once as msgspec structs, from which the JSON Schema for the model is derived."""

from typing import TypeVar, cast

import msgspec

from app.engine.tools.base import ToolError
from app.protocol.json import JsonObject, JsonValue

T = TypeVar("T", bound=msgspec.Struct)


def schema_of(arguments: type[msgspec.Struct]) -> JsonObject:
    """A plain JSON Schema of type object, without references: several providers refuse them."""
    schema = cast(JsonObject, msgspec.json.schema(arguments))
    definitions = cast(JsonObject, schema.pop("$defs", {}))
    plain = cast(JsonObject, _inline(schema, definitions))
    return {key: plain[key] for key in ("type", "properties", "required") if key in plain}


def decode(arguments: JsonObject, into: type[T]) -> T:
    """Raw arguments as the struct; unknown fields are let pass, for models like to add some."""
    try:
        return msgspec.convert(arguments, into, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"Wrong arguments: {error}") from error


def _inline(value: JsonValue, definitions: JsonObject) -> JsonValue:
    if isinstance(value, list):
        return [_inline(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        return _inline(definitions[reference.removeprefix("#/$defs/")], definitions)
    return {key: _inline(item, definitions) for key, item in value.items()}
