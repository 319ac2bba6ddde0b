"""The base of wire structs, the JSON type, and `Method`."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

Timestamp: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class Wire(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename="camel",
    omit_defaults=False,
    gc=False,
):
    """A record on the wire. Names are snake_case here and camelCase in JSON.

    Records cannot refer to themselves, so the garbage collector need not look at them: with 50,000 nodes in memory
    one collection took 40 ms.
    """


if TYPE_CHECKING:
    JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
else:
    JsonValue = Any  # msgspec cannot follow a recursive alias; it decodes any JSON value here

JsonObject: TypeAlias = dict[str, JsonValue]

# The decision of a person about what files of a workspace bring.
Trust: TypeAlias = Literal["trusted", "declined", "unknown"]


P = TypeVar("P", bound=Wire)

R = TypeVar("R", bound=Wire)


class DerivedId(msgspec.Struct, frozen=True):
    """A field of a command's params that holds the id of the object it makes.

    An engine may die between running a command and storing its answer. So the engine derives the id from the command if
    the client chose none: a repeated command finds the existing object. `field` may be a path, such as `start.task_id`.
    """

    field: str
    prefix: str


class Method(msgspec.Struct, Generic[P, R], frozen=True):
    """A protocol method. `changes` marks commands, which run once per client and request id even when sent again."""

    name: str
    params: type[P]
    result: type[R]
    changes: bool
    about: str
    makes: DerivedId | None = None


class EmptyParams(Wire, frozen=True, kw_only=True):
    pass


class EmptyResult(Wire, frozen=True, kw_only=True):
    pass
