"""What a server offers, checked: names for models, descriptions of bounded size, schemas that can be used."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.tools.answer_schema import usable_schema
from errand.engine.tools.plain_text import clean_output, without_hidden
from errand.protocol.base import JsonObject, JsonValue

MOST_TOOLS = 300
_LONGEST_DESCRIPTION = 8_000
_LONGEST_TOOL_NAME = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 6
SEPARATOR = "__"
# Of a tool without parameters; some servers leave parts of it out.
_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}
# Keywords that say nothing about arguments, but name another draft than the checker knows.
_LEFT_OUT = ("$schema", "$id", "$comment")


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server. `name` is the one that models use, `own_name` that of the server.

    `fingerprint` covers what the server says about it: the description and the parameters.
    """

    name: str
    own_name: str
    description: str
    parameters: JsonObject
    fingerprint: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class ToolList:
    """The tools of a server, and why others are left out."""

    tools: tuple[ServerTool, ...] = ()
    notes: tuple[str, ...] = ()


async def checked_tools(server: str, raw: Iterable[JsonValue]) -> ToolList:
    """The usable tools of a server's list, in its order."""
    tools: dict[str, ServerTool] = {}
    notes: list[str] = []
    seen: set[str] = set()
    for entry in raw:
        if len(tools) >= MOST_TOOLS:
            notes.append(f"It has more than {MOST_TOOLS} tools; the others are left out.")
            break
        try:
            tool = await _checked(server, entry)
        except InvalidParams as problem:
            notes.append(str(problem))
            continue
        if tool.own_name in seen or tool.name in tools:
            notes.append(f"{_shown(tool.own_name)}: there are two tools of this name; the second is left out.")
            continue
        seen.add(tool.own_name)
        tools[tool.name] = tool
    return ToolList(tuple(tools.values()), tuple(notes))


async def _checked(server: str, entry: JsonValue) -> ServerTool:
    if not isinstance(entry, dict):
        raise InvalidParams("A tool that is no object is left out.")
    name = entry.get("name")
    # In rules `*` stands for all tools of a server.
    if not isinstance(name, str) or not re.fullmatch(r"[^*]{1,200}", name) or not name.isprintable():
        raise InvalidParams("A tool without a usable name is left out.")
    description, title = entry.get("description"), entry.get("title")
    chosen = description if isinstance(description, str) and description.strip() else title
    text = without_hidden(clean_output(chosen.encode("utf-8", "replace"))) if isinstance(chosen, str) else ""
    if len(text) > _LONGEST_DESCRIPTION:
        raise InvalidParams(f"{_shown(name)} is left out: its description has {len(text):,} characters.")
    schema = entry.get("inputSchema")
    parameters = _parameters(schema) if isinstance(schema, dict) else None
    if parameters is None:
        raise InvalidParams(f"{_shown(name)} is left out: its parameters are no JSON Schema of an object.")
    fingerprint = _fingerprint(text, parameters)
    try:
        parameters = await usable_schema(name, parameters)
    except InvalidParams as problem:
        raise InvalidParams(f"{_shown(name)} is left out: {problem}") from problem
    hints = entry.get("annotations")
    return ServerTool(
        tool_name(server, name),
        name,
        text,
        parameters,
        fingerprint,
        read_only=isinstance(hints, dict) and hints.get("readOnlyHint") is True,
    )


def _parameters(schema: JsonObject) -> JsonObject | None:
    if schema.get("type", "object") != "object":
        return None
    kept = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    # The model reads the descriptions of the parameters too.
    shown = without_hidden(msgspec.json.encode(kept).decode())
    return {**_NO_PARAMETERS, **msgspec.json.decode(shown, type=JsonObject)}


def _fingerprint(description: str, parameters: JsonObject) -> str:
    whole = msgspec.json.encode((description, parameters), order="sorted")
    return hashlib.blake2b(whole, digest_size=16).hexdigest()


def tool_name(server: str, own_name: str) -> str:
    """`server__tool` in the characters and length that all providers take.

    A name that had to be changed ends with a hash of what it was, so that it stays the same whatever other tools
    there are.
    """
    plain = f"{server}{SEPARATOR}{own_name}"
    name = _NOT_IN_NAMES.sub("_", plain)
    if name == plain and len(name) <= _LONGEST_TOOL_NAME:
        return name
    end = hashlib.blake2b(plain.encode(), digest_size=8).hexdigest()[:_HASH]
    return f"{name[: _LONGEST_TOOL_NAME - _HASH - 1]}_{end}"


def is_service_tool(name: str) -> bool:
    """True for the name of a tool of a server."""
    return SEPARATOR in name.strip("_")


def _shown(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:80]}…"


def changed_text(before: str, tool: ServerTool) -> str:
    """What has changed in the description, for the person who decides."""
    if before == tool.description:
        return "Its parameters have changed. Its description is the same."
    return f"It said before:\n{before}\n\nIt says now:\n{tool.description}"


def names_of(content: JsonValue, key: str) -> tuple[JsonObject, ...]:
    """The objects of a list in a result; anything else is left out."""
    listed = content.get(key) if isinstance(content, dict) else None
    return tuple(cast(JsonObject, one) for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()
