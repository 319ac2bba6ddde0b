"""Calls to a running engine with the standard library alone, for completion in a shell, which must be quick.

The imports of connection.py take 150 ms, these 30. No engine is started, and no answer is waited for long.
"""

import base64
import json
import os
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TypeAlias, cast

from errand.system.local_trust import is_valid_proof, new_nonce, proof, read_private
from errand.system.paths import Paths

_PATIENCE_S = 1.0
_MAX_HEAD_BYTES = 8_192
_MAX_MESSAGE_BYTES = 16_000_000
_TEXT, _CLOSE = 1, 8


QuickCall: TypeAlias = Callable[[str, Mapping[str, object]], Mapping[str, object]]


@contextmanager
def quick_calls(paths: Paths) -> Generator[QuickCall]:
    """Calls methods that only read, by name with their parameters, and returns the results.

    Raises OSError or ValueError if no engine answers.
    """
    endpoint = cast("Mapping[str, object]", json.loads(read_private(paths.endpoint)))
    port, token = int(str(endpoint["port"])), str(endpoint["token"])
    with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S) as stream:
        wire = _WebSocket(stream, port, str(endpoint["url"]))
        nonce = new_nonce()
        engine = wire.ask("challenge", {"nonce": nonce})
        if not is_valid_proof(str(engine["proof"]), token, "answers", nonce, str(engine["nonce"])):
            raise ValueError("What answers is not the engine that wrote the endpoint file.")
        own = proof(token, "asks", nonce, str(engine["nonce"]))
        greeting = {"clientId": new_nonce(), "clientName": "completion", "proof": own}
        wire.ask("initialize", {**greeting, "protocolVersion": endpoint["protocolVersion"]})
        yield wire.ask


class _WebSocket:
    """A WebSocket (RFC 6455) that sends short texts and reads whole messages."""

    def __init__(self, stream: socket.socket, port: int, url: str) -> None:
        self._stream = stream
        self._rest = b""
        self._asked = 0
        path = "/" + url.partition("://")[2].partition("/")[2]
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        stream.sendall(head.encode())
        while b"\r\n\r\n" not in self._rest:
            self._fill()
            if len(self._rest) > _MAX_HEAD_BYTES:
                raise ValueError("The answer to the upgrade is too long.")
        answer, _, self._rest = self._rest.partition(b"\r\n\r\n")
        if b" 101 " not in answer.partition(b"\r\n")[0]:
            raise ValueError("The engine refused the connection.")

    def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, object]:
        self._asked += 1
        self._send(json.dumps({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}).encode())
        while True:
            message = cast("Mapping[str, object]", json.loads(self._receive()))
            if message.get("id") != self._asked:
                continue  # an event
            if "result" not in message:
                raise ValueError(f"The engine refused {method}.")
            return cast("Mapping[str, object]", message["result"])

    def _send(self, data: bytes) -> None:
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self._stream.sendall(bytes([0x80 | _TEXT]) + length + mask + masked)

    def _receive(self) -> bytes:
        payload = b""
        while True:
            first, second = self._take(2)
            size, kind = second & 0x7F, first & 0x0F
            if size > 125:
                size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
            if size + len(payload) > _MAX_MESSAGE_BYTES:
                raise ValueError("The answer is too long.")
            data = self._take(size)
            if kind == _CLOSE:
                raise ValueError("The engine closed the connection.")
            if kind > _CLOSE:
                continue  # a ping, which ends with the connection
            payload += data
            if first & 0x80:
                return payload

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._fill()
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _fill(self) -> None:
        piece = self._stream.recv(65_536)
        if not piece:
            raise ValueError("The connection was lost.")
        self._rest += piece
