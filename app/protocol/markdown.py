"""The protocol's schema as a page to read."""

from collections.abc import Iterator

from app.protocol.json import JsonObject, JsonValue

_Lines = Iterator[str]


def page(schema: JsonObject, intro: str) -> str:
    lines = (intro.rstrip(), "", *_methods(_object(schema["methods"])), *_notices(schema), *_records(schema))
    return "\n".join(lines).rstrip() + "\n"


def _methods(methods: JsonObject) -> _Lines:
    yield from ("## Methods", "")
    yield from ("A command is done once for each client id and request id; the others only read.", "")
    yield from ("| method | | params | result | what |", "|---|---|---|---|---|")
    for name, value in methods.items():
        method = _object(value)
        kind = "command" if method["command"] else ""
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
    yield from ("| field | type | default |", "|---|---|---|")
    for name, value in fields.items():
        field = _object(value)
        default = "" if name in required else f"`{_json(field.get('default'))}`"
        yield f"| `{name}` | {_type(field)} | {default} |"
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
