"""Instances of any wire struct, made from its types: one with the required fields alone, and full ones."""

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from app.protocol.json import JsonObject

S = TypeVar("S", bound=msgspec.Struct)

_JSON: JsonObject = {"text": 'q" \\ \u2028 é 🙂', "list": [1, 2.5, None, True], "empty": {}}

_PLAIN: dict[type[inspect.Type], Callable[[], list[object]]] = {
    inspect.AnyType: lambda: [_JSON, None, 7],
    inspect.NoneType: lambda: [None],
    inspect.BoolType: lambda: [True, False],
    inspect.IntType: lambda: [0, 2**53],
    inspect.FloatType: lambda: [0.25, 1e-9],
    inspect.StrType: lambda: ['q" \\ \u2028 é 🙂', ""],
    inspect.DateTimeType: lambda: [datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC)],
    inspect.DateType: lambda: [date(2026, 11, 20)],
    inspect.RawType: lambda: [msgspec.Raw(b'{"a":[1]}')],
}


def samples(struct: type[S]) -> Iterator[S]:
    """The minimal instance, then as many full ones as the field with the most variants has."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    required = {field.name: _values(field.type)[0] for field in info.fields if field.required}
    yield struct(**required)
    values = {field.name: _values(field.type) for field in info.fields}
    for index in range(max((len(some) for some in values.values()), default=0)):
        yield struct(**{name: some[index % len(some)] for name, some in values.items()})


def _values(kind: inspect.Type) -> list[Any]:
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)]()
    match kind:
        case inspect.Metadata():
            return _values(kind.type)
        case inspect.LiteralType():
            return list(kind.values)
        case inspect.UnionType():
            return list(itertools.chain.from_iterable(_values(one) for one in kind.types))
        case inspect.TupleType():
            return [tuple(_values(one)[0] for one in kind.item_types)]
        case inspect.VarTupleType():
            some = _values(kind.item_type)
            return [tuple(some), ()]
        case inspect.DictType():
            return [dict.fromkeys(_values(kind.key_type), _values(kind.value_type)[0]), {}]
        case inspect.StructType():
            return list(samples(kind.cls))
        case _:
            raise AssertionError(f"no sample of {kind}")
