"""Every struct of the protocol survives a round trip through JSON."""

import importlib
import pkgutil

import msgspec
import pytest

import errand.protocol
from errand.protocol.base import Method, Wire
from errand.protocol.events import Delta, Event
from errand.protocol.methods import METHODS, Request, Response
from tests.support.records import samples

for module in pkgutil.walk_packages(errand.protocol.__path__, "errand.protocol."):
    importlib.import_module(module.name)


def _all(kind: type[Wire]) -> list[type[Wire]]:
    return [kind, *(deeper for subclass in kind.__subclasses__() for deeper in _all(subclass))]


STRUCTS = _all(Wire)[1:]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_a_struct_comes_back_from_json_as_it_was(struct: type[Wire]) -> None:
    for sample in samples(struct):
        assert msgspec.json.decode(msgspec.json.encode(sample), type=struct) == sample


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_a_struct_refuses_a_field_it_does_not_know(struct: type[Wire]) -> None:
    data = msgspec.json.decode(msgspec.json.encode(next(samples(struct)))) | {"notAField": 1}
    with pytest.raises(msgspec.ValidationError, match="notAField"):
        msgspec.json.decode(msgspec.json.encode(data), type=struct)


@pytest.mark.parametrize("struct", [Request, Response], ids=lambda struct: struct.__name__)
def test_an_envelope_is_written_and_read_to_the_same_json(struct: type[msgspec.Struct]) -> None:
    for sample in samples(struct):
        text = msgspec.json.encode(sample)
        assert msgspec.json.encode(msgspec.json.decode(text, type=struct)) == text


def test_events_and_deltas_are_distinguished_by_their_tag() -> None:
    for union in (Event, Delta):
        for struct in union.__args__:
            for sample in samples(struct):
                assert msgspec.json.decode(msgspec.json.encode(sample), type=union) == sample


def test_method_names_are_unique_and_written_as_resource_and_verb() -> None:
    names = [method.name for method in METHODS]
    assert sorted(set(names)) == sorted(names)
    of_the_connection = {"challenge", "initialize", "subscribe", "unsubscribe"}
    assert {name for name in names if "/" not in name} == of_the_connection


def test_every_declared_method_is_in_the_table() -> None:
    module_infos = pkgutil.walk_packages(errand.protocol.__path__, "errand.protocol.")
    modules = [importlib.import_module(module.name) for module in module_infos]
    declared = {name for module in modules for name, value in vars(module).items() if isinstance(value, Method)}
    assert len(declared) == len(METHODS)


def test_every_derived_id_is_an_optional_text_of_its_command() -> None:
    derived = [(method, method.makes.field.split(".")) for method in METHODS if method.makes is not None]
    assert len(derived) == 10
    for method, path in derived:
        assert method.changes
        owner: type[Wire] = method.params
        for name in path[:-1]:
            owner = _field(owner, name).type
        field = _field(owner, path[-1])
        assert (field.type, field.default) == (str | None, None)


def _field(struct: type[Wire], name: str) -> msgspec.structs.FieldInfo:
    return next(field for field in msgspec.structs.fields(struct) if field.name == name)
