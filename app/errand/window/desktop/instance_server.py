"""Listens for second starts on a local port, for callers that prove that they know the token."""

import asyncio
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from errand.system.local_trust import is_valid_proof, new_nonce, proof
from errand.window.desktop.single_instance import InstanceAddress, InstanceChallenge, InstanceProof, WakeRequest

_MAX_LINE_BYTES = 8_192
_CALLER_TIMEOUT_S = 2.0
_MAX_CALLERS = 16


class InstanceServer(QObject):
    """`wake_requested` gives a `WakeRequest`. `file` exists from `open` to `close`."""

    wake_requested = Signal(object)

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._token = secrets.token_hex(16)
        self._server: asyncio.Server | None = None
        self._callers: dict[_Caller, None] = {}

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        self._write(InstanceAddress(port, self._token))

    def close(self) -> None:
        """Removes the file, so that the next start opens its own window."""
        if self._server is not None:
            self._server.close()
            self._file.unlink(missing_ok=True)

    def _accept(self) -> "_Caller":
        """Accepts a connection; drops the oldest one if there are too many."""
        if len(self._callers) >= _MAX_CALLERS:
            oldest = next(iter(self._callers))
            self._remove(oldest)
            oldest.abort()
        caller = _Caller(self._token, self.wake_requested.emit, self._remove)
        self._callers[caller] = None
        return caller

    def _remove(self, caller: "_Caller") -> None:
        self._callers.pop(caller, None)

    def _write(self, address: InstanceAddress) -> None:
        scratch = self._file.with_suffix(".tmp")
        with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(address))
        os.replace(scratch, self._file)


class _Caller(asyncio.Protocol):
    """Two lines, two answers. Closes the connection on silence, too much data, or a wrong proof."""

    def __init__(
        self, token: str, on_request: Callable[[WakeRequest], None], on_closed: Callable[["_Caller"], None]
    ) -> None:
        self._token = token
        self._on_request = on_request
        self._on_closed = on_closed
        self._buffer = b""
        self._nonces: tuple[str, str] | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._timer = asyncio.get_running_loop().call_later(_CALLER_TIMEOUT_S, transport.close)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._buffer += data
        line, end, rest = self._buffer.partition(b"\n")
        if end:
            self._buffer = rest
            self._on_line(line, self._transport)
        elif len(self._buffer) > _MAX_LINE_BYTES:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_closed(self)
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _on_line(self, line: bytes, transport: asyncio.Transport) -> None:
        try:
            if self._nonces is None:
                nonce, own = msgspec.json.decode(line, type=InstanceChallenge).nonce, new_nonce()
                self._nonces = nonce, own
                transport.write(
                    msgspec.json.encode(InstanceProof(own, proof(self._token, "answers", nonce, own))) + b"\n"
                )
                return
            request = msgspec.json.decode(line, type=WakeRequest)
            if is_valid_proof(request.proof, self._token, "asks", *self._nonces):
                self._on_request(request)
                transport.write(b"ok\n")
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # an unknown program
        transport.close()
