"""Clients and tokens: registration (RFC 7591), exchange of a code, renewal, revocation (RFC 7009)."""

import base64
import time
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote, urlencode

import msgspec

from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.mcp.login.discovery import Authorization
from errand.engine.tools.mcp.login.named_addresses import Answer, NamedAddresses, shown
from errand.protocol.base import JsonObject
from errand.text.redaction import redact

AuthMethod = Literal["none", "client_secret_post", "client_secret_basic"]

_MAX_TOKEN_LENGTH = 16_384
_MAX_ERROR_LENGTH = 500
_MAX_LIFETIME_S = 10 * 365 * 86_400
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
# By these the authorization server says that a token or client is of no use any more.
_OVER = frozenset(("invalid_grant", "invalid_client", "unauthorized_client"))


class LoginOver(McpError):
    """The sign-in cannot be renewed: a person has to sign in again. `is_client` if the client is not known any more."""

    def __init__(self, text: str, *, is_client: bool) -> None:
        super().__init__(text)
        self.is_client = is_client


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials by which an authorization server knows this program. Its repr shows no secret."""

    client_id: str
    secret: str = ""
    method: AuthMethod = "none"
    redirect_uri: str = ""
    secret_expires_at: float = 0.0

    def __repr__(self) -> str:
        return f"Client({self.client_id!r}, method={self.method!r})"


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens for one server, of one authorization server. Without `access_token` only the client is known.

    `expires_at` is in seconds since 1970, None if the server does not say. Its repr shows no token.
    """

    server: str
    issuer: str
    token_endpoint: str
    revocation_endpoint: str
    resource: str
    client: Client
    access_token: str = ""
    refresh_token: str = ""
    scope: str = ""
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.server!r}, {self.issuer!r}, {self.client!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.access_token, self.refresh_token, self.client.secret)))


class _Registered(msgspec.Struct, frozen=True):
    client_id: str
    client_secret: str | None = None
    token_endpoint_auth_method: str | None = None
    client_secret_expires_at: float | None = None


class _Tokens(msgspec.Struct, frozen=True):
    access_token: str
    token_type: str
    expires_in: float | str | None = None
    refresh_token: str | None = None
    scope: str | None = None


async def register(addresses: NamedAddresses, at: Authorization, redirect_uri: str) -> Client:
    """Make this program known to the authorization server. Raises `McpError`."""
    auth_method = usable_method(at.auth_methods, has_secret=False)
    request: JsonObject = {
        "client_name": "Errand",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method,
        "application_type": "native",
        **({"scope": at.scope} if at.scope else {}),
    }
    body = msgspec.json.encode(request)
    answer = await addresses.post(at.registration_endpoint, body, {"Content-Type": "application/json"})
    if answer.status not in (200, 201) or answer.content is None:
        raise McpError(f"{shown(at.registration_endpoint)} refused to register Errand: {_reason(answer)}")
    try:
        registered = msgspec.convert(answer.content, _Registered)
    except msgspec.ValidationError as error:
        raise McpError(
            f"{shown(at.registration_endpoint)} sent a registration that cannot be used: {error}."
        ) from error
    secret = registered.client_secret or ""
    method = registered.token_endpoint_auth_method or ("client_secret_basic" if secret else "none")
    if method not in ("none", "client_secret_post", "client_secret_basic") or (method != "none" and not secret):
        raise McpError(
            f"{shown(at.registration_endpoint)} registered Errand in a way that it does not know: {method[:80]}."
        )
    _check_text(registered.client_id, "client_id", at.registration_endpoint)
    _check_text(secret or "-", "client_secret", at.registration_endpoint)
    return Client(
        client_id=registered.client_id,
        secret=secret if method != "none" else "",
        method=method,
        redirect_uri=redirect_uri,
        secret_expires_at=registered.client_secret_expires_at or 0.0,
    )


def usable_method(offered: tuple[str, ...], *, has_secret: bool) -> AuthMethod:
    """Return how the client shows itself to the token endpoint; nothing `offered` is HTTP basic, by RFC 8414."""
    if not has_secret and (not offered or "none" in offered):
        return "none"
    if "client_secret_post" in offered and "client_secret_basic" not in offered:
        return "client_secret_post"
    return "client_secret_basic" if has_secret or "client_secret_basic" in offered else "none"


async def exchange(
    addresses: NamedAddresses,
    server: str,
    at: Authorization,
    client: Client,
    code: str,
    verifier: str,
    redirect_uri: str,
) -> Credentials:
    """Return the tokens for the code that the browser brought. Raises `McpError`."""
    empty = Credentials(
        server=server,
        issuer=at.issuer,
        token_endpoint=at.token_endpoint,
        revocation_endpoint=at.revocation_endpoint,
        resource=at.resource,
        client=client,
        scope=at.scope,
    )
    fields = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
        "resource": at.resource,
    }
    return await _tokens(addresses, empty, fields)


async def renew(addresses: NamedAddresses, held: Credentials) -> Credentials:
    """New tokens for the refresh token; `LoginOver` if it is not taken, `McpError` if that is not known."""
    fields = {"grant_type": "refresh_token", "refresh_token": held.refresh_token, "resource": held.resource}
    return await _tokens(addresses, held, fields)


async def revoke(addresses: NamedAddresses, held: Credentials) -> None:
    """Tell the authorization server that the tokens are not used any more. Raises `McpError`."""
    if held.revocation_endpoint:
        token = held.refresh_token or held.access_token
        await _post(addresses, held.revocation_endpoint, held.client, {"token": token})


async def _tokens(addresses: NamedAddresses, held: Credentials, fields: Mapping[str, str]) -> Credentials:
    endpoint = held.token_endpoint
    answer = await _post(addresses, endpoint, held.client, fields)
    content = answer.content or {}
    error = content.get("error")
    if answer.status != 200 or error is not None:
        text = f"{shown(endpoint)} gave no token: {_reason(answer)}"
        if error in _OVER:
            raise LoginOver(text, is_client=error != "invalid_grant")
        raise McpError(text)
    try:
        issued = msgspec.convert(content, _Tokens)
    except msgspec.ValidationError as problem:
        raise McpError(f"{shown(endpoint)} gave no token that can be used: {problem}.") from problem
    if issued.token_type.lower() != "bearer":
        raise McpError(f"{shown(endpoint)} gave a token of a kind that is not known here: {issued.token_type[:40]!r}.")
    _check_text(issued.access_token, "access_token", endpoint)
    if issued.refresh_token:
        _check_text(issued.refresh_token, "refresh_token", endpoint)
    life = _seconds(issued.expires_in)
    return msgspec.structs.replace(
        held,
        access_token=issued.access_token,
        refresh_token=issued.refresh_token or held.refresh_token,
        scope=issued.scope or held.scope,
        expires_at=time.time() + life if life is not None else None,
    )


async def _post(addresses: NamedAddresses, url: str, client: Client, fields: Mapping[str, str]) -> Answer:
    """Post a form as this client. Servers made with the SDK want its id in the form beside a header too."""
    form, headers = {**fields, "client_id": client.client_id}, dict(_FORM)
    if client.method == "client_secret_basic":
        pair = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    if client.method == "client_secret_post":
        form["client_secret"] = client.secret
    return await addresses.post(url, urlencode(form).encode(), headers)


def _check_text(text: str, name: str, source: str) -> None:
    """Tokens become headers: letters that end one must not be in them."""
    if not 0 < len(text) <= _MAX_TOKEN_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        raise McpError(f"{shown(source)} sent a {name} that cannot be used.")


def _seconds(life: float | str | None) -> float | None:
    try:
        seconds = float(life) if life is not None else None
    except ValueError:
        return None
    return min(max(seconds, 0.0), _MAX_LIFETIME_S) if seconds is not None and seconds == seconds else None


def _reason(answer: Answer) -> str:
    """Return what the server says about its refusal."""
    if answer.content is None:
        return f"it answered with {answer.status} and {answer.what}."
    texts = [answer.content.get("error"), answer.content.get("error_description")]
    text = ": ".join("".join(filter(str.isprintable, part)) for part in texts if isinstance(part, str) and part)
    return redact(text)[:_MAX_ERROR_LENGTH] or f"it answered with {answer.status}."
