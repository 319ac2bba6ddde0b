"""One connection to a server, in the protocol's words: handshake, lists, calls, resources, prompts."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.mcp.definitions import SchemaRoom, ToolList, checked_tools, names_of
from errand.engine.tools.mcp.json_rpc import McpError, OnProgress, RpcPeer
from errand.engine.tools.plain_text import clean_output
from errand.protocol.base import JsonObject, JsonValue
from errand.text.redaction import redact_json, short_line

# The newest first: it is offered, and the server answers with one that it speaks.
PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_START_S = 60.0
_LIST_S = 30.0
_MAX_PAGES = 50
_MAX_LIST_ENTRIES = 2_000
_MAX_LIST_BYTES = 8 * 1024 * 1024
_MAX_INSTRUCTIONS_LENGTH = 4_000
_MAX_TITLE_READ, _MAX_TITLE_LENGTH = 1_000, 100
_MAX_PROMPT_NAME = 1_000


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The description that a server gave of itself at the handshake."""

    title: str
    version: str
    protocol: str
    instructions: str
    has_tools: bool
    has_resources: bool
    has_prompts: bool


class McpConnection:
    """A connection after its handshake. Each method raises `McpError`.

    What a server says of itself, its tools, resources and prompts has no keys; results of calls come as they are.
    """

    def __init__(self, server: str, peer: RpcPeer, facts: ServerFacts, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._server = server
        self._peer = peer
        self.facts = facts
        self.tools = ToolList()

    async def load_tools(self, room: SchemaRoom) -> None:
        """Read the list of tools again."""
        if self.facts.has_tools:
            self.tools = await checked_tools(self._server, await self._pages("tools/list", "tools"), room, self._redact)

    async def call(
        self, tool: str, arguments: JsonObject, timeout_s: float, cancel: CancelSignal, on_progress: OnProgress
    ) -> JsonObject:
        params: JsonObject = {"name": tool, "arguments": arguments}
        return await self._peer.request("tools/call", params, timeout_s, cancel, on_progress)

    async def resources(self) -> tuple[JsonObject, ...]:
        """Return what it lists, and the templates of what can be read besides."""
        if not self.facts.has_resources:
            return ()
        listed = await self._pages("resources/list", "resources")
        with suppress(McpError):  # optional in the protocol
            listed += await self._pages("resources/templates/list", "resourceTemplates")
        return await asyncio.to_thread(_without_keys, listed, self._redact)

    async def read_resource(self, uri: str, timeout_s: float, cancel: CancelSignal) -> tuple[JsonObject, ...]:
        answer = await self._peer.request("resources/read", {"uri": uri}, timeout_s, cancel)
        return names_of(answer, "contents")

    async def prompts(self) -> tuple[JsonObject, ...]:
        """Return the prompts whose names have no key: a prompt is asked for by its name."""
        if not self.facts.has_prompts:
            return ()
        listed = await self._pages("prompts/list", "prompts")
        named = [entry for entry in listed if _is_usable_name(entry.get("name"), self._redact)]
        return await asyncio.to_thread(_without_keys, named, self._redact)

    async def prompt(self, name: str, arguments: dict[str, str], timeout_s: float) -> tuple[JsonObject, ...]:
        """Return the messages of a prompt."""
        params: JsonObject = {"name": name, "arguments": dict(arguments)}
        messages = names_of(await self._peer.request("prompts/get", params, timeout_s), "messages")
        return await asyncio.to_thread(_without_keys, messages, self._redact)

    async def _pages(self, method: str, key: str) -> list[JsonObject]:
        entries: list[JsonObject] = []
        size = 0
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            answer = await self._peer.request(method, {"cursor": cursor} if cursor else {}, _LIST_S)
            size += len(msgspec.json.encode(answer))
            entries += names_of(answer, key)
            following = answer.get("nextCursor")
            if not isinstance(following, str) or not following:
                break
            if size > _MAX_LIST_BYTES or len(entries) > _MAX_LIST_ENTRIES:  # what was read is enough
                break
            cursor = following
        return entries[:_MAX_LIST_ENTRIES]


async def shake_hands(
    server: str, peer: RpcPeer, use_version: Callable[[str], None], redact: Callable[[str], str]
) -> McpConnection:
    """Begin the session. `use_version` gets the version of the protocol before anything else is sent."""
    params: JsonObject = {
        "protocolVersion": PROTOCOL_VERSIONS[0],
        "capabilities": {},
        "clientInfo": {"name": "errand", "version": version("errand-desktop")},
    }
    answer = await peer.request("initialize", params, _START_S)
    protocol = answer.get("protocolVersion")
    if protocol not in PROTOCOL_VERSIONS:
        raise McpError(f"It speaks version {str(protocol)[:40]!r} of the protocol, which is not known here.")
    use_version(str(protocol))
    peer.notify("notifications/initialized")
    return McpConnection(server, peer, _facts(answer, str(protocol), redact), redact)


def _facts(answer: JsonObject, protocol: str, redact: Callable[[str], str]) -> ServerFacts:
    info, capabilities = answer.get("serverInfo"), answer.get("capabilities")
    about = info if isinstance(info, dict) else {}
    can = capabilities if isinstance(capabilities, dict) else {}
    return ServerFacts(
        title=_short(about.get("title") or about.get("name"), redact),
        version=_short(about.get("version"), redact),
        protocol=protocol,
        instructions=redact(_text(answer.get("instructions"), 2 * _MAX_INSTRUCTIONS_LENGTH))[:_MAX_INSTRUCTIONS_LENGTH],
        has_tools=_has(can, "tools"),
        has_resources=_has(can, "resources"),
        has_prompts=_has(can, "prompts"),
    )


def _without_keys(entries: Sequence[JsonObject], redact: Callable[[str], str]) -> tuple[JsonObject, ...]:
    return tuple({name: redact_json(value, redact) for name, value in entry.items()} for entry in entries)


def _is_usable_name(name: JsonValue, redact: Callable[[str], str]) -> bool:
    return isinstance(name, str) and len(name) <= _MAX_PROMPT_NAME and redact(name) == name


def _has(capabilities: JsonObject, name: str) -> bool:
    """Return True for a capability that is named, as an object or in another form."""
    return capabilities.get(name) not in (None, False)


def _short(value: JsonValue, redact: Callable[[str], str]) -> str:
    return short_line(_text(value, _MAX_TITLE_READ), _MAX_TITLE_LENGTH, redact)


def _text(value: JsonValue, limit: int) -> str:
    """Return the beginning of a text; to search all of a long one for keys would take seconds."""
    return clean_output(value[:limit].encode("utf-8", "replace")) if isinstance(value, str) else ""
