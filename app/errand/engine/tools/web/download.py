"""Gets one address over HTTP: judged connections, redirects followed by hand, everything bounded."""

import asyncio
import socket
import ssl
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from errand.engine.core.outgoing import CERTIFICATE_HELP, UnusableRoute, proxy_of, tls_context
from errand.engine.sandbox.http_proxy import look_up
from errand.engine.tools.context import AddressGuard
from errand.engine.tools.results import ToolError

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

MAX_BODY_BYTES = 5_000_000
_MAX_REDIRECTS = 10
_LIMIT_S, _CONNECT_S = 30.0, 10.0
_CHUNK = 64 * 1024
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_HEADERS = {
    "User-Agent": "errand",
    "Accept-Encoding": "gzip, deflate",
}
_ACCEPT = "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Download:
    """A response. `body` is decompressed and has `MAX_BODY_BYTES` bytes at most; `is_cut` if there were more.

    `body` is None if `wants_type` refused the content type. `size` is what the server says, None if it does not.
    """

    url: str
    status: int
    content_type: str
    charset: str
    body: bytes | None
    is_cut: bool = False
    size: int | None = None

    @property
    def phrase(self) -> str:
        phrases = {status.value: status.phrase for status in HTTPStatus}
        return f"HTTP {self.status} {phrases.get(self.status, '')}".strip()


async def download(
    tool: str,
    url: str,
    guard: AddressGuard,
    wants_type: Callable[[str], bool],
    local_proxy: str | None = None,
    ca_file: str = "",
    accept: str = _ACCEPT,
) -> Download:
    """Get `url`, which the policy allowed, and what it redirects to if that is open too. Raises `ToolError`.

    Addresses of this machine are asked for at `local_proxy`, if there is one. `ca_file` is the setting of that name,
    `accept` the header. `tool` is empty if a person opens the address.
    """
    refused = guard.refusal(tool, url, (url,))
    if refused is not None:
        raise ToolError(f"{url[:500]} was not opened: {refused}.", "not opened")
    fetch = _Fetch(tool, guard, (url,), wants_type, local_proxy, ca_file, accept)
    try:
        async with asyncio.timeout(_LIMIT_S):
            return await fetch.run(url)
    except TimeoutError as error:
        raise ToolError(f"{url} did not answer within {_LIMIT_S:g} s.", "no answer in time") from error


@dataclass(slots=True)
class _Fetch:
    tool: str
    guard: AddressGuard
    approved: Sequence[str]
    wants_type: Callable[[str], bool]
    local_proxy: str | None
    ca_file: str
    accept: str
    # The addresses that were judged, by host: nothing else is connected to.
    _judged: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    async def run(self, url: str) -> Download:
        import aiohttp

        try:
            tls = tls_context(self.ca_file)
        except UnusableRoute as error:
            raise ToolError(f"{url} was not opened: {error}", "no way to the network") from error
        connector = aiohttp.TCPConnector(
            resolver=resolver_of(self._judged), use_dns_cache=False, force_close=True, ssl=tls
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={**_HEADERS, "Accept": self.accept},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        )
        async with session:
            for _ in range(_MAX_REDIRECTS):
                done = await self._get(session, url)
                if isinstance(done, Download):
                    return done
                url = self._judged_redirect(url, done)
        raise ToolError(f"It redirects more than {_MAX_REDIRECTS} times, at last to {url[:500]}.", "too many redirects")

    def _judged_redirect(self, url: str, location: str) -> str:
        try:
            target = urljoin(url, location).partition("#")[0]
        except ValueError:
            target = location
        refused = self.guard.refusal(self.tool, target, self.approved)
        if refused is None:
            return target
        advice = f" If it should be, call {self.tool} with that address: then the person is asked." if self.tool else ""
        raise ToolError(
            f"{url} redirects to {target[:2_000]}, which was not opened: {refused}.{advice}",
            f"redirects to {urlsplit(target).hostname or 'no host' if target.startswith('http') else 'no web address'}",
        )

    async def _get(self, session: "aiohttp.ClientSession", url: str) -> "Download | str":
        """Return the response, or where it redirects to."""
        import aiohttp

        proxy = await self._judge(url)
        try:
            async with session.get(url, allow_redirects=False, proxy=proxy) as response:
                location = response.headers.get("Location", "")
                if response.status in _REDIRECTS and location:
                    return location
                kind = response.content_type if "Content-Type" in response.headers else ""
                if not self.wants_type(kind):
                    return Download(url, response.status, kind, "", None, size=response.content_length)
                body, is_cut = await _body(response)
                return Download(url, response.status, kind, response.charset or "", body, is_cut)
        except aiohttp.InvalidURL as error:
            raise ToolError(f"{url} is no address that can be opened.") from error
        except (aiohttp.ClientError, OSError, ValueError, zlib.error) as error:
            raise ToolError(f"{url} could not be read: {cause_of(error)}.", "not reached") from error

    async def _judge(self, url: str) -> str | None:
        """Look the host up and judge where it leads; returns the proxy of the environment, if one is to be used."""
        from yarl import URL

        # As aiohttp reads it, so that nothing but this host is connected to.
        parts = URL(url)
        host, port = parts.raw_host or "", parts.port or 0
        try:
            proxy = proxy_of(url)
            addresses = await self._addresses(host, port, proxy)
        except UnusableRoute as error:
            raise ToolError(f"{url} was not opened: {error}", "no way to the network") from error
        refused = self.guard.connection_refusal(self.tool, host, port, addresses, self.approved)
        if refused is not None:
            raise ToolError(f"{url} was not opened: {refused}.", "not opened")
        if self.local_proxy is not None and (host in _LOOPBACK or host.endswith(".localhost")):
            return self.local_proxy
        if proxy is not None:
            proxy_address = urlsplit(proxy)
            host, addresses = (
                proxy_address.hostname or "",
                await look_up(proxy_address.hostname or "", proxy_address.port or 80),
            )
        self._judged[host] = addresses
        return proxy

    async def _addresses(self, host: str, port: int, proxy: str | None) -> list[str]:
        """None for a name that only the proxy knows."""
        try:
            return await look_up(host, port)
        except OSError as error:
            if proxy is None:
                raise ToolError(f"{host} was not found: {error.strerror or error}.", "host not found") from error
            return []


def resolver_of(judged: dict[str, list[str]]) -> "AbstractResolver":
    """Knows the addresses that were judged alone."""
    from aiohttp.abc import AbstractResolver

    class Judged(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> "list[ResolveResult]":
            return [_resolved(host, port, address) for address in judged.get(host, ())]

        async def close(self) -> None:
            pass

    return Judged()


def _resolved(host: str, port: int, address: str) -> "ResolveResult":
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return {
        "hostname": host,
        "host": address,
        "port": port,
        "family": family,
        "proto": 0,
        "flags": socket.AI_NUMERICHOST,
    }


async def _body(response: "aiohttp.ClientResponse") -> tuple[bytes, bool]:
    """Return the body, decompressed only as far as it is read: a small one may stand for gigabytes."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ValueError(f"it is compressed as {encoding[:40]}, which was not asked for")
    body = bytearray()
    is_plain = encoding in ("", "identity")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | (0 if encoding == "deflate" else 32))
    async for chunk in response.content.iter_chunked(_CHUNK):
        rest = chunk
        while rest:
            room = MAX_BODY_BYTES + 1 - len(body)
            if is_plain:
                body += rest[:room]
                rest = b""
            else:
                body += inflate.decompress(rest, room)
                rest = inflate.unconsumed_tail
            if len(body) > MAX_BODY_BYTES:
                return bytes(body[:MAX_BODY_BYTES]), True
    return bytes(body), False


def cause_of(error: Exception) -> str:
    """Why a request failed, for people."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorCertificateError():
            reason = error.certificate_error
            text = reason.verify_message if isinstance(reason, ssl.SSLCertVerificationError) else str(reason)
            return f"its certificate is not valid ({text}). {CERTIFICATE_HELP.rstrip('.')}"
        case aiohttp.ClientConnectorError():
            return f"no connection ({error.os_error.strerror or error.os_error})"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "the server closed the connection"
        case TimeoutError():
            return "it does not answer"
        case zlib.error():
            return "its compressed data is broken"
        case _:
            return str(error)[:300] or type(error).__name__
