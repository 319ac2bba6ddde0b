"""All servers: one of each for the whole engine, whoever uses it. Ends them with the engine."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from errand.engine.core.errors import ConfigurationError, FolderNotAnswering, NotFound
from errand.engine.core.ids import new_id
from errand.engine.core.secrets import KeyStore
from errand.engine.core.settings import Settings
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.mcp.configuration import (
    ServerSpec,
    expanded,
    of_settings,
    read_workspace,
    variables_in,
)
from errand.engine.tools.mcp.definitions import SchemaRoom
from errand.engine.tools.mcp.known import KnownServers
from errand.engine.tools.mcp.login.discovery import Challenge
from errand.engine.tools.mcp.login.flow import LoginRequest
from errand.engine.tools.mcp.login.logins import Logins
from errand.engine.tools.mcp.login.named_addresses import JudgeNamed
from errand.engine.tools.mcp.login.tokens import Client
from errand.engine.tools.mcp.server import McpServer, ServerParts, ServerValues
from errand.engine.tools.shell.environment import environment_of_commands
from errand.protocol.engine import is_offered

_READ_S = 2.0

SandboxOf = Callable[[Path, str, Mapping[str, str]], CommandSandbox | None]


class McpPool:
    """`changed` is called with a server whose state, tools or sign-in have changed.

    `judge` judges the addresses that servers name for a sign-in.
    """

    def __init__(
        self, settings: Settings, keys: KeyStore, known: KnownServers, sandbox_of: SandboxOf, judge: JudgeNamed
    ) -> None:
        self.known = known
        self.logins = Logins(keys, judge, lambda: settings.values.ca_file)
        self.logins.changed = self._on_login_changed
        self.changed: Callable[[McpServer], None] = _ignore
        self._settings = settings
        self._keys = keys
        self._sandbox_of = sandbox_of
        self._servers: dict[str, McpServer] = {}
        self._ends: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._schema_bytes: dict[str, int] = {}

    async def servers(self, workspace: Path | None = None) -> tuple[McpServer, ...]:
        """Return the servers of the settings, and those that the files of a workspace name. Starts none."""
        own = [of_settings(server) for server in self._settings.values.mcp_servers]
        specs = [*own]
        if workspace is not None:
            taken = frozenset(spec.name for spec in own)
            with suppress(FolderNotAnswering):  # a task in it will say so
                specs += await in_workspace(workspace, lambda: read_workspace(workspace, taken), _READ_S)
        return tuple(map(self._current, specs))

    async def find(self, name: str, workspace: Path | None = None) -> McpServer:
        """Return the server of this name or id. Raises `NotFound`."""
        servers = await self.servers(workspace)
        server = next(
            (candidate for candidate in servers if name in (candidate.spec.name, candidate.spec.id)), None
        ) or self._servers.get(name)
        if server is None:
            names = ", ".join(known_server.spec.name for known_server in servers) or "none"
            raise NotFound(f"There is no MCP server {name[:80]!r}. There are: {names}.")
        return server

    def open(self) -> tuple[McpServer, ...]:
        """Return the servers that were used since the engine started."""
        return tuple(self._servers.values())

    def drop(self, server_id: str) -> None:
        """End a server that is not configured any more."""
        server = self._servers.pop(server_id, None)
        if server is not None:
            self._end(server)

    async def begin_login(self, server: McpServer) -> str:
        """Begin a sign-in at a server, or join the one that waits. Returns the address to open; raises `McpError`."""
        spec = server.spec
        client: Client | None = None
        if spec.client_id:
            secrets = {name: await self._variable(spec, name, {}) for name in variables_in(spec.client_secret)}
            client = Client(client_id=spec.client_id, secret=expanded(spec.client_secret, secrets))
        challenge = server.challenge or Challenge()
        request = LoginRequest(spec.url, challenge, client=client, port=spec.callback_port)

        async def signed_in() -> None:
            server.challenge = None
            server.log.note("the person has signed in")
            if server.connection is None:
                await server.restart()

        return await self.logins.begin(spec, request, signed_in)

    async def close(self) -> None:
        self._is_closed = True
        await self.logins.close()
        servers, self._servers = tuple(self._servers.values()), {}
        await asyncio.gather(*(server.close() for server in servers), *self._ends, return_exceptions=True)

    def _current(self, spec: ServerSpec) -> McpServer:
        """Return the server as it is configured now; one that was configured differently is ended."""
        running = self._servers.get(spec.id)
        if running is not None and running.spec == spec:
            return running
        if running is not None:
            self._end(running)
        server = McpServer(spec, new_id("mcp"), self._parts(spec.id))
        if not self._is_closed:
            self._servers[spec.id] = server
        return server

    def _parts(self, server_id: str) -> ServerParts:
        def changed() -> None:
            if (server := self._servers.get(server_id)) is not None:
                self.changed(server)

        return ServerParts(
            *(self._values, self._sandbox, self.logins.token, self._keys.redactor, changed, self._note_tools),
            ca_file=lambda: self._settings.values.ca_file,
            room=SchemaRoom(self._schema_bytes, new_id("mcp")),
        )

    def _on_login_changed(self, server_id: str) -> None:
        if (server := self._servers.get(server_id)) is not None:
            self.changed(server)

    def _note_tools(self, server: McpServer) -> None:
        connection = server.connection
        if connection is not None:
            self.known.note_tools(server.spec.id, connection.tools.tools)

    def _sandbox(self, spec: ServerSpec, environment: dict[str, str]) -> CommandSandbox | None:
        if not spec.sandbox:
            return None
        return self._sandbox_of(Path(spec.workspace or Path.home()), new_id("mcp"), environment)

    async def _values(self, spec: ServerSpec) -> ServerValues:
        base = environment_of_commands()
        values = base | {name: await self._variable(spec, name, base) for name in spec.variables}
        return ServerValues(
            tuple(expanded(word, values) for word in spec.command),
            expanded(spec.url, values),
            base | {name: expanded(text, values) for name, text in spec.environment},
            {name: expanded(text, values) for name, text in spec.headers},
        )

    async def _variable(self, spec: ServerSpec, name: str, base: Mapping[str, str]) -> str:
        """Return a stored key, or a variable. Those with the keys of models are for the person's own servers alone."""
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
