"""The engine's HTTP connection pool."""

import ssl
from collections.abc import Callable
from typing import Literal

import aiohttp

from errand.engine.core.outgoing import tls_context


def _no_file() -> str:
    return ""


class BodyTooLong(ValueError):
    """A body is larger than its limit."""


async def read_body(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Return the whole decompressed body; raises `BodyTooLong`."""
    body = bytearray()
    while piece := await response.content.readany():
        body += piece
        if len(body) > most_bytes:
            raise BodyTooLong(f"more than {most_bytes:,} bytes")
    return bytes(body)


class HttpPool:
    """Opens its session on first use. No limit on connections: 50 tasks may use one host at once.

    `ca_file` gives the setting of that name; a new value holds from the next request on.
    """

    def __init__(self, ca_file: Callable[[], str] = _no_file) -> None:
        self._ca_file = ca_file
        # The newest is in use; replies may still come through the others.
        self._sessions: list[aiohttp.ClientSession] = []
        self._tls: ssl.SSLContext | Literal[True] = True
        self._named = ""

    @property
    def session(self) -> aiohttp.ClientSession:
        """Raises `UnusableRoute` if the file of certificates cannot be used."""
        named = self._ca_file()
        if self._sessions and not named and not self._named:
            return self._sessions[-1]  # the system's authorities stay as they were found
        tls = tls_context(named)
        if not self._sessions or tls is not self._tls:
            self._tls, self._named = tls, named
            self._sessions.append(
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=300, ssl=tls),
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=15),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    headers={"User-Agent": "errand"},
                )
            )
        return self._sessions[-1]

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            await session.close()
