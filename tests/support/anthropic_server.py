"""A real HTTP server that streams one reply in Anthropic's format, for the way through the library."""

from typing import Self

import msgspec
from aiohttp import web

from app.protocol.json import JsonObject, JsonValue


class AnthropicServer:
    """Answers every request with thinking, text and a call of `shell`; `bodies` keeps what was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[JsonObject] = []
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/messages", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body: JsonValue = msgspec.json.decode(await request.read())
        assert isinstance(body, dict)
        self.bodies.append(body)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for name, data in _EVENTS:
            event = msgspec.json.encode({"type": name, **data})
            await response.write(b"event: " + name.encode() + b"\ndata: " + event + b"\n\n")
        await response.write_eof()
        return response


def _delta(index: int, kind: str, field: str, text: str) -> tuple[str, JsonObject]:
    return "content_block_delta", {"index": index, "delta": {"type": kind, field: text}}


def _begin(index: int, block: JsonObject) -> tuple[str, JsonObject]:
    return "content_block_start", {"index": index, "content_block": block}


_USAGE: JsonObject = {
    "input_tokens": 10,
    "cache_read_input_tokens": 90,
    "cache_creation_input_tokens": 5,
    "output_tokens": 1,
}
_MESSAGE: JsonObject = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [],
    "usage": _USAGE,
}
_EVENTS: tuple[tuple[str, JsonObject], ...] = (
    ("message_start", {"message": _MESSAGE}),
    _begin(0, {"type": "thinking", "thinking": ""}),
    _delta(0, "thinking_delta", "thinking", "hm"),
    _delta(0, "signature_delta", "signature", "PROOF=="),
    ("content_block_stop", {"index": 0}),
    _begin(1, {"type": "text", "text": ""}),
    _delta(1, "text_delta", "text", "Listing."),
    ("content_block_stop", {"index": 1}),
    _begin(2, {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {}}),
    _delta(2, "input_json_delta", "partial_json", '{"command":'),
    _delta(2, "input_json_delta", "partial_json", '"ls"}'),
    ("content_block_stop", {"index": 2}),
    ("message_delta", {"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
    ("message_stop", {}),
)
