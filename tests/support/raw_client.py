"""A client that sends any bytes it likes: for what a good client never does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from app.local_trust import is_proof, proof
from app.protocol.events import EventRecord
from app.protocol.json import JsonObject
from tests.support.engine_server import TOKEN, EngineServer


class RawClient:
    """Sends frames and reads whatever comes, in order."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, frame: str | bytes) -> None:
        await self.socket.send(frame)

    async def read(self) -> JsonObject:
        return msgspec.json.decode(await self.socket.recv(decode=False))

    async def ask(self, method: str, request_id: str | int = 1, **params: object) -> JsonObject:
        """Send a request and give back the next message."""
        await self.request(method, request_id, **params)
        return await self.read()

    async def request(self, method: str, request_id: str | int = 1, **params: object) -> None:
        frame = {"jsonrpc": "2.0", "method": method, "id": request_id, "params": params}
        await self.send(msgspec.json.encode(frame).decode())

    async def answer(self, request_id: str | int) -> tuple[JsonObject, list[JsonObject]]:
        """The answer to a request, and the messages that came before it."""
        before: list[JsonObject] = []
        while True:
            message = await self.read()
            if message.get("id") == request_id:
                return message, before
            before.append(message)

    async def prove(self, token: str = TOKEN) -> str:
        """Have the engine prove that it knows the token; gives our own proof."""
        nonce = "a-nonce-of-the-test"
        challenge = (await self.ask("challenge", "c", nonce=nonce))["result"]
        assert isinstance(challenge, dict)
        other = str(challenge["nonce"])
        assert is_proof(str(challenge["proof"]), TOKEN, "answers", nonce, other)
        return proof(token, "asks", nonce, other)

    async def initialize(self, client_id: str) -> JsonObject:
        """Go through the handshake; gives back the answer to `initialize`."""
        return await self.ask("initialize", "i", clientId=client_id, clientName="raw", proof=await self.prove())

    async def event(self) -> EventRecord:
        """The next message, which is an event."""
        message = await self.read()
        assert message["method"] == "event", message
        return msgspec.convert(message["params"], EventRecord)


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
    """Code, our word and text of a refusal."""
    error = message["error"]
    assert isinstance(error, dict)
    data = error["data"]
    assert isinstance(data, dict)
    return error["code"], data["code"], str(error["message"])
