"""One server: started when it is first needed, restarted with a growing delay, given up after repeated failures."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from errand.engine.core.errors import ConfigurationError, EngineError, FolderNotAnswering
from errand.engine.sandbox.launch import CommandSandbox, prepare_launch
from errand.engine.tools.mcp.configuration import ServerSpec
from errand.engine.tools.mcp.connection import McpConnection, shake_hands
from errand.engine.tools.mcp.definitions import SchemaRoom
from errand.engine.tools.mcp.http import HttpTransport, LoginNeeded
from errand.engine.tools.mcp.json_rpc import McpError, RpcPeer
from errand.engine.tools.mcp.login.discovery import Challenge
from errand.engine.tools.mcp.server_log import ServerLog
from errand.engine.tools.mcp.stdio import StdioTransport, broken
from errand.protocol.base import JsonObject
from errand.text.redaction import Redactor
from errand.text.url_secrets import without_url_secrets
from errand.text.visible_text import command_text, escape_hidden

ServerState = Literal["idle", "starting", "ready", "failed", "given_up", "needs_login"]

# The delay before the next start, by the failures in a row.
_DELAYS_S = (0.0, 1.0, 5.0, 20.0)
_MAX_FAILURES = len(_DELAYS_S)
# A shorter delay is waited for.
_PATIENCE_S = 6.0
# A server that lived this long failed for the first time.
_LIVED_S = 60.0
# List changes are read at most this often.
_REFRESH_PAUSE_S = 0.5
_LIST_CHANGED = "notifications/tools/list_changed"
_LOG_MESSAGE = "notifications/message"
_MAX_LOG_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class ServerValues:
    """The command or address of a server, with the values of the variables that the settings of a server refer to."""

    command: tuple[str, ...]
    url: str
    environment: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class ServerParts:
    """The parts of the engine that servers need. `values_of` gives what to start or open.

    It raises `ConfigurationError` if a variable has no value. `token_of` gives the token of a sign-in, or another one
    for one that was refused.
    """

    values_of: Callable[[ServerSpec], Awaitable[ServerValues]]
    sandbox_of: Callable[[ServerSpec, dict[str, str]], CommandSandbox | None]
    token_of: Callable[[ServerSpec, str], Awaitable[str]]
    redactor: Redactor
    changed: Callable[[], None]
    tools_listed: Callable[["McpServer"], None]
    ca_file: Callable[[], str]
    room: SchemaRoom


class McpServer:
    """`problem` says why it is not ready, `challenge` what it said if it wants a sign-in now, or a wider one.

    Close it before it is dropped.
    """

    def __init__(self, spec: ServerSpec, owner: str, parts: ServerParts) -> None:
        self.spec = spec
        self.log = ServerLog(parts.redactor)
        self.state: ServerState = "idle"
        self.problem = ""
        self.challenge: Challenge | None = None
        self._owner = owner
        self._parts = parts
        self._connection: McpConnection | None = None
        self._listed: McpConnection | None = None
        self._transport: StdioTransport | HttpTransport | None = None
        self._peer: RpcPeer | None = None
        self._sandbox: CommandSandbox | None = None
        self._starting: asyncio.Task[None] | None = None
        self._work: set[asyncio.Task[None]] = set()
        # These are waited for and never cancelled: they leave no process behind.
        self._ends: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._next_start = 0.0
        self._ready_since = 0.0
        self._needs_refresh = False
        self._refreshing: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._settled.set()
        self._is_closed = False

    @property
    def connection(self) -> McpConnection | None:
        """The open connection, if there is one."""
        return self._connection

    @property
    def listed(self) -> McpConnection | None:
        """The connection whose tools a task has: the open one, or the last one of a server that starts at a call."""
        return self._listed

    @property
    def process_id(self) -> int | None:
        return self._transport.pid if self._transport is not None and self.state == "ready" else None

    async def connected(self) -> McpConnection:
        """Return the connection; starts the server if none is open. Raises `McpError` with what to do."""
        if self._connection is not None:
            return self._connection
        if self._starting is None:
            await self._wait_for_turn()
        if self._connection is None and self._starting is None:
            self._starting = self._spawn(self._start(), "start")
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        if self._connection is None:
            raise McpError(f"The server {self.spec.name} is not available: {self.problem or 'it was ended'}")
        return self._connection

    async def settled(self) -> None:
        """Return when a change of its list of tools that it has announced was read, or after a moment."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), _PATIENCE_S)

    async def restart(self) -> None:
        """End it and start it again, whatever failed before."""
        await self._end()
        self._failures, self._next_start, self.problem = 0, 0.0, ""
        self.log.note("restarted by the person")
        await self.connected()

    async def close(self) -> None:
        """End it, with all its processes, and wait for that."""
        self._is_closed = True
        await self._end()
        self._listed = None
        self._parts.room.clear()
        self._set("idle", "")

    async def _wait_for_turn(self) -> None:
        if self._is_closed:
            raise McpError(f"The server {self.spec.name} was ended.")
        if self.spec.problem:
            raise McpError(self.spec.problem)
        delay = self._next_start - time.monotonic()
        if self.state == "given_up" or delay > _PATIENCE_S:
            after = "" if self.state == "given_up" else f" It can be tried again in {delay:.0f} s."
            raise McpError(
                f"The server {self.spec.name} is not available: {self.problem}{after} To start it now: errand mcp "
                f"restart {self.spec.name}"
            )
        if delay > 0:
            await asyncio.sleep(delay)

    async def _start(self) -> None:
        self._set("starting", "")
        try:
            connection = await self._connect()
            await connection.load_tools(self._parts.room)
        except (EngineError, OSError) as error:
            await self._end_transport()
            if isinstance(error, LoginNeeded):
                self._peer = None
                self._next_start = time.monotonic() + _DELAYS_S[1]
                self.log.note(str(error))
                self._set("needs_login", str(error))
            else:
                self._failed(str(error))
            return
        except asyncio.CancelledError:
            self._spawn(self._end_transport(), "end", self._ends)
            raise
        finally:
            self._starting = None
        self._connection = self._listed = connection
        self._ready_since = time.monotonic()
        self.challenge = None
        facts = connection.facts
        self.log.note(f"ready: {facts.title} {facts.version}, {len(connection.tools.tools)} tools".replace("  ", " "))
        for note in connection.tools.notes:
            self.log.note(note)
        self._parts.tools_listed(self)
        self._set("ready", "")

    async def _connect(self) -> McpConnection:
        spec = self.spec
        values = await self._parts.values_of(spec)
        if spec.url:
            return await self._connect_web(values)
        folder = Path(spec.workspace) if spec.workspace else Path.home()
        self.log.note(f"starting: {command_text(spec.command)}")
        sandbox = self._sandbox = self._parts.sandbox_of(spec, values.environment)
        try:
            launch = await prepare_launch([*values.command], folder, values.environment, sandbox, network=True)
        except FolderNotAnswering as error:
            raise ConfigurationError(f"It was not started: {error}") from error
        transport = StdioTransport(self._owner, self._on_ended, self.log)
        self._transport = transport
        self._peer = RpcPeer(transport, self._on_notice, self._on_flood, self.log.note)
        transport.deliver_to(self._peer)
        await transport.start(launch)
        return await shake_hands(spec.name, self._peer, lambda _: None, self._parts.redactor)

    async def _connect_web(self, values: ServerValues) -> McpConnection:
        spec = self.spec
        self.log.note(f"connecting: {escape_hidden(without_url_secrets(spec.url))}")
        transport = HttpTransport(
            *(values.url, values.headers, self._on_failed, self._on_ended, self.log),
            token_of=_no_token
            if has_own_login(values.headers)
            else lambda refused: self._parts.token_of(spec, refused),
            ca_file=self._parts.ca_file(),
        )
        self._transport = transport
        self._peer = RpcPeer(transport, self._on_notice, self._on_flood, self.log.note)
        transport.deliver_to(self._peer)
        transport.open()
        return await shake_hands(spec.name, self._peer, transport.use_version, self._parts.redactor)

    def _on_failed(self, failure: McpError, request_id: int | None) -> None:
        if isinstance(failure, LoginNeeded):
            self.challenge = failure.challenge
            if self._connection is not None:
                self._parts.changed()
            failure = LoginNeeded(login_text(self.spec, failure), failure.challenge, failure.status)
        if request_id is None:
            self.log.note(str(failure))
        elif self._peer is not None:
            self._peer.fail(failure, request_id)
        if isinstance(failure, LoginNeeded) and failure.status == 401 and self._connection is not None:
            self._lose_login(failure)

    def _lose_login(self, failure: LoginNeeded) -> None:
        """The server takes the sign-in no longer: nothing works until there is another one."""
        peer, self._peer, self._connection, self._listed = self._peer, None, None, None
        if peer is not None:
            peer.fail(failure)
        self.log.note(str(failure))
        self._set("needs_login", str(failure))
        self._spawn(self._end_transport(), "end", self._ends)

    def _on_flood(self, why: str) -> None:
        self._on_ended(why)

    def _on_ended(self, why: str) -> None:
        """The process ended, or its connection is of no use any more."""
        peer, transport = self._peer, self._transport
        if peer is None:
            return
        was_ready = self._connection is not None
        self._peer, self._connection = None, None
        peer.fail(broken(why))
        self.log.note(f"the connection is over: {why}")
        if was_ready:  # else its start fails
            lived = time.monotonic() - self._ready_since > _LIVED_S
            # It can start, so the next call starts it again, however often it dies.
            self._failures = 0 if lived else min(self._failures, 1)
            self._failed(f"{why[0].upper()}{why[1:]}.")
            if transport is not None:
                self._spawn(self._end_transport(), "end", self._ends)

    def _on_notice(self, method: str, params: JsonObject) -> None:
        if method == _LIST_CHANGED:
            self._needs_refresh = True
            if self._refreshing is None:
                self._settled.clear()
                self._refreshing = self._spawn(self._refresh(), "list of tools")
        elif method == _LOG_MESSAGE:
            self.log.note(f"says: {str(params.get('data'))[:_MAX_LOG_LENGTH]}")

    async def _refresh(self) -> None:
        """Read the list of tools until it stays the same; `settled` waits for the first time only."""
        try:
            while self._needs_refresh and (connection := self._connection) is not None:
                self._needs_refresh = False
                try:
                    await connection.load_tools(self._parts.room)
                except McpError as error:
                    self.log.note(f"its list of tools was not read again: {error}")
                    return
                self.log.note(f"its list of tools has changed: {len(connection.tools.tools)} tools")
                self._parts.tools_listed(self)
                self._parts.changed()
                self._settled.set()
                await asyncio.sleep(_REFRESH_PAUSE_S)
        finally:
            self._refreshing = None
            self._settled.set()

    def _failed(self, problem: str) -> None:
        self._failures += 1
        self._next_start = time.monotonic() + _DELAYS_S[min(self._failures, _MAX_FAILURES) - 1]
        self.log.note(f"failed: {problem}")
        self._set("given_up" if self._failures >= _MAX_FAILURES else "failed", problem)

    def _set(self, state: ServerState, problem: str) -> None:
        problem = self._parts.redactor(problem)
        if (self.state, self.problem) != (state, problem):
            self.state, self.problem = state, problem
            self._parts.changed()

    async def _end(self) -> None:
        peer, self._peer, self._connection = self._peer, None, None
        if peer is not None:
            peer.fail(broken("the server was ended"))
        for task in tuple(self._work):
            task.cancel()
        if self._work:
            await asyncio.wait(tuple(self._work))
        if self._ends:
            await asyncio.wait(tuple(self._ends))
        await self._end_transport()

    async def _end_transport(self) -> None:
        transport, self._transport = self._transport, None
        sandbox, self._sandbox = self._sandbox, None
        if transport is not None:
            await transport.close()
        if sandbox is not None:
            for name in await sandbox.after(has_background=False):
                self.log.note(f"not kept, since it configures git, editors or agents: {name}")

    def _spawn(
        self, work: Coroutine[None, None, None], what: str, into: set[asyncio.Task[None]] | None = None
    ) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=f"{what} of the MCP server {self.spec.name}")
        held = self._work if into is None else into
        held.add(task)
        task.add_done_callback(held.discard)
        return task


def has_own_login(headers: Mapping[str, str]) -> bool:
    """Return True if a configured header says who the person is."""
    return any(name.lower() == "authorization" for name in headers)


def login_text(spec: ServerSpec, failure: LoginNeeded) -> str:
    """Return what a person does about a refusal."""
    if has_own_login(dict(spec.headers)):
        return f"{failure} It does not take the key in its header Authorization."
    advice = f"errand mcp login {spec.name}, or Sign in on the page Tools of the settings"
    if failure.status == 401:
        return f"{failure} It needs your sign-in ({advice}), or a key in a header."
    return f"{failure} It needs a sign-in with more rights ({advice})."


async def _no_token(refused: str) -> str:
    return ""
