"""The sign-ins of all servers: those that wait for a person, and the tokens of those that are done.

Tokens and registered clients are kept among the keys, under a name that covers the address of the server: a server
whose address changed finds none. They are held in memory once they were used.
"""

import asyncio
import base64
import hashlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec

from errand.engine.core.errors import ConfigurationError, EngineError
from errand.engine.core.secrets import KeyStore
from errand.engine.tools.mcp.configuration import ServerSpec
from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.mcp.login.discovery import Challenge, discover
from errand.engine.tools.mcp.login.flow import LoginFlow, LoginRequest, OtherIssuer
from errand.engine.tools.mcp.login.named_addresses import JudgeNamed, NamedAddresses
from errand.engine.tools.mcp.login.tokens import Client, Credentials, LoginOver, renew, revoke

_logger = logging.getLogger(__name__)

# Tokens are renewed this long before they end.
_EARLY_S = 30.0
_REVOKE_S = 5.0
_FIND_ISSUER_S = 5.0
UNKNOWN_ISSUER = "unknown"
_CLOSE_S = 2.0
# Tokens that were replaced may hold for a while: this many sets of them stay known to the redactor.
_GENERATIONS = 3


@dataclass(slots=True)
class _Running:
    flow: LoginFlow
    task: asyncio.Task[None]
    # Done when the address is known, or the sign-in has failed before.
    started: asyncio.Future[None]


class Logins:
    """`changed` is called with the id of a server whose sign-in has begun, ended or failed."""

    def __init__(self, keys: KeyStore, judge: JudgeNamed, ca_file: Callable[[], str]) -> None:
        self.changed: Callable[[str], None] = _ignore
        self._keys = keys
        self._judge = judge
        self._ca_file = ca_file
        self._held: dict[str, Credentials | None] = {}
        self._running: dict[str, _Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._problems: dict[str, str] = {}
        self._new_issuers: dict[str, str] = {}
        # Never cancelled: the server counts the old refresh token as used.
        self._renewals: dict[str, asyncio.Task[Credentials | None]] = {}
        self._hidden: dict[str, deque[frozenset[str]]] = {}

    async def token(self, spec: ServerSpec, refused: str = "") -> str:
        """Return the access token for a server; empty if there is none and a person has to sign in.

        `refused` is one that the server does not take any more. Raises `McpError` if it cannot be renewed now.
        """
        if not spec.url:
            return ""
        held = await self._credentials(spec)
        if held is None or not held.access_token:
            return ""
        left = held.expires_at - time.time() if held.expires_at is not None else _EARLY_S + 1
        if held.access_token != refused and left > _EARLY_S:
            return held.access_token
        if held.access_token != refused and not held.refresh_token:
            return held.access_token if left > 0 else ""
        try:
            renewed = await self._renewed(spec, held)
        except McpError:
            if held.access_token != refused and left > 0:
                return held.access_token
            raise
        return renewed.access_token if renewed is not None else ""

    def _named(self, spec: ServerSpec) -> NamedAddresses:
        return NamedAddresses(spec.url, self._judge, ca_file=self._ca_file())

    async def find_issuer(self, spec: ServerSpec) -> str:
        """Return the authorization server that a server names now, or the mark that it was not found out."""
        try:
            async with asyncio.timeout(_FIND_ISSUER_S):
                return (await discover(self._named(spec), spec.url, Challenge())).issuer
        except (EngineError, TimeoutError):
            return UNKNOWN_ISSUER

    async def has(self, spec: ServerSpec) -> bool:
        """Return True if tokens are stored for the server. Opens no keyring."""
        if not spec.url:
            return False
        if (name := _name(spec)) in self._held:
            held = self._held[name]
            return held is not None and bool(held.access_token)
        return await self._keys.has(name)

    def address(self, spec: ServerSpec) -> str:
        """Return what to open in a browser; empty if no sign-in waits."""
        running = self._running.get(_name(spec))
        return running.flow.address if running is not None else ""

    def problem(self, spec: ServerSpec) -> str:
        """Why the last sign-in failed; empty if it did not."""
        return self._problems.get(_name(spec), "")

    def new_issuer(self, spec: ServerSpec) -> str:
        """Return the authorization server that asked for a client secret of another one; empty if none did."""
        return self._new_issuers.get(_name(spec), "")

    async def begin(self, spec: ServerSpec, request: LoginRequest, done: Callable[[], Awaitable[None]]) -> str:
        """Begin a sign-in, or join the one that waits. Returns the address to open; raises why there is none.

        `done` is called when the person is signed in.
        """
        name = _name(spec)
        running = self._running.get(name)
        if running is None:
            self._problems.pop(name, None)
            self._new_issuers.pop(name, None)
            held = await self._credentials(spec)
            issuer = spec.client_issuer or _issuer_of(held, spec)
            flow = LoginFlow(replace(request, held=held, issuer=issuer), self._named(spec))
            started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            running = self._running.get(name)
            if running is None:
                work = self._login(spec, flow, started, done)
                task = asyncio.get_running_loop().create_task(work, name=f"sign-in at the MCP server {spec.name}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                running = self._running[name] = _Running(flow, task, started)
        await asyncio.wait((running.started,))
        if not running.flow.address:
            raise McpError(self._problems.get(name) or "The sign-in was cancelled.")
        return running.flow.address

    def bring(self, spec: ServerSpec, url: str) -> None:
        """Take the address at which the browser ended, for a browser on another machine. Raises `McpError`."""
        running = self._running.get(_name(spec))
        if running is None:
            raise McpError(f"No sign-in at {spec.name} waits. Begin one: errand mcp login {spec.name}")
        running.flow.bring(url)

    async def cancel(self, spec: ServerSpec) -> None:
        """End the sign-in that waits, if one does."""
        running = self._running.get(_name(spec))
        if running is not None:
            running.task.cancel()
            await asyncio.wait((running.task,))

    async def forget(self, spec: ServerSpec) -> bool:
        """Remove tokens and client, and revoke the tokens if the server answers. False if there are none."""
        await self.cancel(spec)
        name = _name(spec)
        self._problems.pop(name, None)
        self._new_issuers.pop(name, None)
        if not await self._keys.has(name) and not self._held.get(name):
            return False
        held: Credentials | None = None
        with suppress(ConfigurationError):  # a locked keyring: what it holds is removed below, or that fails
            held = await self._credentials(spec)
        self._held[name] = None
        await self._keys.remove(name)
        if held is not None and held.access_token:
            with suppress(McpError, TimeoutError):
                async with asyncio.timeout(_REVOKE_S):
                    await revoke(self._named(spec), held)
        self.changed(spec.id)
        return True

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        waiting = (*self._tasks, *self._renewals.values())
        if waiting:
            await asyncio.wait(waiting, timeout=_CLOSE_S)

    async def _login(
        self, spec: ServerSpec, flow: LoginFlow, started: asyncio.Future[None], done: Callable[[], Awaitable[None]]
    ) -> None:
        name, problem = _name(spec), ""

        def on_begun() -> None:
            started.set_result(None)
            self.changed(spec.id)

        try:
            credentials = await flow.run(on_begun)
            await self._store(spec, credentials)
            flow.finish()
        except EngineError as error:
            problem = str(error)
            if isinstance(error, OtherIssuer):
                self._new_issuers[name] = error.issuer
            # The browser may have shown that the server does not know the client any more.
            if (held := self._held.get(name)) is not None:
                self._held[name] = msgspec.structs.replace(held, client=_unregistered(held.client))
        except asyncio.CancelledError:
            problem = "The sign-in was cancelled."
            raise
        finally:
            await self._end(name, flow, started, problem)
            self.changed(spec.id)
        if not problem:
            with suppress(EngineError):  # its state says so
                await done()

    async def _end(self, name: str, flow: LoginFlow, started: asyncio.Future[None], problem: str) -> None:
        if problem:
            self._problems[name] = problem
        self._running.pop(name, None)
        if not started.done():
            started.set_result(None)
        await flow.close()

    async def _renewed(self, spec: ServerSpec, held: Credentials) -> Credentials | None:
        """Renew the tokens, once for all who wait for it."""
        name = _name(spec)
        task = self._renewals.get(name)
        if task is None:
            if (now := self._held.get(name)) is not held:
                return now  # renewed, or signed out, meanwhile
            task = asyncio.get_running_loop().create_task(self._renew(spec, held), name=f"new token for {spec.name}")
            self._renewals[name] = task
            task.add_done_callback(lambda done: self._on_renewed(name, done))
        return await asyncio.shield(task)

    def _on_renewed(self, name: str, task: "asyncio.Task[Credentials | None]") -> None:
        self._renewals.pop(name, None)
        if not task.cancelled() and task.exception() is not None:
            _logger.info("a sign-in at an MCP server could not be renewed")  # who waited for it was told why

    async def _renew(self, spec: ServerSpec, held: Credentials) -> Credentials | None:
        name = _name(spec)
        renewed, client = None, held.client
        if held.refresh_token:
            try:
                renewed = await renew(self._named(spec), held)
            except LoginOver as over:
                client = _unregistered(client) if over.is_client else client
        if self._held.get(name) is not held:
            return None  # the person signed out, or in again
        if renewed is None:
            renewed = msgspec.structs.replace(held, client=client, access_token="", refresh_token="")
        self._held[name] = renewed
        self._hide(name, renewed)
        try:
            await self._store(spec, renewed)
        except EngineError as error:
            _logger.warning("the renewed sign-in at the MCP server %s could not be stored: %s", spec.name, error)
        return renewed

    async def _store(self, spec: ServerSpec, credentials: Credentials) -> None:
        name = _name(spec)
        text = base64.urlsafe_b64encode(msgspec.json.encode(credentials)).decode()
        self._hide(name, credentials, text)
        await self._keys.set(name, text)
        self._held[name] = credentials

    async def _credentials(self, spec: ServerSpec) -> Credentials | None:
        name = _name(spec)
        if name not in self._held:
            key = await self._keys.get(name, ())
            stored = _decoded(key.value) if key is not None else None
            held = stored if stored is not None and stored.server == spec.url else None
            if held is not None:
                self._hide(name, held)
            self._held.setdefault(name, held)
        return self._held[name]

    def _hide(self, name: str, credentials: Credentials, *more: str) -> None:
        """Let the redactor know the newest tokens, and forget old ones: it holds a limited number of secrets."""
        generations = self._hidden.setdefault(name, deque())
        generations.append(frozenset((*credentials.secrets, *more)))
        self._keys.redactor.add(*generations[-1])
        if len(generations) > _GENERATIONS:
            self._keys.redactor.remove(*generations.popleft().difference(*generations))


def _name(spec: ServerSpec) -> str:
    """Under which the tokens of a server are stored among the keys."""
    return f"mcp-login.{spec.id}.{hashlib.blake2b(spec.url.encode(), digest_size=8).hexdigest()}"


def _issuer_of(held: Credentials | None, spec: ServerSpec) -> str:
    """Return the authorization server of an earlier sign-in as the program that the person entered."""
    return held.issuer if held is not None and held.client.client_id == spec.client_id else ""


def _unregistered(client: Client) -> Client:
    """Return the client without its redirect URI, so that the next sign-in registers another one."""
    return msgspec.structs.replace(client, redirect_uri="")


def _decoded(text: str) -> Credentials | None:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=Credentials)
    except (ValueError, msgspec.DecodeError):
        return None


def _ignore(server: str) -> None:
    pass
