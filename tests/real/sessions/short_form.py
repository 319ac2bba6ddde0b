"""The short form of sessions, small enough to be checked in: same records, without the programs' long instructions.

Long texts are cut, folders of this machine are replaced, and OpenCode's database becomes the statements that make it.
"""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from errand.protocol.base import JsonValue

_MAX_VALUE_LENGTH = 400
_ENDING = 40  # a summary of Codex ends with the agent's words
_MAX_FILE_LENGTH = 3_000
# Of no use to a reader, and long.
_DROPPED = ("base_instructions", "dynamic_tools", "usage", "rate_limits", "permissions", "settings", "extensions")
# Of the databases of OpenCode and goose.
_TABLES = ("session", "message", "part", "sessions", "messages")
_ENDINGS = (".jsonl", ".json", ".txt", ".db")


def shorten(sessions: Path, to: Path, replaced: dict[str, str]) -> None:
    """`replaced` are texts and what stands for them, such as folders. `to` is made anew."""
    shutil.rmtree(to, ignore_errors=True)
    for file in sorted(sessions.rglob("*")):
        if not file.is_file() or file.suffix not in _ENDINGS:
            continue
        target = to / _with(replaced, str(file.relative_to(sessions)))
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".db":
            target.with_suffix(".sql").write_text("\n".join(_statements(file, replaced)) + "\n")
            continue
        text = _with(replaced, file.read_text())
        if file.suffix == ".txt":
            target.write_text(text[:_MAX_FILE_LENGTH] + "\nThe end of a long output.\n")
            continue
        if file.suffix == ".json":
            target.write_text(json.dumps(_short(json.loads(text)), ensure_ascii=False) + "\n")
            continue
        lines = [json.dumps(_short(json.loads(line)), ensure_ascii=False) for line in text.splitlines() if line]
        target.write_text("\n".join(lines) + "\n")


def _statements(file: Path, replaced: dict[str, str]) -> Iterator[str]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        schemas = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
        for table in (name for name in _TABLES if name in schemas):
            yield f"{schemas[table]};"
            for row in connection.execute(f"SELECT * FROM {table}"):
                values = (_quoted(_with(replaced, _text(value)) if isinstance(value, str) else value) for value in row)
                yield f"INSERT INTO {table} VALUES ({', '.join(values)});"


def _text(text: str) -> str:
    try:
        return json.dumps(_short(json.loads(text)), ensure_ascii=False)
    except ValueError:
        return text


def _quoted(value: str | float | None) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _short(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return {key: _short(item) for key, item in value.items() if key not in _DROPPED}
        case list():
            return [_short(item) for item in value]
        case str() if len(value) > _MAX_VALUE_LENGTH + _ENDING:
            return f"{value[:_MAX_VALUE_LENGTH]}…{value[-_ENDING:]}"
        case _:
            return value


def _with(replaced: dict[str, str], text: str) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new).replace(old.replace("/", "-"), new.replace("/", "-"))
    return text
