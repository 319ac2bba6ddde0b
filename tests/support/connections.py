"""A TCP relay between client and engine that a test can disconnect."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from errand.client.connection import Connection
from errand.client.errors import NoEngine
from errand.client.subscription import ConnectionMessage
from errand.protocol.base import JsonObject
from errand.protocol.engine import Endpoint
from errand.protocol.events import EventRecord, LogRecord
from errand.system.local_trust import is_valid_proof, proof
from tests.support.engine_server import TOKEN, EngineServer
from tests.support.limits import WAIT_LIMIT_S


class Cable:
    """A relay to `target`, which may change. Disconnected, it closes all connections and accepts none."""

    def __init__(self, target: Endpoint | None = None) -> None:
        self.target = target
        self.pulled = False
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    def find(self) -> Endpoint:
        """The target's endpoint with the relay's port."""
        if self.target is None or self.pulled:
            raise NoEngine("No engine runs.")
        return msgspec.structs.replace(self.target, url=f"ws://127.0.0.1:{self.port}/rpc")

    def pull(self) -> None:
        self.pulled = True
        self.cut()

    def cut(self) -> None:
        """Close all connections; new ones are accepted."""
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
        pass  # cut, or one side has closed: close the other
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


class Watcher:
    def __init__(self, connection: Connection) -> None:
        self.messages: list[ConnectionMessage] = []
        self._changed = asyncio.Event()
        self.unsubscribe = connection.subscribe(self._take)

    @property
    def sequences(self) -> list[int]:
        return [message.sequence for message in self.messages if isinstance(message, EventRecord)]

    async def until(self, condition: Callable[[list[ConnectionMessage]], bool]) -> None:
        async with asyncio.timeout(WAIT_LIMIT_S):
            while not condition(self.messages):
                self._changed.clear()
                await self._changed.wait()

    async def until_sequence(self, sequence: int) -> None:
        await self.until(lambda _: sequence in self.sequences)

    async def until_kind(self, kind: type[ConnectionMessage]) -> None:
        await self.until(lambda messages: any(isinstance(message, kind) for message in messages))

    def _take(self, message: ConnectionMessage) -> None:
        self.messages.append(message)
        self._changed.set()


class RawClient:
    """Sends frames and reads all messages in order."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, frame: str | bytes) -> None:
        await self.socket.send(frame)

    async def read(self) -> JsonObject:
        """The next message; fails if none comes for long."""
        async with asyncio.timeout(WAIT_LIMIT_S):
            return msgspec.json.decode(await self.socket.recv(decode=False))

    async def ask(self, method: str, request_id: str | int = 1, **params: object) -> JsonObject:
        """Send a request and return the next message."""
        await self.request(method, request_id, **params)
        return await self.read()

    async def request(self, method: str, request_id: str | int = 1, **params: object) -> None:
        frame = {"jsonrpc": "2.0", "method": method, "id": request_id, "params": params}
        await self.send(msgspec.json.encode(frame).decode())

    async def answer(self, request_id: str | int) -> tuple[JsonObject, list[JsonObject]]:
        """The answer to a request, and the messages received before it."""
        before: list[JsonObject] = []
        while True:
            message = await self.read()
            if message.get("id") == request_id:
                return message, before
            before.append(message)

    async def answers(self, count: int) -> tuple[list[JsonObject], list[JsonObject]]:
        """The answers to as many requests, and the messages between them; requests sent at once run concurrently."""
        answers: list[JsonObject] = []
        others: list[JsonObject] = []
        while len(answers) < count:
            message = await self.read()
            (answers if "id" in message else others).append(message)
        return answers, others

    async def prove(self, token: str = TOKEN) -> str:
        """Request the engine's proof that it knows the token; returns our proof."""
        nonce = "a-nonce-of-the-test"
        challenge = (await self.ask("challenge", "c", nonce=nonce))["result"]
        assert isinstance(challenge, dict)
        other = str(challenge["nonce"])
        assert is_valid_proof(str(challenge["proof"]), TOKEN, "answers", nonce, other)
        return proof(token, "asks", nonce, other)

    async def initialize(self, client_id: str) -> JsonObject:
        """Perform the handshake; returns the answer to `initialize`."""
        return await self.ask("initialize", "i", clientId=client_id, clientName="raw", proof=await self.prove())

    async def event(self) -> LogRecord:
        """The next message, which must be an event."""
        message = await self.read()
        assert message["method"] == "event", message
        return msgspec.convert(message["params"], LogRecord)


@asynccontextmanager
async def raw_client(engine: EngineServer, *, client_id: str = "raw") -> AsyncGenerator[RawClient]:
    """Initialized unless `client_id` is empty."""
    async with connect(engine.server.url, proxy=None, compression=None, max_size=None, ping_interval=None) as socket:
        client = RawClient(socket)
        if client_id:
            answer = await client.initialize(client_id)
            assert "result" in answer, answer
        yield client


def error_of(message: JsonObject) -> tuple[object, object, str]:
    """The numeric code, the error code and the text of a refusal."""
    error = message["error"]
    assert isinstance(error, dict)
    data = error["data"]
    assert isinstance(data, dict)
    return error["code"], data["code"], str(error["message"])
