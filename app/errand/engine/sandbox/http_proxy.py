"""An HTTP proxy that judges each connection. It does CONNECT and plain HTTP, one request for each connection.

Commands reach it through network_proxy.py, the pages of a browser at a port of this machine.
"""

import asyncio
import base64
import hmac
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.outgoing import UnusableRoute, proxy_of
from errand.engine.core.workspace_threads import in_workspace

# The reason why a host at these addresses may not be reached, None if it may.
Judge: TypeAlias = Callable[[str, int, Sequence[str]], str | None]
# Connects to a port of a localhost that comes before the one of this machine; None if nothing listens there.
Dial: TypeAlias = Callable[[int], Awaitable[socket.socket | None]]
Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

# The header of each answer of the proxy itself: `refused`, or `unreachable`.
PROXY_HEADER = "x-errand"
_MAX_HEAD_BYTES, _CHUNK = 64 * 1024, 64 * 1024
_HEAD_S, _CONNECT_S = 30.0, 15.0
_PROXY_PORT = 80
_MAX_LOOKUPS = 16
# The pause before the next attempt to accept a connection, if the engine has no descriptors left.
_ACCEPT_RETRY_S = 1.0
_REQUEST = re.compile(
    rb"([A-Z]{1,20}) (?:(http)://)?(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]@]+)(?::(\d{1,5}))?(/\S*)? HTTP/1\.[01]"
)
# Headers of the connection to the proxy, which the server does not get.
_HOP_HEADERS = (b"proxy-", b"connection:", b"keep-alive:")
_USER = "errand"
_LOOPBACK = frozenset(("127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class ProxyLogin:
    """The user and the password that a proxy asks for, where others can reach it."""

    password: str = field(default_factory=partial(secrets.token_hex, 16))

    @property
    def user_info(self) -> str:
        """The part of an address before the @."""
        return f"{_USER}:{self.password}"

    def admits(self, headers: Sequence[bytes]) -> bool:
        expected = base64.b64encode(self.user_info.encode())
        credentials = [
            value.split() for name, _, value in (line.partition(b":") for line in headers) if _is_login(name)
        ]
        return any(len(login) == 2 and hmac.compare_digest(login[1], expected) for login in credentials)


class _Refused(Exception):
    """An answer of the proxy itself. The text is for the client; `outcome` is the value of our header."""

    def __init__(self, status: HTTPStatus, text: str, outcome: Literal["refused", "unreachable"] = "refused") -> None:
        super().__init__(text)
        self.status = status
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class _Request:
    method: bytes
    host: str
    port: int
    path: bytes
    headers: tuple[bytes, ...]

    @property
    def head(self) -> bytes:
        """The head of the request as the server gets it: without the address, for a single request."""
        return self._head(self.path)

    def head_for(self, proxy: SplitResult) -> bytes:
        """Return the head of the request as another proxy gets it: with the address."""
        return self._head(f"http://{self.authority}".encode() + self.path, *_login_at(proxy))

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_tunnel(self) -> bool:
        return self.method == b"CONNECT"

    def _head(self, target: bytes, *added: bytes) -> bytes:
        headers = [line for line in self.headers if not line.lower().startswith(_HOP_HEADERS)]
        return b"\r\n".join(
            (self.method + b" " + target + b" HTTP/1.1", *headers, *added, b"Connection: close", b"", b"")
        )


@dataclass(slots=True)
class HttpProxy:
    """Serves the sockets that it was given, until `close`; at most `most` connections at once."""

    judge: Judge
    max_connections: int
    dial: Dial | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _sockets: set[socket.socket] = field(default_factory=set[socket.socket])
    _lookups: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_LOOKUPS))

    def open(self) -> int:
        """Listen on a new port of this machine, which is returned, and serve whoever connects."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=self.max_connections)
        self.listen(listener)
        return listener.getsockname()[1]

    def listen(self, listener: socket.socket, login: ProxyLogin | None = None) -> None:
        """Serve a listening socket, which belongs to the proxy from now on."""
        listener.setblocking(False)
        self._sockets.add(listener)
        self._accept(listener, login)

    def drop(self, listener: socket.socket) -> None:
        """Stop listening there; open connections go on."""
        if listener in self._sockets:
            self._sockets.discard(listener)
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()

    async def close(self) -> None:
        for listener in tuple(self._sockets):
            self.drop(listener)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, listener: socket.socket, login: ProxyLogin | None) -> None:
        if listener in self._sockets:
            asyncio.get_running_loop().add_reader(listener, self._on_connection, listener, login)

    def _on_connection(self, listener: socket.socket, login: ProxyLogin | None) -> None:
        try:
            client, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError:
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            loop.call_later(_ACCEPT_RETRY_S, self._accept, listener, login)
            return
        if len(self._tasks) >= self.max_connections:
            client.close()
            return
        client.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._serve(client, login), name="connection of a proxy")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: socket.socket, login: ProxyLogin | None) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(sock=client, limit=_MAX_HEAD_BYTES)
            try:
                await self._answer(reader, writer, login)
            except _Refused as refused:
                writer.write(_refusal(refused))
                await writer.drain()
            finally:
                writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, login: ProxyLogin | None
    ) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                request = _parsed(await reader.readuntil(b"\r\n\r\n"))
        except (asyncio.LimitOverrunError, TimeoutError) as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "The request was too long or too slow.") from error
        if login is not None and not login.admits(request.headers):
            raise _Refused(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, "This is the network of another command.")
        proxy = _next_proxy(request)
        upstream, out = await self._connected(request, proxy)
        try:
            if request.is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                out.write(request.head if proxy is None else request.head_for(proxy))
            await _relay(reader, writer, upstream, out)
        finally:
            out.close()

    async def _connected(self, request: _Request, proxy: SplitResult | None) -> Connection:
        """Connect to an address that was judged, without another look-up of the name; or to the person's proxy."""
        host, port = request.host, request.port
        try:
            async with self._lookups:
                addresses = await look_up(host, port)
        except OSError as error:
            # A proxy knows names that are not known here.
            if proxy is None and self.judge(host, port, ()) is None:
                raise _Refused(HTTPStatus.BAD_GATEWAY, f"{host} was not found.", "unreachable") from error
            addresses = list[str]()
        if (reason := self.judge(host, port, addresses)) is not None:
            raise _Refused(HTTPStatus.FORBIDDEN, f"Errand does not connect to {host}:{port}: {reason}.")
        if (
            self.dial is not None
            and _LOOPBACK.intersection(addresses)
            and (shared := await self.dial(port)) is not None
        ):
            return await asyncio.open_connection(sock=shared, limit=_MAX_HEAD_BYTES)
        if proxy is not None:
            return await _connected_through(proxy, request)
        if (connection := await _first_of(addresses, port)) is not None:
            return connection
        raise _Refused(HTTPStatus.BAD_GATEWAY, f"{host}:{port} does not answer.", "unreachable")


def _next_proxy(request: _Request) -> SplitResult | None:
    """Return the proxy of the environment for a request, if one is to be used."""
    try:
        proxy = proxy_of(f"{'https' if request.is_tunnel else 'http'}://{request.authority}")
    except UnusableRoute as error:
        raise _Refused(HTTPStatus.BAD_GATEWAY, str(error), "unreachable") from error
    return urlsplit(proxy) if proxy is not None else None


async def _connected_through(proxy: SplitResult, request: _Request) -> Connection:
    """Return a connection to the person's proxy; one that leads to the server if a tunnel is wanted."""
    proxy_name = f"The proxy {proxy.hostname}:{proxy.port or _PROXY_PORT}"
    connection = await _first_of((proxy.hostname or "",), proxy.port or _PROXY_PORT, is_tls=proxy.scheme == "https")
    if connection is None:
        raise _Refused(HTTPStatus.BAD_GATEWAY, f"{proxy_name} does not answer.", "unreachable")
    if not request.is_tunnel:
        return connection
    reader, writer = connection
    lines = (
        b"CONNECT %s HTTP/1.1" % request.authority.encode(),
        b"Host: " + request.authority.encode(),
        *_login_at(proxy),
    )
    try:
        async with asyncio.timeout(_HEAD_S):
            writer.write(b"\r\n".join((*lines, b"", b"")))
            status = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].split(b" ", 2)[1:]
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise _Refused(HTTPStatus.BAD_GATEWAY, f"{proxy_name} does not answer.", "unreachable") from error
    if status[:1] != [b"200"]:
        writer.close()
        status_line = b" ".join(status).decode("ascii", "replace")[:200]
        raise _Refused(HTTPStatus.BAD_GATEWAY, f"{proxy_name} refuses: {status_line}", "unreachable")
    return connection


async def _first_of(addresses: Sequence[str], port: int, *, is_tls: bool = False) -> Connection | None:
    """Return the first connection that can be made."""
    for address in addresses:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_S):
                return await asyncio.open_connection(address, port, limit=_MAX_HEAD_BYTES, ssl=is_tls or None)
    return None


def _login_at(proxy: SplitResult) -> tuple[bytes, ...]:
    """Return the header for a proxy whose address has a user and a password."""
    if proxy.username is None:
        return ()
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return (b"Proxy-Authorization: Basic " + base64.b64encode(login.encode()),)


async def look_up(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host. Raises OSError."""
    # The few threads of the event loop, which a stop needs, must not wait for the name server of a hostile name.
    try:
        infos = await in_workspace(Path(host), partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM))
    except (FolderNotAnswering, UnicodeError) as error:
        raise OSError(f"the name {host[:200]} could not be looked up") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


def _is_login(name: bytes) -> bool:
    return name.strip().lower() == b"proxy-authorization"


def _parsed(head: bytes) -> _Request:
    first, *headers = head[:-4].split(b"\r\n")
    match = _REQUEST.fullmatch(first)
    is_tunnel = match is not None and match[1] == b"CONNECT"
    if match is None or is_tunnel == bool(match[2]) or (is_tunnel and not match[4]):
        raise _Refused(HTTPStatus.BAD_REQUEST, "This proxy takes CONNECT, and http addresses.")
    port = int(match[4] or 80)
    if not 0 < port < 65_536:
        raise _Refused(HTTPStatus.BAD_REQUEST, "There is no such port.")
    host = match[3].decode("ascii", "replace").strip("[]")
    return _Request(match[1], host, port, match[5] or b"/", tuple(headers))


def _refusal(refused: _Refused) -> bytes:
    body = f"{refused}\n".encode()
    status = refused.status
    # Tools show the status line of a refused CONNECT, not its body.
    head = f"HTTP/1.1 {status.value} {refused}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}"
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        head += f'\r\nProxy-Authenticate: Basic realm="{_USER}"'
    return f"{head}\r\n{PROXY_HEADER}: {refused.outcome}\r\nConnection: close\r\n\r\n".encode() + body


async def _relay(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    upstream: asyncio.StreamReader,
    out: asyncio.StreamWriter,
) -> None:
    """Copy in both directions until the server has sent all, or either side is gone."""
    upwards = asyncio.create_task(_copy(reader, out), name="request through a proxy")
    try:
        await _copy(upstream, writer)
    finally:
        upwards.cancel()
        await asyncio.gather(upwards, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
