"""What a server offers, checked: names for models, descriptions of bounded size, schemas that can be used."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.core.fair_share import short_switches
from errand.engine.tools.mcp.schemas import NO_PARAMETERS, usable_parameters
from errand.engine.tools.plain_text import clean_output, without_hidden
from errand.protocol.base import JsonObject, JsonValue
from errand.text.redaction import redact, redact_json

MAX_TOOLS = 300
MAX_SCHEMA_BYTES = 2 * 1024 * 1024
MAX_SCHEMA_BYTES_IN_ALL = 8 * 1024 * 1024
_MAX_NOTES = 400
_MAX_DESCRIPTION_LENGTH = 8_000
# Of a longer text only this beginning is read: to search megabytes for keys would take seconds.
_MAX_READ_CHARACTERS = 64 * 1024
_MAX_TOOL_NAME_LENGTH = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 6
SEPARATOR = "__"
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

    @property
    def identity(self) -> str:
        """Its own name with the fingerprint: what a rule for it is bound to."""
        return f"{self.own_name}:{self.fingerprint}"


@dataclass(frozen=True, slots=True)
class ToolList:
    """The tools of a server, and why others are left out."""

    tools: tuple[ServerTool, ...] = ()
    notes: tuple[str, ...] = ()


class SchemaRoom:
    """The memory that the parameters of a server's tools may take: `used` counts them for all servers, by owner."""

    def __init__(self, used: dict[str, int], owner: str) -> None:
        self._used = used
        self._owner = owner

    def clear(self) -> None:
        """Count from the start, for a new list of tools or the end of the server."""
        self._used.pop(self._owner, None)

    def take(self, size: int) -> bool:
        """Count the parameters of a tool; returns False if there is no room for them."""
        own = self._used.get(self._owner, 0) + size
        if own > MAX_SCHEMA_BYTES or sum(self._used.values()) + size > MAX_SCHEMA_BYTES_IN_ALL:
            return False
        self._used[self._owner] = own
        return True


async def checked_tools(
    server: str, raw: Iterable[JsonValue], room: SchemaRoom, redact: Callable[[str], str] = redact
) -> ToolList:
    """Return the usable tools of a server's list, in its order. What they say is read without keys."""
    tools: dict[str, ServerTool] = {}
    notes: list[str] = []
    own_names: set[str] = set()
    room.clear()
    for entry in raw:
        if len(tools) >= MAX_TOOLS:
            notes.append(f"It has more than {MAX_TOOLS} tools; the others are left out.")
            break
        try:
            tool = await _checked(server, entry, room, notes, redact)
        except InvalidParams as problem:
            notes.append(str(problem))
            continue
        if tool.own_name in own_names or tool.name in tools:
            notes.append(f"{_shown(tool.own_name)}: there are two tools of this name; the second is left out.")
            continue
        own_names.add(tool.own_name)
        tools[tool.name] = tool
    return ToolList(tuple(tools.values()), tuple(notes[:_MAX_NOTES]))


async def _checked(
    server: str, entry: JsonValue, room: SchemaRoom, notes: list[str], redact: Callable[[str], str]
) -> ServerTool:
    if not isinstance(entry, dict):
        raise InvalidParams("A tool that is no object is left out.")
    name = entry.get("name")
    # In rules `*` stands for all tools of a server.
    if not isinstance(name, str) or not re.fullmatch(r"[^*]{1,200}", name) or not name.isprintable():
        raise InvalidParams("A tool without a usable name is left out.")
    if redact(name) != name:
        raise InvalidParams("A tool whose name has a key is left out.")
    with short_switches():
        text = await asyncio.to_thread(_description, entry)
        schema, size = await asyncio.to_thread(_clean_schema, entry.get("inputSchema"))
    if len(text) > _MAX_DESCRIPTION_LENGTH:
        notes.append(f"{_shown(name)}: its description has {len(text):,} characters; its beginning is used.")
    if not room.take(size):
        raise InvalidParams(f"{_shown(name)} is left out: the parameters of all tools together are too large.")
    try:
        clean_schema = await asyncio.to_thread(redact_json, schema, redact)
        parameters, is_whole = await usable_parameters(name, clean_schema)
    except InvalidParams as problem:
        raise InvalidParams(f"{_shown(name)} is left out: {problem}") from problem
    if not is_whole:
        notes.append(f"{_shown(name)}: its parameters are not a plain JSON Schema, so the server alone checks them.")
    hints = entry.get("annotations")
    return ServerTool(
        tool_name(server, name),
        name,
        redact(text[: 2 * _MAX_DESCRIPTION_LENGTH])[:_MAX_DESCRIPTION_LENGTH],
        parameters,
        _fingerprint(text, schema if isinstance(schema, dict) else NO_PARAMETERS),
        read_only=isinstance(hints, dict) and hints.get("readOnlyHint") is True,
    )


def _description(entry: JsonObject) -> str:
    description, title = entry.get("description"), entry.get("title")
    chosen = description if isinstance(description, str) and description.strip() else title
    if not isinstance(chosen, str):
        return ""
    return without_hidden(clean_output(chosen[:_MAX_READ_CHARACTERS].encode("utf-8", "replace")))


def _clean_schema(schema: JsonValue) -> tuple[JsonValue, int]:
    """Return a schema without hidden characters, since the model reads the descriptions in it, and its size."""
    if not isinstance(schema, dict):
        return schema, 0
    plain = {name: value for name, value in schema.items() if name not in _LEFT_OUT}
    encoded = without_hidden(msgspec.json.encode(plain).decode())
    return {**NO_PARAMETERS, **msgspec.json.decode(encoded, type=JsonObject)}, len(encoded.encode())


def _fingerprint(description: str, parameters: JsonObject) -> str:
    encoded = msgspec.json.encode((description, parameters), order="sorted")
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()


def tool_name(server: str, own_name: str) -> str:
    """`server__tool` in the characters and length that all providers take.

    A name that had to be changed ends with a hash of what it was, so that it stays the same whatever other tools
    there are.
    """
    plain = f"{server}{SEPARATOR}{own_name}"
    name = _NOT_IN_NAMES.sub("_", plain)
    if name == plain and len(name) <= _MAX_TOOL_NAME_LENGTH:
        return name
    end = hashlib.blake2b(plain.encode(), digest_size=8).hexdigest()[:_HASH]
    return f"{name[: _MAX_TOOL_NAME_LENGTH - _HASH - 1]}_{end}"


def is_service_tool(name: str) -> bool:
    """Return True for the name of a tool of a server."""
    return SEPARATOR in name.strip("_")


def _shown(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:80]}…"


def changed_text(before: str, tool: ServerTool) -> str:
    """Return what has changed in the description, for the person who decides."""
    if before == tool.description:
        return "Its parameters have changed. Its description is the same."
    return f"It said before:\n{before}\n\nIt says now:\n{tool.description}"


def names_of(content: JsonValue, key: str) -> tuple[JsonObject, ...]:
    """Return the objects of a list in a result, or one that stands without a list; anything else is left out."""
    listed = content.get(key) if isinstance(content, dict) else None
    if isinstance(listed, dict):
        return (listed,)
    return (
        tuple(cast(JsonObject, item) for item in listed if isinstance(item, dict)) if isinstance(listed, list) else ()
    )
