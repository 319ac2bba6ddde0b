"""A real HTTP server that streams model replies in OpenAI's format from a script, for tests, benches and by hand.

    async with ModelServer(replies=[Reply(text="hi")]) as server:        # in the order of the requests
    async with ModelServer(turns=[Reply(...), Reply(...)]) as server:    # by the assistant messages in the request
    async with ModelServer(answer=lambda request: Reply(...)) as server:
        server.url, server.requests, server.requests[0].gone

`python -m tests.support.model_server --port 0 --script FILE.yaml` prints its url as the first line.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec
from aiohttp import web

from app.protocol.json import JsonObject, JsonValue
from tests.support.model_script import Call, Reply, load

__all__ = ["Call", "ModelServer", "ReceivedRequest", "Reply"]


@dataclass(slots=True)
class ReceivedRequest:
    """What a client asked. `gone` is set when it left before the end, `served` when all was sent."""

    path: str
    headers: dict[str, str]
    body: JsonObject
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    served: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def messages(self) -> list[JsonObject]:
        messages = self.body.get("messages")
        return [entry for entry in messages if isinstance(entry, dict)] if isinstance(messages, list) else []

    @property
    def turn(self) -> int:
        """How many replies of the assistant the conversation holds already."""
        return sum(1 for message in self.messages if message.get("role") == "assistant")


Answer = Callable[[ReceivedRequest], Reply]


def in_order(replies: Sequence[Reply]) -> Answer:
    """Each request takes the next reply; past the end the server refuses in words."""
    left = iter(replies)
    return lambda request: next(left, _OVER)


def by_turn(turns: Sequence[Reply]) -> Answer:
    """Many conversations at once: each request takes the reply of its turn."""
    return lambda request: turns[request.turn] if request.turn < len(turns) else _OVER


_OVER = Reply(status=400, error="the test's script has no further reply")


class ModelServer:
    """Serves `/v1/chat/completions` and `/v1/models` on the loopback. `url` is the API base."""

    def __init__(
        self,
        replies: Sequence[Reply] = (),
        *,
        turns: Sequence[Reply] = (),
        answer: Answer | None = None,
        models: Sequence[str] = ("test-model",),
        port: int = 0,
    ) -> None:
        self.requests: list[ReceivedRequest] = []
        self.url = ""
        self._answer = answer or (by_turn(turns) if turns else in_order(replies))
        self._models = models
        self._port = port
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._list)
        # Without handler_cancellation a handler would not learn that its client left while it waits.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def request(self, number: int, limit_s: float = 10.0) -> ReceivedRequest:
        """The request with this number (from 0), once it has come."""
        async with asyncio.timeout(limit_s), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) > number)
        return self.requests[number]

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body: JsonValue = msgspec.json.decode(await request.read())
        assert isinstance(body, dict)
        received = ReceivedRequest(request.path, dict(request.headers), body)
        async with self._arrived:
            self.requests.append(received)
            self._arrived.notify_all()
        reply = self._answer(received)
        try:
            response = await _send(request, reply)
        except (asyncio.CancelledError, ConnectionError):
            received.gone.set()
            raise
        received.served.set()
        return response

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in self._models]})


async def _send(request: web.Request, reply: Reply) -> web.StreamResponse:
    if reply.gate is not None and reply.status != 200:
        await reply.gate.wait()
    if reply.status != 200:
        await asyncio.sleep(reply.delay_s)
        text = reply.body or msgspec.json.encode({"error": {"message": reply.error, "type": "test"}}).decode()
        return web.Response(status=reply.status, text=text, headers=reply.headers, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **reply.headers})
    await response.prepare(request)
    if reply.gate is not None:
        await reply.gate.wait()
    await asyncio.sleep(reply.delay_s)
    for number, piece in enumerate(reply.pieces()):
        if number == reply.cut_after:
            assert request.transport is not None
            request.transport.abort()
            return response
        if number == reply.stall_after:
            await asyncio.Event().wait()
        if number and reply.piece_delay_s:
            await asyncio.sleep(reply.piece_delay_s)
        await response.write(piece)
    await response.write_eof()
    return response


async def _serve(port: int, script: Path) -> None:
    told = load(script)
    async with ModelServer(told.replies, turns=told.turns, port=port) as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="Stream scripted model replies over HTTP.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True)
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(options.port, options.script))


if __name__ == "__main__":
    main()
