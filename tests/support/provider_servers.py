"""Keeps model servers on this machine's usual ports out of the tests.

Every local provider has a variable for its address; here they all name a port at which nothing ever answers: it is
bound for as long as the process lives, so that nobody else can listen there.
"""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec
from aiohttp import web

from errand.engine.core.secrets import KeyStore
from errand.engine.models.catalog.providers import PROVIDERS, Provider, find
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter
from errand.engine.server.websocket_server import bind_loopback
from errand.engine.sharing.server import SharedModelFilter, SharingLimits, SharingServer
from errand.engine.sharing.tokens import Tokens
from errand.protocol.base import JsonObject, JsonValue
from errand.text.redaction import Redactor

TOKEN = "a-token-of-the-test-0123456789"


def _bound_port() -> int:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    port: int = bound.getsockname()[1]
    bound.detach()  # stays bound until the process ends
    return port


NOWHERE = f"127.0.0.1:{_bound_port()}"
NO_LOCAL_SERVERS: Mapping[str, str] = {row.base_variable: NOWHERE for row in PROVIDERS if row.is_local}


@dataclass(frozen=True, slots=True)
class Shared:
    """The address, and what its client needs."""

    url: str
    row: Provider
    token: Callable[[], Awaitable[str | None]]
    tokens_file: Path


@asynccontextmanager
async def sharing(
    upstream: str,
    folder: Path,
    retry: RetryPolicy,
    bounds: SharingLimits | None = None,
    offer: SharedModelFilter | None = None,
) -> AsyncGenerator[Shared]:
    """Share models; `upstream` replaces Ollama there."""
    file = folder / "share-tokens.txt"
    file.touch(0o600)
    file.write_text(f"ann {TOKEN}\n")
    keys = KeyStore(folder / "keys-of-the-other", {**NO_LOCAL_SERVERS, "OLLAMA_HOST": upstream}, lambda: None)
    models = ModelRouter(keys, folder, retry)
    server = SharingServer(
        models, Tokens.open(file, Redactor()), offer or SharedModelFilter(), bounds or SharingLimits()
    )
    listener = bind_loopback(0)
    port = listener.getsockname()[1]
    await server.start([listener])
    row = find("proxy")
    assert row is not None
    try:
        yield Shared(f"http://127.0.0.1:{port}", row, _token, file)
    finally:
        await server.close()
        await models.close()


async def _token() -> str | None:
    return TOKEN


class AnthropicServer:
    """Answers every request with thinking, text and a call of `shell`; `bodies` has the requests.

    Its list of models has one. `keys` has those of the callers.
    """

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[str] = []
        self.bodies: list[JsonObject] = []
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/messages", self._answer)
        app.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _list(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("x-api-key", ""))
        return web.json_response({"data": [{"type": "model", "id": "claude-test"}]})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body: JsonValue = msgspec.json.decode(await request.read())
        assert isinstance(body, dict)
        self.keys.append(request.headers.get("x-api-key", ""))
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


class StreamPlayer:
    """Answers any path on the loopback; `piece` 0 sends everything at once. `paths` has the requested paths."""

    def __init__(self, body: bytes, piece: int = 0) -> None:
        self.url = ""
        self.paths: list[str] = []
        self._body = body
        self._piece = piece or len(body)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for at in range(0, len(self._body), self._piece):
            await response.write(self._body[at : at + self._piece])
            await asyncio.sleep(0)  # let the client read it before the next
        await response.write_eof()
        return response


@dataclass(slots=True)
class OwnServer:
    """A custom server. `keys` are the keys of its callers, in order, empty for none; `paths` the requested paths."""

    url: str = ""
    models: tuple[str, ...] = ("qwen3", "text-embedding-9")
    keys: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])


@asynccontextmanager
async def own_server(
    *,
    base: str = "/v1",
    key: str = "",
    page: bool = False,
    moved_to: str = "",
    models: Sequence[str] = ("qwen3", "text-embedding-9"),
    rows: Sequence[JsonObject] = (),
    certificate: ssl.SSLContext | None = None,
    port: int = 0,
) -> AsyncGenerator[OwnServer]:
    """`url` has only host and port; the API is at `base`, where each model says OK.

    `rows` is its model list instead of `models`.
    """
    server = OwnServer(models=tuple(models))

    async def listed(request: web.Request) -> web.Response:
        server.paths.append(request.path)
        server.keys.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if moved_to:
            return web.Response(status=302, headers={"Location": moved_to})
        if page:
            return web.Response(text="<!doctype html><title>Welcome</title>", content_type="text/html")
        if key and server.keys[-1] != key:
            return web.json_response({"error": {"message": f"no such key {server.keys[-1]}"}}, status=401)
        if request.path != f"{base}/models":
            return web.json_response({"error": "not found"}, status=404)
        return web.json_response({"data": list(rows) or [{"id": name} for name in server.models]})

    async def replied(request: web.Request) -> web.Response:
        server.paths.append(request.path)
        server.keys.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if key and server.keys[-1] != key:
            return web.json_response({"error": {"message": f"no such key {server.keys[-1]}"}}, status=401)
        chunk = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "OK"}, "finish_reason": "stop"}]}
        body = f"data: {msgspec.json.encode(chunk).decode()}\n\ndata: [DONE]\n\n"
        return web.Response(text=body, content_type="text/event-stream")

    app = web.Application()
    app.router.add_post(f"{base}/chat/completions", replied)
    app.router.add_get("/{path:.*}", listed)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=certificate).start()
    host, number = runner.addresses[0][:2]
    server.url = f"{'https' if certificate else 'http'}://{host}:{number}"
    try:
        yield server
    finally:
        await runner.cleanup()


def self_signed(folder: Path) -> ssl.SSLContext:
    """A self-signed certificate for 127.0.0.1."""
    certificate, private_key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    options = ["-keyout", str(private_key), "-out", str(certificate), "-days", "2", "-subj", "/CN=127.0.0.1"]
    options += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *options], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, private_key)
    return context


def entries_of(messages: list[JsonValue]) -> list[JsonObject]:
    """Every message as an object, which it must be."""
    return msgspec.convert(messages, list[JsonObject])


def calls_of(entry: JsonObject) -> list[str]:
    """The ids of the tool calls in an assistant's entry."""
    calls = msgspec.convert(entry.get("tool_calls") or [], list[JsonObject])
    return [str(call["id"]) for call in calls]


def text_in(entries: list[JsonObject]) -> str:
    return msgspec.json.encode(entries).decode()
