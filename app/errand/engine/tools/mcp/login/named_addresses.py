"""Requests to addresses that a server names: judged where they lead, bounded in size and time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urljoin, urlsplit

from errand.engine.core.addresses import display_address
from errand.engine.core.json_input.foreign_json import UnreadableJson, decode_bounded
from errand.engine.core.outgoing import UnusableRoute, proxy_of, tls_context
from errand.engine.tools.mcp.json_rpc import McpError
from errand.engine.tools.web.download import cause_of, look_up, resolver_of
from errand.protocol.base import JsonObject

if TYPE_CHECKING:
    import aiohttp

_MAX_ANSWER_BYTES = 256 * 1024
_LIMIT_S = 15.0
_MAX_REDIRECTS = 3
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MAX_ADDRESS_LENGTH = 300
_HEADERS = {"User-Agent": "errand", "Accept": "application/json", "Accept-Encoding": "identity"}

# The reason why a named address with these IP addresses may not be opened, None if it may; then the server's own.
JudgeNamed: TypeAlias = Callable[[str, Sequence[str], str, Sequence[str]], str | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """`content` is None if the body is no JSON object, `what` says what it is instead."""

    status: int
    content: JsonObject | None
    what: str = ""


class NamedAddresses:
    """Opens what the server at `server` names, if `judge` lets it. Each method raises `McpError`."""

    def __init__(self, server: str, judge: JudgeNamed, limit_s: float = _LIMIT_S, ca_file: str = "") -> None:
        self._server = server
        self._judge = judge
        self._limit_s = limit_s
        self._ca_file = ca_file

    async def get(self, url: str) -> Answer:
        """Redirects are followed where they may lead."""
        for _ in range(_MAX_REDIRECTS):
            done = await self._bounded("GET", url, {}, None)
            if isinstance(done, Answer):
                return done
            url = _joined(url, done)
        raise McpError(f"{shown(url)} is redirected too often.")

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a form. A redirect is an error: what is sent is meant for this address alone."""
        done = await self._bounded("POST", url, headers, body)
        if isinstance(done, Answer):
            return done
        raise McpError(f"{shown(url)} is redirected, which is not followed with what was to be sent there.")

    async def check(self, url: str) -> None:
        """Raises `McpError` if the address may not be opened."""
        try:
            async with asyncio.timeout(self._limit_s):
                await self._judged(url)
        except TimeoutError as error:
            raise McpError(f"{shown(url)} was not found in time.") from error

    async def _bounded(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer | str:
        try:
            async with asyncio.timeout(self._limit_s):
                return await self._request(method, url, headers, body)
        except TimeoutError as error:
            raise McpError(f"{shown(url)} did not answer within {self._limit_s:g} s.") from error

    async def _request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer | str:
        """Return the answer, or where it redirects to."""
        import aiohttp

        addresses, proxy = await self._judged(url)
        try:
            tls = tls_context(self._ca_file)
        except UnusableRoute as error:
            raise McpError(str(error)) from error
        connector = aiohttp.TCPConnector(
            resolver=resolver_of(addresses), use_dns_cache=False, force_close=True, ssl=tls
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={**_HEADERS, **headers},
        )
        try:
            async with (
                session,
                session.request(method, url, data=body, allow_redirects=False, proxy=proxy) as response,
            ):
                location = response.headers.get("Location", "")
                if response.status in _REDIRECTS and location:
                    return location
                return _answer(response.status, response.content_type, await _body(response, url))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise McpError(f"{shown(url)} could not be read: {cause_of(error)}.") from error

    async def _judged(self, url: str) -> tuple[dict[str, list[str]], str | None]:
        """Return the IP addresses to connect to, and the proxy of the environment, if one is to be used."""
        host, addresses, proxy = await _look_up(url)
        _, of_server, _ = await _look_up(self._server)
        refused = self._judge(url, addresses, self._server, of_server)
        if refused is not None:
            raise McpError(f"{shown(url)}, which the server names, was not opened: {refused}.")
        if proxy is not None:
            host, addresses, _ = await _look_up(proxy)
        return {host: addresses}, proxy


async def _look_up(url: str) -> tuple[str, list[str], str | None]:
    """Return the host of an address, its IP addresses, and the proxy that is used for it."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise McpError(f"{shown(url)}, which the server names, is no web address.") from error
    if parts.scheme not in ("http", "https") or not host:
        raise McpError(f"{shown(url)}, which the server names, is no web address.")
    try:
        proxy = proxy_of(url)
    except UnusableRoute as error:
        raise McpError(str(error)) from error
    try:
        return host, await look_up(host, port), proxy
    except OSError as error:
        if proxy is None:
            raise McpError(f"{host[:200]} was not found: {error.strerror or error}.") from error
        return host, [], proxy  # the proxy knows names that are not known here


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location).partition("#")[0]
    except ValueError as error:
        raise McpError(f"{shown(url)} redirects to {shown(location)}, which is no web address.") from error


def _answer(status: int, content_type: str, body: bytes) -> Answer:
    try:
        content = decode_bounded(body)
    except UnreadableJson:
        content = None
    if isinstance(content, dict):
        return Answer(status, content)
    return Answer(status, None, f"no JSON object but {content_type[:100]}" if body else "nothing")


async def _body(response: "aiohttp.ClientResponse", url: str) -> bytes:
    body = bytearray()
    while piece := await response.content.readany():
        body += piece
        if len(body) > _MAX_ANSWER_BYTES:
            raise McpError(f"{shown(url)} sent more than {_MAX_ANSWER_BYTES // 1024} KB.")
    return bytes(body)


def shown(url: str) -> str:
    """Return an address as texts name it: without query, bounded, printable."""
    return "".join(letter for letter in display_address(url[:4_096]) if letter.isprintable())[:_MAX_ADDRESS_LENGTH]
