"""An HTTP proxy of the engine that judges each connection: the only way of a browser's pages to the network."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from app.engine.sandbox.loopback import Loopback
from app.engine.tools.sessions import ConversationSessions
from app.engine.tools.web.download import look_up

# The reason why a host at these addresses may not be reached, None if it may.
Judge: TypeAlias = Callable[[str, int, Sequence[str]], str | None]
Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
# Connects to a port of the localhost that the commands of the conversation share; None if nothing listens there.
Dial: TypeAlias = Callable[[int], Awaitable[socket.socket | None]]

# Of an answer that comes from the proxy.
PROXY_HEADER = "x-errand"
_LARGEST_HEAD, _CHUNK = 64 * 1024, 64 * 1024
_HEAD_S, _CONNECT_S = 30.0, 10.0
_MOST_CONNECTIONS = 128
_REQUEST = re.compile(
    rb"([A-Z]{1,20}) (?:http://)?(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]@]+)(?::(\d{1,5}))?(/\S*)? HTTP/1\.[01]"
)
_OWN_HEADERS = (b"proxy-", b"connection:", b"keep-alive:")
_LOOPBACK = frozenset(("127.0.0.1", "::1"))


def dial_of(sessions: ConversationSessions) -> Dial:
    """A server that a command of the conversation has started comes before one of the person."""

    async def dial(port: int) -> socket.socket | None:
        loopback = sessions.find(Loopback)
        if loopback is None or not loopback.is_open:
            return None
        with suppress(OSError, TimeoutError):
            return await loopback.connect(port)
        return None

    return dial


class _NotConnected(Exception):
    """The text is for the page; `word` tells our answer from one of the server."""

    def __init__(self, word: Literal["refused", "unreachable"], text: str) -> None:
        super().__init__(text)
        self.word = word


@dataclass(slots=True)
class JudgingProxy:
    """Listens on `port` of this machine from `open` to `close`."""

    judge: Judge
    dial: Dial
    port: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0, limit=_LARGEST_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MOST_CONNECTIONS:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="proxy of a page")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_HEAD_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                await self._answer(head, reader, writer)
        finally:
            writer.close()

    async def _answer(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *headers = head[:-4].split(b"\r\n")
        found = _REQUEST.fullmatch(first)
        port = int(found[3] or 80) if found else 0
        if found is None or not 0 < port < 65_536:
            writer.write(_refusal("This proxy takes CONNECT, and http addresses."))
            return
        try:
            there, out = await self._connected(found[2].decode("ascii", "replace").strip("[]"), port)
        except _NotConnected as problem:
            writer.write(_refusal(str(problem), problem.word))
            return
        try:
            if found[1] == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                kept: list[bytes] = [line for line in headers if not line.lower().startswith(_OWN_HEADERS)]
                request = b"%s %s HTTP/1.1" % (found[1], found[4] or b"/")
                lines: list[bytes] = [request, *kept, b"Connection: close", b"", b""]
                out.write(b"\r\n".join(lines))
            await _relay(reader, writer, there, out)
        finally:
            out.close()

    async def _connected(self, host: str, port: int) -> Connection:
        """Connects to an address that was judged, not to the name once more."""
        try:
            addresses = await look_up(host, port)
        except OSError as error:
            if self.judge(host, port, ()) is None:
                raise _NotConnected("unreachable", f"{host} was not found.") from error
            addresses = list[str]()
        if (reason := self.judge(host, port, addresses)) is not None:
            raise _NotConnected("refused", f"Errand does not connect to {host}:{port}: {reason}.")
        if _LOOPBACK.intersection(addresses) and (shared := await self.dial(port)) is not None:
            return await asyncio.open_connection(sock=shared, limit=_LARGEST_HEAD)
        for address in addresses:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_S):
                    return await asyncio.open_connection(address, port, limit=_LARGEST_HEAD)
        raise _NotConnected("unreachable", f"{host}:{port} does not answer.")


async def _relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: asyncio.StreamReader, out: asyncio.StreamWriter
) -> None:
    """Copy both ways until the server has said all, or either side is gone."""
    upwards = asyncio.create_task(_copy(reader, out), name="a page's request")
    try:
        await _copy(there, writer)
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


def _refusal(text: str, word: str = "refused") -> bytes:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}"
    return f"{head}\r\n{PROXY_HEADER}: {word}\r\nConnection: close\r\n\r\n".encode() + body
