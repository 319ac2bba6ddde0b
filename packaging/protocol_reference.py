"""The reference of the protocol, from its declarations: a JSON Schema and a page. `reference_pages.py` writes them."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from errand.protocol.base import JsonObject, JsonValue, Wire
from errand.protocol.engine import Endpoint, HealthUpdate
from errand.protocol.events import Delta, Event, LogRecord, Resync
from errand.protocol.methods import METHODS, FailureObject
from errand.protocol.tasks.change import TaskChange

_Lines = Iterator[str]

_REF = "#/$defs/{name}"
_FIELD_HEADING = ("| field | type | default |", "|---|---|---|")


def protocol_page(schema: JsonObject, intro: str) -> str:
    """docs/protocol.md: the introduction, then methods, notices and records."""
    lines = (intro.rstrip(), "", *_methods(_object(schema["methods"])), *_notices(schema), *_records(schema))
    return "\n".join(lines).rstrip() + "\n"


def _methods(methods: JsonObject) -> _Lines:
    yield from ("## Methods", "")
    yield from ("A command is done once for each client id and request id; the others only read.", "")
    derived = "A command that derives a field makes the object with that id; if the field is null, the engine fills it"
    yield from (f"{derived} from the client id and the request id, so that a repeated command finds that object.", "")
    yield from ("| method | | params | result | what |", "|---|---|---|---|---|")
    for name, value in methods.items():
        method = _object(value)
        kind = "command" if method["command"] else ""
        if "derives" in method:
            kind = f"command, derives `{_object(method['derives'])['field']}`"
        params, result = _type(_object(method["params"])), _type(_object(method["result"]))
        yield f"| `{name}` | {kind} | {params} | {result} | {method['description']} |"
    yield ""


def _notices(schema: JsonObject) -> _Lines:
    yield from ("## What the engine sends unasked", "")
    yield from ("| method | params |", "|---|---|")
    for name, shape in _object(schema["notices"]).items():
        yield f"| `{name}` | {_type(_object(shape))} |"
    yield from ("", f"An event is one of {_type(_object(schema['events']))}.", "")


def _records(schema: JsonObject) -> _Lines:
    yield from ("## Records", "")
    for name, value in _object(schema["$defs"]).items():
        record = _object(value)
        yield from (f"### {name}", "")
        if "description" in record:
            yield from (str(record["description"]), "")
        yield from _fields(record)


def _fields(record: JsonObject) -> _Lines:
    required = record.get("required", [])
    assert isinstance(required, list)
    fields = _object(record.get("properties", {}))
    if not fields:
        yield from ("No fields.", "")
        return
    has_texts = any("description" in _object(field) for field in fields.values())
    yield from ("| field | type | default | |", "|---|---|---|---|") if has_texts else _FIELD_HEADING
    for name, shape in fields.items():
        field = _object(shape)
        value = field.get("default")
        default = "" if name in required else "its defaults" if isinstance(value, dict) else f"`{_json(value)}`"
        text = f" {field.get('description', '')} |" if has_texts else ""
        yield f"| `{name}` | {_type(field)} | {default} |{text}"
    yield ""


def _type(shape: JsonObject) -> str:
    match shape:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"anyOf": list(options)}:
            return " or ".join(_type(_object(option)) for option in options)
        case {"enum": list(values)}:
            return ", ".join(f"`{_json(value)}`" for value in values)
        case {"type": "array", "items": dict(items)}:
            return f"list of {_type(items)}"
        case {"type": "string", "format": "date-time"}:
            return "time"
        case {"type": str(name)}:
            return name
        case _:
            return "any JSON"


def _json(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def _object(value: JsonValue) -> JsonObject:
    assert isinstance(value, dict)
    return value


def protocol_schema() -> JsonObject:
    """One JSON Schema: `$defs` has every struct, `methods` and `notices` refer to them."""
    roots = [method.params for method in METHODS] + [method.result for method in METHODS]
    types = [*roots, Event | TaskChange, Delta, LogRecord, Resync, HealthUpdate, FailureObject, Endpoint]
    shapes, definitions = msgspec.json.schema_components(types, ref_template=_REF)
    for definition in definitions.values():
        if "description" in definition:  # Python before 3.13 leaves docstrings indented
            definition["description"] = inspect.cleandoc(definition["description"])
    for struct in _structs(Wire):
        properties = definitions.get(struct.__name__, {}).get("properties", {})
        for name, text in _field_texts(struct):
            properties[_wire_path(name)]["description"] = text
    methods: JsonObject = {}
    for method, params, result in zip(METHODS, shapes, shapes[len(METHODS) :], strict=False):
        entry: JsonObject = {"description": method.about, "command": method.changes, "params": params, "result": result}
        if method.makes is not None:
            entry["derives"] = {"field": _wire_path(method.makes.field), "prefix": method.makes.prefix}
        methods[method.name] = entry
    event, delta, record, resync = shapes[len(roots) : len(roots) + 4]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol between Errand's engine and its clients",
        "methods": methods,
        "notices": {"event": record, "delta": delta, "resync": resync},
        "events": event,
        "$defs": dict(sorted(definitions.items())),
    }


def _structs(base: type[Wire]) -> Iterator[type[Wire]]:
    for struct in base.__subclasses__():
        if struct.__module__.startswith("errand.protocol."):
            yield struct
            yield from _structs(struct)


def _field_texts(struct: type[Wire]) -> Iterator[tuple[str, str]]:
    """Yield the names and the docstrings of the fields that have one: a string below the field."""
    (declaration,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(declaration, ast.ClassDef)
    for field, text in pairwise(declaration.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                yield name, " ".join(docstring.split())
            case _:
                pass


def _wire_path(path: str) -> str:
    """`new_task_id` as it is called on the wire: `newTaskId`."""
    first, *others = path.split("_")
    return first + "".join(word.capitalize() for word in others)
