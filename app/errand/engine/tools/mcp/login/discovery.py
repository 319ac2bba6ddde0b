"""Where to sign in for a server: its challenge and metadata (RFC 9728), its authorization server (RFC 8414)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.mcp.login.named_addresses import NamedAddresses, shown

_MAX_HEADER_LENGTH = 8_192
_MAX_SCOPE_LENGTH = 4_096
_MAX_ADDRESS_LENGTH = 8_192
# More authorization servers than this are not looked at.
_MAX_SERVERS = 3
_WORD = re.compile(r'(?<![\w-])([\w-]++)(?:\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s,"]++)))?')
_OFFLINE = "offline_access"

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The challenge of a server that refuses: where its metadata is, and the scope that it wants."""

    resource_metadata: str = ""
    scope: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Authorization:
    """The server at which a person signs in, and for what. `auth_methods` is empty if the server does not say."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    resource: str
    scope: str
    auth_methods: tuple[str, ...]
    names_issuer: bool


class _ResourceMetadata(msgspec.Struct, frozen=True):
    resource: str
    authorization_servers: tuple[str, ...] | None = None
    scopes_supported: tuple[str, ...] | None = None


class _ServerMetadata(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    authorization_response_iss_parameter_supported: bool | None = None


def parse_challenge(headers: Iterable[str]) -> Challenge:
    """Return the Bearer challenge of `WWW-Authenticate` headers; an empty one if there is none."""
    parameters: dict[str, str] = {}
    for header in headers:
        scheme = ""
        for match in _WORD.finditer(header[:_MAX_HEADER_LENGTH]):
            name, quoted, plain = match[1].lower(), match[2], match[3]
            if quoted is None and plain is None:
                scheme = name
            elif scheme == "bearer":
                parameters.setdefault(name, re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain)
    scope = checked_scope(parameters.get("scope", "").split())
    return Challenge(parameters.get("resource_metadata", ""), scope, parameters.get("error", ""))


def checked_scope(scopes: Iterable[str]) -> str:
    """Scopes as one text, without those that cannot be any."""
    usable = [
        scope for scope in scopes if scope and scope.isascii() and scope.isprintable() and not set(scope) & set(' "\\')
    ]
    return " ".join(dict.fromkeys(usable))[:_MAX_SCOPE_LENGTH].strip()


async def discover(addresses: NamedAddresses, server: str, challenge: Challenge) -> Authorization:
    """Find out where to sign in for `server`. Raises `McpError`."""
    resource = await _resource_metadata(addresses, server, challenge)
    issuers = (resource.authorization_servers if resource is not None else None) or (_origin(server),)
    metadata = await _first_server(addresses, issuers[:_MAX_SERVERS])
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise McpError(
            f"The authorization server {shown(metadata.issuer)} does not offer PKCE with S256. Without it somebody "
            "else could complete a sign-in, so none was begun."
        )
    for url in (metadata.authorization_endpoint, metadata.token_endpoint):
        await addresses.check(url)
    listed = resource.scopes_supported if resource is not None else None
    scope = challenge.scope or checked_scope(listed or ())
    if scope and _OFFLINE in (metadata.scopes_supported or ()):
        scope = checked_scope((*scope.split(), _OFFLINE))
    return Authorization(
        issuer=metadata.issuer,
        authorization_endpoint=metadata.authorization_endpoint,
        token_endpoint=metadata.token_endpoint,
        registration_endpoint=metadata.registration_endpoint or "",
        revocation_endpoint=metadata.revocation_endpoint or "",
        resource=resource.resource if resource is not None else canonical(server),
        scope=scope,
        auth_methods=metadata.token_endpoint_auth_methods_supported or (),
        names_issuer=metadata.authorization_response_iss_parameter_supported is True,
    )


async def _resource_metadata(addresses: NamedAddresses, server: str, challenge: Challenge) -> _ResourceMetadata | None:
    """Return what the server says of itself; None if it has no metadata, as older ones."""
    named = challenge.resource_metadata
    for url in (named,) if named else _places(server, "oauth-protected-resource"):
        metadata = await _read(addresses, url, _ResourceMetadata)
        if isinstance(metadata, str):
            if named:
                raise McpError(metadata)
            continue
        if not _covers(metadata.resource, server):
            raise McpError(
                f"The metadata at {shown(url)} are those of {shown(metadata.resource)}, not of this server. A token "
                "for one could be used at the other, so no sign-in was begun."
            )
        return metadata
    return None


async def _first_server(addresses: NamedAddresses, issuers: Sequence[str]) -> _ServerMetadata:
    problem = ""
    for issuer in issuers:
        metadata = await _server_metadata(addresses, issuer)
        if isinstance(metadata, _ServerMetadata):
            return metadata
        problem = problem or metadata
    raise McpError(f"It was not found out where to sign in: {problem}")


async def _server_metadata(addresses: NamedAddresses, issuer: str) -> _ServerMetadata | str:
    """Return the metadata of an authorization server, or why there are none."""
    await addresses.check(issuer)
    problem = ""
    for url in _server_places(issuer):
        metadata = await _read(addresses, url, _ServerMetadata)
        if isinstance(metadata, str):
            problem = problem or metadata
        elif metadata.issuer.rstrip("/") != issuer.rstrip("/"):
            problem = f"{shown(url)} has the metadata of another authorization server: {shown(metadata.issuer)}."
        else:
            return metadata
    return problem


def _server_places(issuer: str) -> tuple[str, ...]:
    """Return where the metadata of an authorization server may be, in the order of the specification."""
    path = urlsplit(issuer).path.rstrip("/")
    return (
        *_places(issuer, "oauth-authorization-server")[:1],
        *_places(issuer, "openid-configuration")[:1],
        *((f"{_origin(issuer)}{path}/.well-known/openid-configuration",) if path else ()),
    )


def _places(url: str, name: str) -> tuple[str, ...]:
    """Return the well-known address with the path inserted, and the one at the root."""
    origin, path = _origin(url), urlsplit(url).path.rstrip("/")
    root = f"{origin}/.well-known/{name}"
    return (f"{root}{path}", root) if path else (root,)


async def _read(addresses: NamedAddresses, url: str, kind: type[T]) -> T | str:
    """Return the metadata at an address, or what is wrong with them."""
    answer = await addresses.get(url)
    if answer.status != 200:
        return f"{shown(url)} answered with {answer.status}."
    if answer.content is None:
        return f"{shown(url)} sent {answer.what}."
    try:
        return msgspec.convert(answer.content, kind)
    except msgspec.ValidationError as error:
        return f"The metadata at {shown(url)} cannot be used: {error}."


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def canonical(url: str) -> str:
    """Return the address of a server as tokens name it."""
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    return f"{_origin(url)}{path}{f'?{parts.query}' if parts.query else ''}"


def _covers(resource: str, server: str) -> bool:
    """Return True if tokens for `resource` are meant for the server: it is the server, or a path above it."""
    try:
        resource_url, other = urlsplit(resource), urlsplit(server)
    except ValueError:
        return False
    return (
        len(resource) <= _MAX_ADDRESS_LENGTH
        and _origin(resource) == _origin(server)
        and f"{other.path.rstrip('/')}/".startswith(f"{resource_url.path.rstrip('/')}/")
    )
