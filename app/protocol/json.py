"""The type of a JSON value, for what enters and leaves as JSON and has no shape of ours."""

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
else:
    JsonValue = Any  # msgspec cannot follow a recursive alias; it decodes any JSON value here

JsonObject: TypeAlias = dict[str, JsonValue]
