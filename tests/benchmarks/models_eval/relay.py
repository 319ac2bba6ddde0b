"""A relay before a model server that notes when the first token of a reply passes."""

import asyncio
import time
from typing import Self

import msgspec
from aiohttp import ClientSession, ClientTimeout, web

from errand.protocol.base import JsonObject, JsonValue

_FIELDS = ("content", "reasoning_content", "thinking", "tool_calls")
_NOT_PASSED_ON = frozenset({"host", "content-length", "transfer-encoding", "content-encoding", "connection"})


class TokenRelay:
    """Passes all requests on to the server at `address`. Clients take `url` in its place.

    Clients of the engine see a reply later than its first token if they get it whole, as a call in JSON is.
    """

    def __init__(self, address: str) -> None:
        self.url = ""
        self._address = address.rstrip("/")
        self._first_token_at: asyncio.Future[float] | None = None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        self._client = ClientSession(timeout=ClientTimeout(), auto_decompress=False)
        host, _, path = self._address.partition("://")[2].partition("/")
        self._server = f"{self._address.partition('://')[0]}://{host}"
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        address = self._runner.addresses[0]
        self.url = f"http://{address[0]}:{address[1]}/{path}"
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._client.close()

    def next_first_token(self) -> "asyncio.Future[float]":
        """Return the time at which the next token passes, by the monotonic clock."""
        self._first_token_at = asyncio.get_running_loop().create_future()
        return self._first_token_at

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON}
        url, body = f"{self._server}{request.path_qs}", await request.read()
        async with self._client.request(request.method, url, data=body, headers=headers) as answer:
            answer_headers = {
                name: value for name, value in answer.headers.items() if name.lower() not in _NOT_PASSED_ON
            }
            response = web.StreamResponse(status=answer.status, headers=answer_headers)
            await response.prepare(request)
            line = b""
            async for piece in answer.content.iter_any():
                *lines, line = (line + piece).split(b"\n")
                if any(map(_has_token, lines)):
                    self._note_token()
                await response.write(piece)
            await response.write_eof()
            return response

    def _note_token(self) -> None:
        if self._first_token_at is not None and not self._first_token_at.done():
            self._first_token_at.set_result(time.monotonic())


def _has_token(line: bytes) -> bool:
    """Return whether a line of a stream has a piece of a reply: an event of OpenAI's form, or one of Ollama's lines."""
    try:
        chunk = msgspec.json.decode(line.removeprefix(b"data:"), type=JsonObject)
    except msgspec.DecodeError:
        return False
    choices = chunk.get("choices")
    pieces = [chunk.get("message"), *(map(_delta, choices) if isinstance(choices, list) else ())]
    return any(isinstance(piece, dict) and any(piece.get(name) for name in _FIELDS) for piece in pieces)


def _delta(choice: JsonValue) -> JsonValue:
    return choice.get("delta") if isinstance(choice, dict) else None
