"""A tool of a server as a tool of a task, and the one tool that reads resources of servers."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import UserContent
from errand.engine.tools.arguments import decode, schema_of, text_argument
from errand.engine.tools.base import Access, ExecutionMode
from errand.engine.tools.cancellation import until_cancelled
from errand.engine.tools.context import ToolContext
from errand.engine.tools.mcp.definitions import ServerTool, changed_text, is_service_tool
from errand.engine.tools.mcp.http import LoginNeeded
from errand.engine.tools.mcp.json_rpc import McpError, McpTimeout
from errand.engine.tools.mcp.known import KnownServers
from errand.engine.tools.mcp.results import ContentReader, result_of
from errand.engine.tools.mcp.server import McpServer
from errand.engine.tools.plain_text import without_hidden
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, hidden, text_result
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import CallDisplay

# The operation of every call of a server, for rules.
CALL = "call"
RESOURCES = "resources"
_MAX_PREVIEW_LENGTH = 20_000
_MAX_ARGUMENT_BYTES = 4 * 1024 * 1024
_UPDATE_PAUSE_S = 0.1
_MAX_RESOURCES = 200


def is_tool_of_servers(name: str) -> bool:
    """Return True for a tool of a server, and for the one that reads the resources of servers."""
    return is_service_tool(name) or name == McpResources.name


class McpTool:
    """One tool of a server, for one task. Others may use the server at the same time."""

    execution_mode: ExecutionMode = "sequential"

    def __init__(self, tool: ServerTool, server: McpServer, known: KnownServers, context: ToolContext) -> None:
        self.name = tool.name
        self.label = f"{server.spec.name}: {tool.own_name}"
        self.description = tool.description or f"The tool {tool.own_name} of the server {server.spec.name}."
        self.parameters = tool.parameters
        self._tool = tool
        self._server = server
        self._known = known
        self._context = context

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return arguments

    def access(self, arguments: JsonObject) -> Access:
        tool, server = self._tool, self._server.spec
        encoded = msgspec.json.encode(arguments)
        if len(encoded) > _MAX_ARGUMENT_BYTES:
            raise ToolError(f"The arguments have {len(encoded):,} bytes; at most {_MAX_ARGUMENT_BYTES:,} are sent.")
        preview = msgspec.json.format(encoded, indent=2).decode()
        is_changed = self._known.has_tool_changed(server.id, tool)
        if is_changed and (before := self._known.tool(server.id, tool)) is not None:
            preview = f"{changed_text(before.description, tool)}\n\nThe call:\n{preview}"
        return Access(
            "run",
            f"Call {tool.own_name} of the server {server.name}",
            preview=preview[:_MAX_PREVIEW_LENGTH],
            is_partial=len(preview) > _MAX_PREVIEW_LENGTH,
            operation=CALL,
            service=f"{server.id}/{tool.own_name}",
            basis=tool.identity,
            is_changed=is_changed,
            service_tools=_identities(self._server),
        )

    def allow(self, call_id: str, access: Access) -> None:
        """A call that a person allowed after they saw what changed settles the change."""
        if not access.is_changed and self._known.has_tool_changed(self._server.spec.id, self._tool):
            self._known.accept_tool(self._server.spec.id, self._tool)

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        if cancel.is_set:
            raise ToolError("Operation aborted")
        updates, started = _Progress(on_update, self._context.redactor), time.monotonic()
        server = self._server
        try:
            connection = await until_cancelled(server.connected(), cancel)
            now = next((listed for listed in connection.tools.tools if listed.own_name == self._tool.own_name), None)
            if now is None or now.fingerprint != self._tool.fingerprint:
                raise ToolError(
                    f"The server {server.spec.name} has changed this tool meanwhile, so it was not called. Look at its "
                    "description and call it again.",
                    "the tool has changed",
                )
            answer = await connection.call(self._tool.own_name, arguments, server.spec.timeout_s, cancel, updates.put)
        except (McpError, EngineError) as error:
            raise _failure(error, server, cancel, self._context.redactor) from error
        reader = ContentReader(self._context.output_dir, call_id)
        result = await asyncio.to_thread(result_of, answer, reader)
        details: JsonObject = {"duration_ms": round((time.monotonic() - started) * 1000), "server": server.spec.name}
        return hidden(replace(result, details={**details, **(result.details or {})}), self._context.redactor)


class ResourceArguments(Struct, frozen=True):
    operation: Annotated[Literal["list", "read"], Meta(description="list what servers have to read, or read one.")]
    server: Annotated[str, Meta(description="The name of the server. Needed to read.")] = ""
    uri: Annotated[str, Meta(max_length=8_192, description="What to read, as listed or by a listed template.")] = ""


class McpResources:
    """Lists and reads the resources of servers."""

    name = "mcp"
    label = "Resources of servers"
    description = "List and read the resources that connected servers have: files, records, documents."
    parameters = schema_of(ResourceArguments)
    execution_mode: ExecutionMode = "sequential"

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        target = " ".join(filter(None, (text_argument(arguments, "server"), text_argument(arguments, "uri"))))
        is_read = text_argument(arguments, "operation") == "read"
        return CallDisplay(
            kind="fetch" if is_read else "search",
            running="reading" if is_read else "listing resources",
            done="read" if is_read else "listed resources",
            target=target,
        )

    def __init__(self, servers: Sequence[McpServer], context: ToolContext) -> None:
        self._servers = {server.spec.name: server for server in servers}
        self._context = context

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return {key: value for key, value in arguments.items() if value is not None}

    def access(self, arguments: JsonObject) -> Access:
        request = decode(arguments, ResourceArguments)
        if request.operation == "list":
            return Access("free", "List the resources of servers")
        server = self._server(request.server)
        text = f"Read {request.uri[:500]} from the server {server.spec.name}"
        return Access(
            "run",
            text,
            operation=CALL,
            service=f"{server.spec.id}/{RESOURCES}",
            preview=request.uri,
            basis=RESOURCES,
            service_tools=_identities(server),
        )

    def allow(self, call_id: str, access: Access) -> None:
        pass

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        request = decode(arguments, ResourceArguments)
        if request.operation == "list":
            return await until_cancelled(self._list(request.server), cancel)
        server = self._server(request.server)
        try:
            connection = await until_cancelled(server.connected(), cancel)
            contents = await connection.read_resource(request.uri, server.spec.timeout_s, cancel)
        except EngineError as error:
            raise _failure(error, server, cancel, self._context.redactor) from error
        reader = ContentReader(self._context.output_dir, call_id)
        content = await asyncio.to_thread(_read, contents, reader)
        return hidden(ToolResult(content, None, f"{len(contents)} read"), self._context.redactor)

    async def _list(self, name: str) -> ToolResult:
        servers = [self._server(name)] if name else list(self._servers.values())
        lines: list[str] = []
        for server in servers:
            try:
                connection = await server.connected()
                resources = await connection.resources()
            except EngineError as error:
                lines.append(f"{server.spec.name}: {self._context.redactor(str(error))}")
                continue
            lines += [f"{server.spec.name}: {_resource_line(resource)}" for resource in resources[:_MAX_RESOURCES]]
            if len(resources) > _MAX_RESOURCES:
                lines.append(f"{server.spec.name}: {len(resources) - _MAX_RESOURCES} more")
        return hidden(
            text_result("\n".join(lines) or "No server has resources.", f"{len(lines)} listed"), self._context.redactor
        )

    def _server(self, name: str) -> McpServer:
        server = self._servers.get(name)
        if server is None:
            names = ", ".join(self._servers) or "none"
            raise ToolError(f"There is no server {name[:80]!r} with resources. There are: {names}.")
        return server


def _read(contents: Sequence[JsonObject], reader: ContentReader) -> tuple[UserContent, ...]:
    for resource in contents:
        reader.resource(resource)
    return reader.content()


class _Progress:
    """Shows the progress that a server reports, with a rate limit."""

    def __init__(self, on_update: OnUpdate, redact: Callable[[str], str]) -> None:
        self._on_update = on_update
        self._redact = redact
        self._shown_at = 0.0

    def put(self, done: float, total: float | None, text: str) -> None:
        now = time.monotonic()
        if now - self._shown_at < _UPDATE_PAUSE_S and done != total:
            return
        self._shown_at = now
        share = f"{done:g} of {total:g}" if total is not None else f"{done:g}"
        line = f"{share}: {self._redact(text[:2_000])}" if text else share
        self._on_update(text_result(line, line[:120]))


def _identities(server: McpServer) -> tuple[str, ...]:
    """Return what a rule for all tools of the server is bound to: its present tools and reading its resources."""
    tools = server.connection.tools.tools if server.connection is not None else ()
    return (*(tool.identity for tool in tools), RESOURCES) if tools else ()


def _failure(error: EngineError, server: McpServer, cancel: CancelSignal, redact: Callable[[str], str]) -> ToolError:
    """Return what the model and the person read of a failed call, without keys, which a server may quote."""
    if isinstance(error, ToolError):
        return error
    if cancel.is_set:
        return ToolError("Operation aborted")
    name, text = server.spec.name, redact(str(error))
    if isinstance(error, LoginNeeded) or server.state == "needs_login":
        return ToolError(
            f"The server {name} was not asked, since only a person can sign in there. {text}", "needs your sign-in"
        )
    if isinstance(error, McpTimeout):
        return ToolError(f"The server {name} did not answer in time. {text}", "no answer in time")
    return ToolError(f"The server {name}: {text}")


def _resource_line(resource: JsonObject) -> str:
    uri, name = _text(resource.get("uri") or resource.get("uriTemplate")), _text(resource.get("name"))
    about = _text(resource.get("description"))
    return f"{uri[:500]}" + (f" ({name[:100]})" if name else "") + (f": {about[:200]}" if about else "")


def _text(value: JsonValue) -> str:
    return " ".join(without_hidden(value).split()) if isinstance(value, str) else ""
