"""All servers: one of each for the whole engine, whoever uses it. Ends them with the engine."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from app.engine.core.errors import ConfigurationError, FolderNotAnswering, NotFound
from app.engine.core.ids import new_id
from app.engine.core.secrets import KeyStore
from app.engine.core.settings import Settings
from app.engine.core.workspace_threads import in_workspace
from app.engine.sandbox.launch import CommandSandbox
from app.engine.tools.mcp.configuration import (
    ServerSpec,
    expanded,
    of_settings,
    read_workspace,
)
from app.engine.tools.mcp.known import KnownServers
from app.engine.tools.mcp.server import McpServer, ServerParts
from app.engine.tools.shell.environment import environment_of_commands
from app.protocol.engine import is_offered

_READ_S = 2.0

SandboxOf = Callable[[Path, str, Mapping[str, str]], CommandSandbox | None]


class McpPool:
    """`changed` is called with a server whose state or tools have changed."""

    def __init__(self, settings: Settings, keys: KeyStore, known: KnownServers, sandbox_of: SandboxOf) -> None:
        self.known = known
        self.changed: Callable[[McpServer], None] = _ignore
        self._settings = settings
        self._keys = keys
        self._sandbox_of = sandbox_of
        self._servers: dict[str, McpServer] = {}
        self._ends: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def servers(self, workspace: Path | None = None) -> tuple[McpServer, ...]:
        """The servers of the settings, and those that the files of a workspace name. Starts none."""
        own = [of_settings(server) for server in self._settings.values.mcp_servers]
        specs = [*own]
        if workspace is not None:
            taken = frozenset(spec.name for spec in own)
            with suppress(FolderNotAnswering):  # a task in it will say so
                specs += await in_workspace(workspace, lambda: read_workspace(workspace, taken), _READ_S)
        return tuple(map(self._current, specs))

    async def find(self, name: str, workspace: Path | None = None) -> McpServer:
        """The server of this name or id. Raises `NotFound`."""
        servers = await self.servers(workspace)
        found = next((one for one in servers if name in (one.spec.name, one.spec.id)), None) or self._servers.get(name)
        if found is None:
            names = ", ".join(one.spec.name for one in servers) or "none"
            raise NotFound(f"There is no MCP server {name[:80]!r}. There are: {names}.")
        return found

    def open(self) -> tuple[McpServer, ...]:
        """The servers that were used since the engine started."""
        return tuple(self._servers.values())

    def drop(self, server_id: str) -> None:
        """End a server that is not configured any more."""
        server = self._servers.pop(server_id, None)
        if server is not None:
            self._end(server)

    async def close(self) -> None:
        self._is_closed = True
        servers, self._servers = tuple(self._servers.values()), {}
        await asyncio.gather(*(server.close() for server in servers), *self._ends, return_exceptions=True)

    def _current(self, spec: ServerSpec) -> McpServer:
        """The server as it is configured now; one that was configured differently is ended."""
        known = self._servers.get(spec.id)
        if known is not None and known.spec == spec:
            return known
        if known is not None:
            self._end(known)
        server = McpServer(spec, new_id("mcp"), self._parts(spec.id))
        if not self._is_closed:
            self._servers[spec.id] = server
        return server

    def _parts(self, server_id: str) -> ServerParts:
        def changed() -> None:
            if (server := self._servers.get(server_id)) is not None:
                self.changed(server)

        return ServerParts(self._values, self._sandbox, self._keys.redactor, changed, self._note_tools)

    def _note_tools(self, server: McpServer) -> None:
        connection = server.connection
        if connection is not None:
            self.known.note_tools(server.spec.id, connection.tools.tools)

    def _sandbox(self, spec: ServerSpec, environment: dict[str, str]) -> CommandSandbox | None:
        if not spec.sandbox:
            return None
        return self._sandbox_of(Path(spec.workspace or Path.home()), new_id("mcp"), environment)

    async def _values(self, spec: ServerSpec) -> tuple[dict[str, str], dict[str, str]]:
        base = environment_of_commands()
        values = {name: await self._variable(spec, name, base) for name in spec.variables}
        environment = base | {name: expanded(text, values) for name, text in spec.environment}
        return environment, {name: expanded(text, values) for name, text in spec.headers}

    async def _variable(self, spec: ServerSpec, name: str, base: Mapping[str, str]) -> str:
        """A stored key, or a variable. Those with the keys of models are for the person's own servers alone."""
        variables = (name,) if is_offered(name) and not spec.workspace else ()
        key = await self._keys.get(key_name(spec, name), variables)
        if key is not None:
            return key.value
        if name in base:
            return base[name]
        raise ConfigurationError(
            f"The variable {name} has no value. To store one: errand mcp set-key {spec.name} {name}"
        )

    def _end(self, server: McpServer) -> None:
        task = asyncio.get_running_loop().create_task(server.close(), name=f"end of the MCP server {server.spec.name}")
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)


def key_name(spec: ServerSpec, variable: str) -> str:
    """Under which a variable of a server is stored among the keys."""
    return f"mcp.{spec.id}.{variable}"


def _ignore(server: McpServer) -> None:
    pass
