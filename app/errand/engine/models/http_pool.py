"""The engine's one HTTP connection pool."""

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def proxy_for(url: str) -> str | None:
    """The proxy the environment names for this address; never one for this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in _LOOPBACK or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


class BodyTooLong(ValueError):
    """A body is larger than its limit."""


async def read_body(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """The whole decompressed body; raises `BodyTooLong`."""
    body = bytearray()
    while piece := await response.content.readany():
        body += piece
        if len(body) > most_bytes:
            raise BodyTooLong(f"more than {most_bytes:,} bytes")
    return bytes(body)


class HttpPool:
    """Opens its session on first use. No limit on connections: 50 tasks may use one host at once."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=300),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=15),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "errand"},
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
