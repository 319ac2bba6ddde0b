"""The way out of a sandbox: an HTTP proxy in the engine, which connects only where the policy lets it.

It does CONNECT and plain HTTP, one request for each connection.
"""

import asyncio
import base64
import hmac
import os
import re
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias

from app.engine.core.errors import FolderNotAnswering
from app.engine.core.workspace_threads import in_workspace
from app.engine.sandbox import network_child

# The reason why a host at these addresses may not be reached, None if it may.
Judge: TypeAlias = Callable[[str, int, Sequence[str]], str | None]

_LARGEST_HEAD = 64 * 1024
_CHUNK = 64 * 1024
_HEAD_S, _CONNECT_S = 30.0, 15.0
_MOST_CONNECTIONS = 64
_MOST_LOOKUPS = 4
# Before the next attempt to accept a connection if the engine has no descriptors left.
_PAUSE_S = 1.0
_REQUEST = re.compile(
    rb"([A-Z]{1,20}) (?:(http)://)?(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]@]+)(?::(\d{1,5}))?(/\S*)? HTTP/1\.[01]"
)
# Of the connection to the proxy.
_OWN_HEADERS = (b"proxy-", b"connection:", b"keep-alive:")
_USER = "errand"
_OWN_HOSTS = "localhost,127.0.0.1,::1"
# Both spellings are in use; curl reads http_proxy in lower case alone.
_VARIABLES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
_UNPROXIED = ("no_proxy", "NO_PROXY")


class _Refused(Exception):
    """The text is for who asked."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Request:
    method: bytes
    host: str
    port: int
    path: bytes
    headers: tuple[bytes, ...]

    @property
    def head(self) -> bytes:
        """What the server gets: without the address, and for one request alone."""
        kept = [line for line in self.headers if not line.lower().startswith(_OWN_HEADERS)]
        return b"\r\n".join((self.method + b" " + self.path + b" HTTP/1.1", *kept, b"Connection: close", b"", b""))


@dataclass(frozen=True, slots=True)
class ProxyAccess:
    """The proxy of one command: the connection from which its socket comes, and the password that it asks for.

    Commands without the network may share the localhost on which the socket listens.
    """

    connection: socket.socket
    password: str = field(default_factory=partial(secrets.token_hex, 16))

    @property
    def variables(self) -> dict[str, str]:
        """For the environment of the command; the network program adds the port."""
        url = f"http://{_USER}:{self.password}{network_child.NO_PORT}"
        return {**dict.fromkeys(_VARIABLES, url), **dict.fromkeys(_UNPROXIED, _OWN_HOSTS)}

    def admits(self, headers: Sequence[bytes]) -> bool:
        wanted = base64.b64encode(f"{_USER}:{self.password}".encode())
        given = [value.split() for name, _, value in (line.partition(b":") for line in headers) if _is_login(name)]
        return any(len(one) == 2 and hmac.compare_digest(one[1], wanted) for one in given)


@dataclass(slots=True)
class NetworkProxy:
    """Serves the sandboxes of one task until `close`."""

    judge: Judge
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _sockets: set[socket.socket] = field(default_factory=set[socket.socket])
    # Those of the last command.
    _latest: set[socket.socket] = field(default_factory=set[socket.socket])
    _lookups: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MOST_LOOKUPS))

    def expect(self, access: ProxyAccess) -> None:
        """Wait for the socket to serve, which arrives on its connection, or for the end of that."""
        connection = access.connection
        connection.setblocking(False)
        self._sockets.add(connection)
        self._latest = {connection}
        asyncio.get_running_loop().add_reader(connection, self._on_handover, access)

    def close_latest(self) -> None:
        """The last command has ended and left no process: its socket would keep its network alive."""
        for one in self._latest & self._sockets:
            self._drop(one)

    async def close(self) -> None:
        for one in tuple(self._sockets):
            self._drop(one)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _drop(self, one: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(one)
        self._sockets.discard(one)
        one.close()

    def _on_handover(self, access: ProxyAccess) -> None:
        connection = access.connection
        descriptors: list[int] = []
        with suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        self._drop(connection)
        for descriptor in descriptors:
            listener = socket.socket(fileno=descriptor)
            listener.setblocking(False)
            self._sockets.add(listener)
            if connection in self._latest:
                self._latest.add(listener)
            self._listen(listener, access)

    def _listen(self, listener: socket.socket, access: ProxyAccess) -> None:
        if listener in self._sockets:
            asyncio.get_running_loop().add_reader(listener, self._on_connection, listener, access)

    def _on_connection(self, listener: socket.socket, access: ProxyAccess) -> None:
        try:
            client, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError:
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            loop.call_later(_PAUSE_S, self._listen, listener, access)
            return
        if len(self._tasks) >= _MOST_CONNECTIONS:
            client.close()
            return
        client.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._serve(client, access), name="proxy of a sandbox")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: socket.socket, access: ProxyAccess) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(sock=client, limit=_LARGEST_HEAD)
            try:
                await self._answer(reader, writer, access)
            except _Refused as refused:
                writer.write(_refusal(refused))
                await writer.drain()
            finally:
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, access: ProxyAccess) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                request = _parsed(await reader.readuntil(b"\r\n\r\n"))
        except (asyncio.LimitOverrunError, TimeoutError) as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "The request was too long or too slow.") from error
        if not access.admits(request.headers):
            raise _Refused(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, "This is the network of another command.")
        there, out = await self._connected(request.host, request.port)
        try:
            if request.method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                out.write(request.head)
            await asyncio.gather(_copy(reader, out), _copy(there, writer))
        finally:
            out.close()

    async def _connected(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to an address that was judged, not to the name once more."""
        # The threads of the event loop, which a stop needs, must not wait for the server of a hostile name.
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            async with self._lookups:
                found = await in_workspace(Path(host), look_up)
        except (OSError, FolderNotAnswering, UnicodeError) as error:
            raise _Refused(HTTPStatus.BAD_GATEWAY, f"{host} was not found.") from error
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        if (reason := self.judge(host, port, addresses)) is not None:
            raise _Refused(HTTPStatus.FORBIDDEN, f"Errand does not connect to {host}:{port}: {reason}.")
        for address in addresses:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_S):
                    return await asyncio.open_connection(address, port, limit=_LARGEST_HEAD)
        raise _Refused(HTTPStatus.BAD_GATEWAY, f"{host}:{port} does not answer.")


def _is_login(name: bytes) -> bool:
    return name.strip().lower() == b"proxy-authorization"


@cache
def network_program() -> tuple[str, ...]:
    """Begins a command that has the network; see network_child.py for its arguments.

    An installed bundle's executable is errand itself; else the text goes along, whose file may be hidden inside.
    """
    if getattr(sys, "frozen", False):
        return (sys.executable, "sandbox-network")
    text = Path(network_child.__file__).read_text(encoding="utf-8")
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", text)


def _parsed(head: bytes) -> _Request:
    first, *headers = head[:-4].split(b"\r\n")
    found = _REQUEST.fullmatch(first)
    is_tunnel = found is not None and found[1] == b"CONNECT"
    if found is None or is_tunnel == bool(found[2]) or (is_tunnel and not found[4]):
        raise _Refused(HTTPStatus.BAD_REQUEST, "This proxy takes CONNECT, and http addresses.")
    port = int(found[4] or 80)
    if not 0 < port < 65_536:
        raise _Refused(HTTPStatus.BAD_REQUEST, "This port is none.")
    host = found[3].decode("ascii", "replace").strip("[]")
    return _Request(found[1], host, port, found[5] or b"/", tuple(headers))


def _refusal(refused: _Refused) -> bytes:
    body = f"{refused}\n".encode()
    status = refused.status
    # Tools show the status line of a refused CONNECT, not its body.
    head = f"HTTP/1.1 {status.value} {refused}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}"
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        head += f'\r\nProxy-Authenticate: Basic realm="{_USER}"'
    return f"{head}\r\nConnection: close\r\n\r\n".encode() + body


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
