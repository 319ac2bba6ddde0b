"""One sign-in: find out where, register, wait for the person, exchange the code for tokens."""

import asyncio
import base64
import hashlib
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode, urlsplit

from errand.engine.core.addresses import is_in_the_clear
from errand.engine.core.errors import ConfigurationError
from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.mcp.login.callback import Callback, code_of
from errand.engine.tools.mcp.login.discovery import Authorization, Challenge, checked_scope, discover
from errand.engine.tools.mcp.login.named_addresses import NamedAddresses, shown
from errand.engine.tools.mcp.login.tokens import Client, Credentials, exchange, register, usable_method

# To find out where, and until the person is back.
_BEGIN_S = 60.0
_WAIT_S = 300.0


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """The beginning of a sign-in. `held` are credentials of an earlier one, whose registration may be used again.

    `client` was entered by the person, with the port that it was registered for (0: any). Its secret was entered for
    the authorization server `issuer`; an empty one is not known, and the first is taken.
    """

    server: str
    challenge: Challenge
    held: Credentials | None = None
    client: Client | None = None
    port: int = 0
    issuer: str = ""


class OtherIssuer(McpError):
    """An authorization server asks for a client secret that was entered for another one."""

    def __init__(self, issuer: str, entered_for: str) -> None:
        before = f"You entered it for {shown(entered_for)}. " if is_address(entered_for) else ""
        super().__init__(
            f"To sign in, your client secret would go to the authorization server {shown(issuer)}. {before}"
            "Nothing was sent. Allow it only if you know that server."
        )
        self.issuer = issuer


class LoginFlow:
    """`address` is what to open in a browser, once `begin` has returned. Close it."""

    def __init__(self, request: LoginRequest, addresses: NamedAddresses, wait_s: float = _WAIT_S) -> None:
        self.address = ""
        self._request = request
        self._addresses = addresses
        self._wait_s = wait_s
        self._callback: Callback | None = None

    async def run(self, started: Callable[[], None]) -> Credentials:
        """Sign in; `started` is called when `address` is set. Raises `McpError` or `ConfigurationError`."""
        if is_in_the_clear(self._request.server):
            raise McpError(
                "Its address begins with http://, so a token could be read on the way. Use one with https://."
            )
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
        callback = self._callback = Callback(state)
        try:
            try:
                async with asyncio.timeout(_BEGIN_S):
                    at = await discover(self._addresses, self._request.server, self._request.challenge)
                    client = await self._client(at, callback)
            except TimeoutError as error:
                raise McpError(f"It was not found out within {_BEGIN_S:g} s where to sign in.") from error
            at = self._with_earlier_scope(at)
            self.address = _authorization_address(at, client, callback.redirect_uri, state, verifier)
            started()
            return await self._wait(callback, at, client, verifier)
        except (McpError, ConfigurationError) as error:
            callback.settle(str(error))
            raise

    def bring(self, url: str) -> None:
        """Take the address at which a browser on another machine ended. Raises `McpError`."""
        if self._callback is None or not self.address:
            raise McpError("No sign-in waits for an answer yet.")
        self._callback.bring(url)

    def finish(self) -> None:
        """Tell the browser that the person is signed in: the tokens are stored."""
        if self._callback is not None:
            self._callback.settle("")

    async def close(self) -> None:
        if self._callback is not None:
            await self._callback.close()

    async def _client(self, at: Authorization, callback: Callback) -> Client:
        """Return the client that was entered, the registered one if its port is free, or a new registration."""
        request = self._request
        if request.client is not None:
            has_secret = bool(request.client.secret)
            if has_secret and request.issuer and not is_same_issuer(request.issuer, at.issuer):
                raise OtherIssuer(at.issuer, request.issuer)
            await callback.open(request.port)
            method = usable_method(at.auth_methods, has_secret=True) if has_secret else "none"
            return Client(client_id=request.client.client_id, secret=request.client.secret, method=method)
        if (registered := self._registered(at)) is not None:
            with suppress(ConfigurationError):  # its port is taken: register another one
                await callback.open(urlsplit(registered.redirect_uri).port or 0)
                return registered
        if not at.registration_endpoint:
            raise McpError(
                "Its authorization server registers no programs by itself. Register Errand there by hand, as a native "
                "program that comes back to http://127.0.0.1:PORT/callback, and enter its client id with that port: "
                "errand mcp add NAME --url … --replace --client-id ID --callback-port PORT"
            )
        await callback.open(request.port)
        return await register(self._addresses, at, callback.redirect_uri)

    def _registered(self, at: Authorization) -> Client | None:
        held = self._request.held
        if held is None or held.issuer != at.issuer or not held.client.redirect_uri:
            return None
        has_expired = 0 < held.client.secret_expires_at <= time.time()
        return None if has_expired else held.client

    def _with_earlier_scope(self, at: Authorization) -> Authorization:
        """Return the authorization with the earlier scope added if the server asks for more rights: it wants both."""
        held = self._request.held
        if held is None or not at.scope or self._request.challenge.error != "insufficient_scope":
            return at
        return replace(at, scope=checked_scope((*held.scope.split(), *at.scope.split())))

    async def _wait(self, callback: Callback, at: Authorization, client: Client, verifier: str) -> Credentials:
        try:
            async with asyncio.timeout(self._wait_s):
                answer = await callback.received()
        except TimeoutError as error:
            raise McpError(f"Nobody signed in within {self._wait_s / 60:.2g} minutes. Try it again.") from error
        code = code_of(answer, at.issuer, names_issuer=at.names_issuer)
        return await exchange(self._addresses, self._request.server, at, client, code, verifier, callback.redirect_uri)


def is_same_issuer(issuer: str, other: str) -> bool:
    return issuer.rstrip("/") == other.rstrip("/")


def is_address(issuer: str) -> bool:
    """Return False for the mark that it was not found out for whom a secret was entered."""
    return "://" in issuer


def _authorization_address(at: Authorization, client: Client, redirect_uri: str, state: str, verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    parts = urlsplit(at.authorization_endpoint)
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
        "state": state,
        "resource": at.resource,
        **({"scope": at.scope} if at.scope else {}),
        # By OpenID Connect, offline access is given only after the person was asked.
        **({"prompt": "consent"} if "offline_access" in at.scope.split() else {}),
    }
    other_parameters = [(name, value) for name, value in parse_qsl(parts.query) if name not in query]
    return parts._replace(query=urlencode([*other_parameters, *query.items()]), fragment="").geturl()
