"""The way to a PostgreSQL server by TCP, with or without TLS, on which connections are lost."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Literal

from sqlalchemy import URL, make_url

Loss = Literal["unsent", "unanswered"]


class PostgresProxy:
    """`next_commit` is what happens to the next COMMIT: it does not arrive, or its answer does not.

    The connection is lost then; `lost` counts them. With `keeps_sessions` the server does not notice that connections
    are lost, until the proxy ends.
    """

    def __init__(self, socket: str, tls: ssl.SSLContext | None) -> None:
        self.next_commit: Loss | None = None
        self.lost = 0
        self.keeps_sessions = False
        self.address = URL.create("postgresql")
        self._socket = socket
        self._tls = tls
        self._writers: set[asyncio.StreamWriter] = set()
        self._kept: list[asyncio.StreamWriter] = []

    @property
    def url(self) -> str:
        return self.address.render_as_string(hide_password=False)

    def close(self) -> None:
        for writer in self._kept:
            writer.close()

    def lose_all(self) -> None:
        """Reset all connections to the engine."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(self._socket)
        self._writers.add(writer)
        back = asyncio.create_task(_copy(from_server, writer))
        try:
            if self._tls is not None:
                await reader.readexactly(8)
                writer.write(b"S")
                await writer.start_tls(self._tls)
            while data := await reader.read(65_536):
                if self.next_commit is not None and b"COMMIT" in data:
                    back.cancel()
                    await asyncio.wait([back])
                    if self.next_commit == "unanswered":
                        to_server.write(data)
                        await from_server.read(65_536)
                    self.next_commit = None
                    self.lost += 1
                    writer.transport.abort()
                    break
                to_server.write(data)
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            back.cancel()
            await asyncio.wait([back])
            if self.keeps_sessions:
                self._kept.append(to_server)
            else:
                to_server.close()
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
    writer.close()


@asynccontextmanager
async def proxied(url: str, tls: ssl.SSLContext | None = None) -> AsyncGenerator[PostgresProxy]:
    """A proxy before the database at the URL of a socket."""
    address = make_url(url)
    proxy = PostgresProxy(f"{address.query['host']}/.s.PGSQL.5432", tls)
    async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as server:
        port = int(server.sockets[0].getsockname()[1])
        proxy.address = address.difference_update_query(["host"]).set(host="localhost", port=port)
        yield proxy
        proxy.close()
