"""A cable between client and engine that a test can pull: a TCP relay."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from app.client.errors import NoEngine
from app.protocol.endpoint import Endpoint


class Cable:
    """Relays to `target`, which may change. Pulled, it cuts all lines and lets none through."""

    def __init__(self, target: Endpoint | None = None) -> None:
        self.target = target
        self.pulled = False
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    def find(self) -> Endpoint:
        """The target's endpoint, by way of the cable."""
        if self.target is None or self.pulled:
            raise NoEngine("No engine runs.")
        return msgspec.structs.replace(self.target, url=f"ws://127.0.0.1:{self.port}/rpc")

    def pull(self) -> None:
        self.pulled = True
        self.cut()

    def cut(self) -> None:
        """Break the lines there are; new ones get through."""
        for writer in self._writers:
            writer.transport.abort()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.target is not None
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target.port)
        ends = {writer, to_writer}
        self._writers |= ends
        handshake = await reader.readuntil(b"\r\n\r\n")
        # The engine checks the exact Host.
        to_writer.write(handshake.replace(b":%d" % self.port, b":%d" % self.target.port))
        await asyncio.gather(_copy(reader, to_writer), _copy(to_reader, writer))
        self._writers -= ends


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # cut, or one end is gone: then the other goes too
    writer.close()


@asynccontextmanager
async def cable_to(target: Endpoint | None) -> AsyncGenerator[Cable]:
    cable = Cable(target)
    server = await asyncio.start_server(cable.relay, "127.0.0.1", 0)
    cable.port = server.sockets[0].getsockname()[1]
    try:
        yield cable
    finally:
        server.close()
        cable.cut()
        await server.wait_closed()
