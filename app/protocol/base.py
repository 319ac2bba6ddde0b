"""The base of wire structs, the JSON type, and `Method`."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec

Timestamp: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class Wire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=False):
    """A record on the wire. Names are snake_case here and camelCase in JSON."""


if TYPE_CHECKING:
    JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
else:
    JsonValue = Any  # msgspec cannot follow a recursive alias; it decodes any JSON value here

JsonObject: TypeAlias = dict[str, JsonValue]


P = TypeVar("P", bound=Wire)

R = TypeVar("R", bound=Wire)


class Method(msgspec.Struct, Generic[P, R], frozen=True):
    """A protocol method. `changes` marks commands, which run once per client and request id even when sent again."""

    name: str
    params: type[P]
    result: type[R]
    changes: bool
    about: str


class EmptyParams(Wire, frozen=True, kw_only=True):
    pass


class EmptyResult(Wire, frozen=True, kw_only=True):
    pass
