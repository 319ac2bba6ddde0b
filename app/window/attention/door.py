"""Where a second start of the window is heard: a local port that asks for the token in a file of the owner's."""

import asyncio
import os
import secrets
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from app.window.attention.doorbell import Address, Wish

_LONGEST = 8_192
_PATIENCE_S = 2.0


class Door(QObject):
    """`rung` gives a `Wish`. `file` is there from `open` to `close`."""

    rung = Signal(object)

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._token = secrets.token_hex(16)
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._caller, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        self._write(Address(port, self._token))

    def close(self) -> None:
        """No file, no ring: a next start opens its own window."""
        if self._server is not None:
            self._server.close()
            self._file.unlink(missing_ok=True)

    def _caller(self) -> "_Caller":
        return _Caller(self)

    def take(self, line: bytes) -> bool:
        """What somebody said at the door; False when it is not for us."""
        try:
            wish = msgspec.json.decode(line, type=Wish)
        except msgspec.DecodeError:
            return False
        if not secrets.compare_digest(wish.token.encode(), self._token.encode()):
            return False
        self.rung.emit(wish)
        return True

    def _write(self, address: Address) -> None:
        scratch = self._file.with_suffix(".tmp")
        with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(address))
        os.replace(scratch, self._file)


class _Caller(asyncio.Protocol):
    """One line, one answer; who says nothing or too much is sent away."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._said = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._timer = asyncio.get_running_loop().call_later(_PATIENCE_S, transport.close)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._said += data
        line, end, _ = self._said.partition(b"\n")
        if end and self._door.take(line):
            self._transport.write(b"ok\n")
        if end or len(self._said) > _LONGEST:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
