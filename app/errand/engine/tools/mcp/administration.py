"""What people do with servers: add, change, remove, trust, restart, look at them."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.engine.core.errors import Conflict, EngineError, InvalidParams, NotFound
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import McpServer as StoredServer
from errand.engine.core.settings import Settings
from errand.engine.tools.mcp.configuration import check_server, of_settings, started_text, variables_in
from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.mcp.pool import McpPool, key_name
from errand.engine.tools.mcp.server import McpServer, has_own_login
from errand.engine.tools.plain_text import clean_output
from errand.protocol import servers as protocol
from errand.protocol.base import JsonObject, JsonValue
from errand.text.url_secrets import without_url_secrets

_MAX_SERVERS = 100
_MAX_PROMPT_LENGTH = 200_000
_MAX_LISTED_RESOURCES = 500
_PROMPTS_S = 20.0


@dataclass(frozen=True, slots=True)
class AcceptedTool:
    """A tool whose change a person accepted: its server, its name in rules and what rules are bound to."""

    server: protocol.McpServer
    service: str
    identity: str


class ServerAdministration:
    """One change at a time, since each consists of several writes."""

    def __init__(self, settings: Settings, keys: KeyStore, pool: McpPool) -> None:
        self._settings = settings
        self._keys = keys
        self._pool = pool
        self._lock = asyncio.Lock()

    async def list(self, workspace: str | None) -> tuple[protocol.McpServer, ...]:
        return tuple([await self.info(server) for server in await self._pool.servers(_path(workspace))])

    async def find(self, name: str, workspace: str | None) -> McpServer:
        return await self._pool.find(name, _path(workspace))

    async def save(self, params: protocol.McpSaveParams) -> protocol.McpServer:
        """Add or replace a server of the settings; it is started when it is needed."""
        server = StoredServer(
            name=params.name,
            command=params.command,
            url=params.url,
            env=params.environment,
            headers=params.headers,
            sandbox=params.sandbox,
            enabled=params.enabled,
            timeout_s=params.timeout_s,
            client_id=params.client_id,
            client_secret=params.client_secret,
            callback_port=params.callback_port,
        )
        check_server(server)
        async with self._lock:
            others = tuple(stored for stored in self._stored if stored.name.casefold() != server.name.casefold())
            if len(others) < len(self._stored) and not params.replace:
                raise Conflict(
                    f"There is an MCP server {server.name} already. Remove it first, or choose another name."
                )
            if len(others) >= _MAX_SERVERS:
                raise InvalidParams(f"There are {_MAX_SERVERS} MCP servers already. Remove one first.")
            for variable, value in params.keys.items():
                await self._keys.set(f"mcp.{server.name}.{variable}", value)
            if server.client_secret:
                issuer = await self._pool.logins.find_issuer(of_settings(server))
                server = msgspec.structs.replace(server, client_issuer=issuer)
            replaced = [previous for previous in self._stored if previous not in others]
            self._settings.set_mcp_servers((*others, server))
        for old in replaced:
            if (old.name, old.url, old.client_id) != (server.name, server.url, server.client_id):
                await self._pool.logins.forget(of_settings(old))
        managed = await self._pool.find(server.name)
        self._pool.changed(managed)
        return await self.info(managed)

    async def remove(self, name: str) -> None:
        """Remove a server of the settings with its keys; it is ended."""
        async with self._lock:
            server = await self._of_settings(name)
            for variable in server.spec.variables:
                await self._keys.remove(key_name(server.spec, variable))
            self._settings.set_mcp_servers(tuple(stored for stored in self._stored if stored.name != server.spec.name))
            self._pool.known.forget_server(server.spec.id)
            self._pool.drop(server.spec.id)
        await self._pool.logins.forget(server.spec)
        self._pool.changed(server)

    async def set_enabled(self, name: str, *, enabled: bool) -> protocol.McpServer:
        async with self._lock:
            server = await self._of_settings(name)
            changed = tuple(
                msgspec.structs.replace(stored, enabled=enabled) if stored.name == server.spec.name else stored
                for stored in self._stored
            )
            self._settings.set_mcp_servers(changed)
        managed = await self._pool.find(server.spec.name)
        self._pool.changed(managed)
        return await self.info(managed)

    async def trust(self, params: protocol.McpTrustParams) -> protocol.McpServer:
        server = await self.find(params.name, params.workspace)
        if not server.spec.workspace:
            raise Conflict(f"{server.spec.name} is in your settings: it needs no trust.")
        if server.spec.fingerprint != params.fingerprint:
            raise Conflict(f"{server.spec.name} has changed since you looked at it. Look at it again.")
        self._pool.known.decide(server.spec, is_trusted=params.trusted)
        if not params.trusted:
            self._pool.drop(server.spec.id)
            await self._pool.logins.forget(server.spec)
            server = await self.find(params.name, params.workspace)
        self._pool.changed(server)
        return await self.info(server)

    async def restart(self, name: str, workspace: str | None) -> protocol.McpServer:
        """End it and start it again. A failure is a result too: `problem` says what it was."""
        server = await self._usable(name, workspace)
        with suppress(McpError):
            await server.restart()
        return await self.info(server)

    async def login(self, name: str, workspace: str | None, issuer: str = "") -> protocol.McpLoginResult:
        """Begin a sign-in, or join the one that waits; how it ends is in `info`.

        `issuer` is an authorization server that may get the client secret that the person entered.
        """
        server = await self._usable(name, workspace)
        spec = server.spec
        if issuer and spec.client_secret:
            server = await self._pin_issuer(spec.name, issuer)
            spec = server.spec
        if not spec.url:
            raise Conflict(f"{spec.name} is a program of this machine: it gets keys in its variables, and no sign-in.")
        if has_own_login(dict(spec.headers)):
            raise Conflict(f"{spec.name} gets a key in its header Authorization. Remove that to sign in.")
        if server.connection is None and not self._pool.logins.address(spec):
            with suppress(EngineError):  # its refusal says where to sign in
                await server.connected()
        address = await self._pool.begin_login(server)
        return protocol.McpLoginResult(address=address, server=await self.info(server))

    async def finish_login(self, params: protocol.McpFinishLoginParams) -> None:
        """The browser was on another machine: take the address at which it ended."""
        server = await self.find(params.name, params.workspace)
        self._pool.logins.bring(server.spec, params.address)

    async def cancel_login(self, name: str, workspace: str | None) -> None:
        await self._pool.logins.cancel((await self.find(name, workspace)).spec)

    async def logout(self, name: str, workspace: str | None) -> protocol.McpServer:
        """Remove the tokens, and end the connection that was made with them."""
        server = await self.find(name, workspace)
        if not await self._pool.logins.forget(server.spec):
            raise Conflict(f"You are not signed in at {server.spec.name}.")
        self._pool.drop(server.spec.id)
        server = await self.find(name, workspace)
        self._pool.changed(server)
        return await self.info(server)

    async def show(self, name: str, workspace: str | None) -> protocol.McpShowResult:
        server = await self._usable(name, workspace)
        connection = await server.connected()
        return protocol.McpShowResult(
            server=await self.info(server),
            resources=tuple(map(_resource, (await connection.resources())[:_MAX_LISTED_RESOURCES])),
            prompts=tuple(map(_prompt, (await connection.prompts())[:_MAX_LISTED_RESOURCES])),
        )

    async def prompts(self, params: protocol.McpPromptListParams) -> protocol.McpPromptListResult:
        """Return the prompts of all servers that may be used, connected ones or all."""
        servers = [
            server
            for server in await self._pool.servers(_path(params.workspace))
            if server.spec.enabled and not server.spec.problem and self._pool.known.trust_of(server.spec) == "trusted"
        ]
        asked = [server for server in servers if params.start or server.connection is not None]
        prompt_lists = await asyncio.gather(*map(_prompts_of, asked))
        return protocol.McpPromptListResult(
            prompts=tuple(prompt for prompts, _ in prompt_lists for prompt in prompts),
            idle=tuple(server.spec.name for server in servers if server not in asked),
            problems=tuple(problem for _, problem in prompt_lists if problem),
        )

    async def prompt(self, params: protocol.McpPromptParams) -> str:
        """Return the messages of a prompt as one text."""
        server = await self._usable(params.name, params.workspace)
        connection = await server.connected()
        messages = await connection.prompt(params.prompt, params.arguments, server.spec.timeout_s)
        return "\n\n".join(filter(None, map(_message_text, messages)))[:_MAX_PROMPT_LENGTH]

    async def set_key(self, params: protocol.McpKeyParams) -> str:
        server = await self.find(params.name, params.workspace)
        if params.variable not in server.spec.variables:
            named = ", ".join(server.spec.variables) or "none"
            raise InvalidParams(f"{server.spec.name} refers to no variable {params.variable[:80]!r}. It has: {named}.")
        spec = server.spec
        notice = await self._keys.set(key_name(spec, params.variable), params.value)
        if params.value and params.variable in variables_in(spec.client_secret):
            await self._pin_issuer(spec.name, await self._pool.logins.find_issuer(spec))
        return notice

    async def _pin_issuer(self, name: str, issuer: str) -> McpServer:
        """Store for which authorization server the client secret of a server is."""
        async with self._lock:
            pinned = {
                stored.name: msgspec.structs.replace(stored, client_issuer=issuer)
                for stored in self._stored
                if stored.name == name
            }
            for stored in pinned.values():
                check_server(stored)
            self._settings.set_mcp_servers(tuple(pinned.get(stored.name, stored) for stored in self._stored))
        server = await self._pool.find(name)
        self._pool.changed(server)
        return server

    async def accept_tool(self, params: protocol.McpAcceptParams) -> AcceptedTool:
        server = await self.find(params.name, params.workspace)
        tools = server.connection.tools.tools if server.connection is not None else ()
        tool = next(
            (listed_tool for listed_tool in tools if params.tool in (listed_tool.name, listed_tool.own_name)), None
        )
        if tool is None:
            raise NotFound(f"{server.spec.name} has no tool {params.tool[:80]!r} now. Start it: errand mcp show.")
        self._pool.known.accept_tool(server.spec.id, tool)
        self._pool.changed(server)
        return AcceptedTool(await self.info(server), f"{server.spec.id}/{tool.own_name}", tool.identity)

    async def info(self, server: McpServer) -> protocol.McpServer:
        spec, connection, logins = server.spec, server.connection, self._pool.logins
        facts = connection.facts if connection is not None else None
        return protocol.McpServer(
            id=spec.id,
            name=spec.name,
            started=started_text(spec),
            fingerprint=spec.fingerprint,
            state=server.state,
            command=spec.command,
            url=without_url_secrets(spec.url),
            environment=dict(spec.environment),
            headers=dict(spec.headers),
            sandbox=spec.sandbox,
            enabled=spec.enabled,
            timeout_s=spec.timeout_s,
            workspace=spec.workspace,
            file=spec.file,
            problem=spec.problem or server.problem,
            trust=self._pool.known.trust_of(spec),
            changed=self._pool.known.has_changed(spec),
            title=facts.title if facts is not None else "",
            version=facts.version if facts is not None else "",
            process_id=server.process_id,
            tools=self._tools(server),
            notes=connection.tools.notes if connection is not None else (),
            has_login=await logins.has(spec),
            wants_login=server.challenge is not None,
            login_address=logins.address(spec),
            login_problem=logins.problem(spec),
            client_id=spec.client_id,
            callback_port=spec.callback_port,
            client_issuer=spec.client_issuer,
            new_issuer=logins.new_issuer(spec),
        )

    def _tools(self, server: McpServer) -> tuple[protocol.McpTool, ...]:
        known_servers, server_id = self._pool.known, server.spec.id
        tools = server.connection.tools.tools if server.connection is not None else ()
        return tuple(
            protocol.McpTool(
                name=tool.name,
                own_name=tool.own_name,
                description=tool.description,
                changed=(is_changed := known_servers.has_tool_changed(server_id, tool)),
                known=seen.description
                if is_changed and (seen := known_servers.tool(server_id, tool)) is not None
                else "",
            )
            for tool in tools
        )

    @property
    def _stored(self) -> tuple[StoredServer, ...]:
        return self._settings.values.mcp_servers

    async def _of_settings(self, name: str) -> McpServer:
        server = await self._pool.find(name)
        if server.spec.workspace:
            raise Conflict(f"{name} is named by {server.spec.file} of {server.spec.workspace}. Change it there.")
        return server

    async def _usable(self, name: str, workspace: str | None) -> McpServer:
        """Return the server of this name, which may be started. Raises `InvalidParams` or `Conflict` if it may not."""
        server = await self.find(name, workspace)
        if server.spec.problem:
            raise InvalidParams(server.spec.problem)
        if self._pool.known.trust_of(server.spec) != "trusted":
            raise Conflict(
                f"{server.spec.file} of this workspace names {server.spec.name}, and nobody has trusted it. Look at it "
                f"first: errand mcp trust {server.spec.name}"
            )
        return server


async def _prompts_of(server: McpServer) -> tuple[list[protocol.McpServerPrompt], str]:
    """Return the prompts of a server, or why there are none."""
    name = server.spec.name
    try:
        async with asyncio.timeout(_PROMPTS_S):
            listed = await (await server.connected()).prompts()
    except TimeoutError:
        return [], f"The server {name} did not list its prompts within {_PROMPTS_S:g} s."
    except EngineError as error:
        return [], str(error)
    return [
        protocol.McpServerPrompt(server=name, prompt=_prompt(prompt)) for prompt in listed[:_MAX_LISTED_RESOURCES]
    ], ""


def _path(workspace: str | None) -> Path | None:
    if workspace is None:
        return None
    if not workspace.startswith("/") or "\0" in workspace:
        raise InvalidParams("workspace: an absolute path.")
    return Path(workspace)


def _resource(raw: JsonObject) -> protocol.McpResource:
    uri = raw.get("uri") or raw.get("uriTemplate")
    return protocol.McpResource(uri=_text(uri), name=_text(raw.get("name")), description=_text(raw.get("description")))


def _prompt(raw: JsonObject) -> protocol.McpPrompt:
    listed = raw.get("arguments")
    arguments = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return protocol.McpPrompt(
        name=_text(raw.get("name")),
        description=_text(raw.get("description")),
        arguments=tuple(
            protocol.McpPromptArgument(
                name=_text(argument.get("name")),
                description=_text(argument.get("description")),
                required=argument.get("required") is True,
            )
            for argument in arguments[:50]
        ),
    )


def _message_text(message: JsonObject) -> str:
    content = message.get("content")
    if not isinstance(content, dict):
        return ""
    resource = content.get("resource")
    inner = resource.get("text") if isinstance(resource, dict) else content.get("text")
    return clean_output(inner.encode("utf-8", "replace")) if isinstance(inner, str) else ""


def _text(value: JsonValue) -> str:
    return " ".join(clean_output(value[:2_000].encode("utf-8", "replace")).split()) if isinstance(value, str) else ""
