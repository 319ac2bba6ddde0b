"""Writes the protocol down from its declarations: docs/protocol.json (JSON Schema 2020-12) and docs/protocol.md.

`python -m app.protocol.schema` writes both, with `--check` it says which are not current and exits 1.
"""

import inspect
import sys
from pathlib import Path

import msgspec

from app.protocol.endpoint import Endpoint
from app.protocol.events import Delta, Event, EventRecord, Resync
from app.protocol.health import HealthUpdate
from app.protocol.json import JsonObject
from app.protocol.markdown import page
from app.protocol.wire import METHODS, Failure

_REF = "#/$defs/{name}"


def schema() -> JsonObject:
    """One JSON Schema: `$defs` has every struct, `methods` and `notices` say which one goes where."""
    roots = [method.params for method in METHODS] + [method.result for method in METHODS]
    types = [*roots, Event, Delta, EventRecord, Resync, HealthUpdate, Failure, Endpoint]
    shapes, definitions = msgspec.json.schema_components(types, ref_template=_REF)
    for definition in definitions.values():
        if "description" in definition:  # Python before 3.13 leaves docstrings indented
            definition["description"] = inspect.cleandoc(definition["description"])
    methods: JsonObject = {}
    for method, params, result in zip(METHODS, shapes, shapes[len(METHODS) :], strict=False):
        methods[method.name] = {
            "description": method.about,
            "command": method.changes,
            "params": params,
            "result": result,
        }
    event, delta, record, resync = shapes[len(roots) : len(roots) + 4]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol between Errand's engine and its faces",
        "methods": methods,
        "notices": {"event": record, "delta": delta, "resync": resync},
        "events": event,
        "$defs": dict(sorted(definitions.items())),
    }


def documents(folder: Path) -> dict[Path, str]:
    """The two files with the text that they should have. `protocol_intro.md` there is written by hand."""
    declared = schema()
    intro = (folder / "protocol_intro.md").read_text(encoding="utf-8")
    as_json = msgspec.json.format(msgspec.json.encode(declared), indent=2).decode()
    return {folder / "protocol.json": as_json + "\n", folder / "protocol.md": page(declared, intro)}


def main(arguments: list[str], folder: Path = Path("docs")) -> int:
    wrong = {file: text for file, text in documents(folder).items() if _text(file) != text}
    if "--check" in arguments:
        for file in wrong:
            sys.stderr.write(f"{file} is not current: run python -m app.protocol.schema\n")
        return 1 if wrong else 0
    for file, text in wrong.items():
        file.write_text(text, encoding="utf-8")
    return 0


def _text(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
