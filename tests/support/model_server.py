"""A scripted model server: replies in plain fields, or exact bytes."""

import argparse
import asyncio
import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias

import msgspec
import yaml
from aiohttp import web

from errand.protocol.base import JsonObject, JsonValue
from tests.support.anthropic_replies import message_pieces
from tests.support.gemini_replies import content_pieces
from tests.support.limits import WAIT_LIMIT_S
from tests.support.ollama_replies import line_pieces
from tests.support.responses_replies import response_pieces

__all__ = ["Call", "ModelServer", "ReceivedRequest", "Reply"]

_ENVIRONMENT = re.compile(r"<environment>\n.*?\n</environment>(\n\n)?", re.DOTALL)
_GEMINI = ":streamGenerateContent"


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call; `arguments` may be raw text, valid JSON or not. Index and id default to a count."""

    tool: str
    arguments: JsonObject | str = {}
    id: str | None = None
    index: int | None = None


_PIECE_LENGTH = 8
_MAX_PIECES = 2_000


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer of the server, the good ones first, then what can go wrong.

    Text, thinking and arguments are cut into pieces of `piece_length` characters, one chunk each; a long text is cut
    into longer pieces, unless a length was chosen. `delay_s` comes before the first chunk, `piece_delay_s` before each
    further one; `gate` is awaited before the first chunk.
    `status` other than 200 sends `body` (or an error of OpenAI's form with `error`) and `headers`. `cut_after` closes
    the socket after that many chunks, `stall_after` goes silent then until `rest` is set or the client leaves. `raw` is
    sent as it is, in place of chunks. `finish` overrides the finish reason; an empty text leaves it out. `done` sends
    [DONE].
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    piece_length: int = _PIECE_LENGTH
    delay_s: float = 0.0
    piece_delay_s: float = 0.0
    gate: asyncio.Event | None = None
    status: int = 200
    error: str = ""
    body: str = ""
    headers: dict[str, str] = {}
    cut_after: int | None = None
    stall_after: int | None = None
    rest: asyncio.Event | None = None
    raw: tuple[bytes, ...] | None = None
    finish: str | None = None
    done: bool = True
    usage: tuple[int, int] = (100, 20)

    def pieces(self) -> list[bytes]:
        """The body in the pieces that are sent."""
        if self.raw is not None:
            return list(self.raw)
        deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
        deltas += _deltas("reasoning_content", self.thinking, self.piece_length)
        deltas += _deltas("content", self.text, self.piece_length)
        for number, call in enumerate(self.calls):
            deltas += _call_deltas(call, number, self.piece_length)
        finish = self.finish if self.finish is not None else "tool_calls" if self.calls else "stop"
        events = [_event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
        if finish:
            events.append(_event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
        sent, generated = self.usage
        events.append(
            _event(
                {
                    "choices": [],
                    "usage": {"prompt_tokens": sent, "completion_tokens": generated, "total_tokens": sent + generated},
                }
            )
        )
        return [*events, b"data: [DONE]\n\n"] if self.done else events

    def message_pieces(self) -> list[bytes]:
        """The same as events of Anthropic's Messages API."""
        if self.raw is not None:
            return list(self.raw)
        finish = self.finish if self.finish is not None else "tool_calls" if self.calls else "stop"
        return message_pieces(self._blocks(), finish, self.usage, done=self.done)

    def content_pieces(self) -> list[bytes]:
        """The same as Gemini streams it; the arguments of calls must be valid."""
        if self.raw is not None:
            return list(self.raw)
        finish = self.finish if self.finish is not None else "tool_calls" if self.calls else "stop"
        calls: list[JsonObject] = [
            {"name": call.tool, "args": msgspec.convert(call.arguments, JsonObject)} for call in self.calls
        ]
        length = self.piece_length
        return content_pieces(_cut(self.thinking, length), _cut(self.text, length), calls, finish, self.usage)

    def response_pieces(self) -> list[bytes]:
        """The same as events of OpenAI's Responses API."""
        if self.raw is not None:
            return list(self.raw)
        length = self.piece_length
        calls = [
            (_call_id(call, number), call.tool, _cut(_raw_arguments(call), length))
            for number, call in enumerate(self.calls)
        ]
        finish = self.finish if self.finish is not None else "stop"
        return response_pieces(
            _cut(self.thinking, length), _cut(self.text, length), calls, finish if self.done else "", self.usage
        )

    def line_pieces(self) -> list[bytes]:
        """The same as lines of Ollama's own interface."""
        if self.raw is not None:
            return list(self.raw)
        finish = self.finish if self.finish is not None else "stop"
        thoughts, texts = _cut(self.thinking, self.piece_length), _cut(self.text, self.piece_length)
        calls = [(call.tool, call.arguments) for call in self.calls]
        return line_pieces(thoughts, texts, calls, finish, self.usage)

    def pieces_for(self, path: str) -> list[bytes]:
        """The pieces in the format of the API at this path."""
        match path:
            case "/v1/messages":
                return self.message_pieces()
            case "/v1/responses":
                return self.response_pieces()
            case "/api/chat":
                return self.line_pieces()
            case _ if path.endswith(_GEMINI):
                return self.content_pieces()
            case _:
                return self.pieces()

    def _blocks(self) -> Iterator[tuple[JsonObject, list[JsonObject]]]:
        length = self.piece_length
        if self.thinking:
            thoughts = [_typed("thinking_delta", "thinking", piece) for piece in _cut(self.thinking, length)]
            yield _typed("thinking", "thinking", ""), thoughts
        if self.text:
            yield _typed("text", "text", ""), [_typed("text_delta", "text", piece) for piece in _cut(self.text, length)]
        for number, call in enumerate(self.calls):
            raw = _raw_arguments(call)
            begun: JsonObject = {"type": "tool_use", "id": _call_id(call, number), "name": call.tool, "input": {}}
            yield begun, [_typed("input_json_delta", "partial_json", piece) for piece in _cut(raw, length)]


class ServerScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A YAML script for the server as a process: `replies` by the order of requests, or `turns` as in `by_turn`."""

    replies: tuple[Reply, ...] = ()
    turns: tuple[Reply, ...] = ()


def load(path: Path) -> ServerScript:
    return msgspec.convert(yaml.safe_load(path.read_text("utf-8")), ServerScript)


def _call_deltas(call: Call, number: int, length: int) -> list[JsonObject]:
    index = number if call.index is None else call.index
    call_id, raw = _call_id(call, number), _raw_arguments(call)
    first: JsonObject = {"index": index, "type": "function", "function": {"name": call.tool, "arguments": ""}}
    if call_id:
        first["id"] = call_id
    rest: list[JsonObject] = [{"index": index, "function": {"arguments": piece}} for piece in _cut(raw, length)]
    return [{"tool_calls": [delta]} for delta in (first, *rest)]


def _call_id(call: Call, number: int) -> str:
    return f"call_{number}" if call.id is None else call.id


def _raw_arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()


def _deltas(name: str, text: str, length: int) -> list[JsonObject]:
    return [{name: piece} for piece in _cut(text, length)]


def _typed(kind: str, name: str, text: str) -> JsonObject:
    return {"type": kind, name: text}


def _event(chunk: JsonObject) -> bytes:
    head: JsonObject = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model"}
    return b"data: " + msgspec.json.encode(head | chunk) + b"\n\n"


def _cut(text: str, length: int) -> list[str]:
    if length == _PIECE_LENGTH:
        length = max(length, len(text) // _MAX_PIECES)
    return [text[at : at + length] for at in range(0, len(text), length)]


def _without_environment(content: JsonValue) -> JsonValue:
    if isinstance(content, str):
        return _ENVIRONMENT.sub("", content)
    if not isinstance(content, list):
        return content
    return [part for part in map(_part_without_environment, content) if part != {"type": "text", "text": ""}]


def _part_without_environment(part: JsonValue) -> JsonValue:
    text = part.get("text") if isinstance(part, dict) else None
    return {**part, "text": _ENVIRONMENT.sub("", text)} if isinstance(part, dict) and isinstance(text, str) else part


@dataclass(slots=True)
class ReceivedRequest:
    """A request of a client. `gone` is set when it disconnected before the end, `served` when everything was sent."""

    path: str
    headers: dict[str, str]
    body: JsonObject
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    served: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def sent_messages(self) -> list[JsonObject]:
        """The messages of the request as they were sent; in the Responses API, its items."""
        messages = self.body.get("messages", self.body.get("input"))
        return [entry for entry in messages if isinstance(entry, dict)] if isinstance(messages, list) else []

    @property
    def messages(self) -> list[JsonObject]:
        """The same without what the engine says of the workspace before the words of a person."""
        return [
            entry | {"content": _without_environment(entry["content"])} if "content" in entry else entry
            for entry in self.sent_messages
        ]

    @property
    def last_said(self) -> str:
        """The last paragraph of the user: what a person says in a row is one message."""
        user_texts = [str(message["content"]) for message in self.messages if message.get("role") == "user"]
        return user_texts[-1].rpartition("\n\n")[2] if user_texts else ""

    @property
    def turn(self) -> int:
        """The number of assistant replies in the conversation."""
        if "input" not in self.body:
            return sum(1 for message in self.messages if message.get("role") == "assistant")
        is_reply = [
            item.get("role") == "assistant" or item.get("type") in ("reasoning", "function_call")
            for item in self.messages
        ]
        return sum(now and not before for before, now in zip([False, *is_reply], is_reply, strict=False))

    @property
    def offered(self) -> list[str]:
        """The names of the tools that the model may call."""
        listed = self.body.get("tools")
        tools = [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
        functions = [tool.get("function", tool) for tool in tools]
        return [str(function.get("name")) for function in functions if isinstance(function, dict)]


Page: TypeAlias = tuple[int, JsonObject]
Answer = Callable[[ReceivedRequest], Reply]


def in_order(replies: Sequence[Reply]) -> Answer:
    """Each request gets the next reply; after the last one requests are refused with a text."""
    left = iter(replies)
    return lambda request: next(left, _OVER)


def by_turn(turns: Sequence[Reply]) -> Answer:
    """Answer concurrent conversations: each request gets the reply of its turn."""
    return lambda request: turns[request.turn] if request.turn < len(turns) else _OVER


_OVER = Reply(status=400, error="the test's script has no further reply")


class ModelServer:
    """Serves `/v1/chat/completions`, `/v1/responses`, `/v1/messages`, `/api/chat`, Gemini's streams, `/v1/models` here.

    `url` is the base URL. `pages` has what other paths answer, as status and JSON or a function that returns them, and
    may change; those of local servers are in `local_servers.py`.
    """

    def __init__(
        self,
        replies: Sequence[Reply] = (),
        *,
        turns: Sequence[Reply] = (),
        answer: Answer | None = None,
        models: Sequence[str] = ("test-model",),
        responses: bool = True,
        port: int = 0,
        pages: Mapping[str, Page | Callable[[], Page]] | None = None,
    ) -> None:
        self.pages: dict[str, Page | Callable[[], Page]] = dict(pages or {})
        self.requests: list[ReceivedRequest] = []
        # What was sent to pages, with their paths.
        self.posts: list[tuple[str, JsonObject]] = []
        self.url = ""
        self._answer = answer or (by_turn(turns) if turns else in_order(replies))
        self._models = models
        self._has_responses = responses
        self._port = port
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/messages", self._complete)
        app.router.add_post("/api/chat", self._complete)
        if self._has_responses:
            app.router.add_post("/v1/responses", self._complete)
        app.router.add_post(f"/v1{{model:[^:]*}}{_GEMINI}", self._complete)
        app.router.add_get("/v1/models", self._list)
        app.router.add_route("*", "/{page:.*}", self._page)
        # Without handler_cancellation a waiting handler would not notice that its client disconnected.
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

    async def request(self, number: int, limit_s: float = WAIT_LIMIT_S) -> ReceivedRequest:
        """The request with this number (from 0), once it has arrived."""
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

    async def _page(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            self.posts.append((request.path, msgspec.json.decode(await request.read())))
        page = self.pages.get(request.path, (404, {"error": "not found"}))
        status, answer = page() if callable(page) else page
        return web.json_response(answer, status=status)

    async def _list(self, request: web.Request) -> web.Response:
        if request.path in self.pages:
            return await self._page(request)
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
    for number, piece in enumerate(reply.pieces_for(request.path)):
        if number == reply.cut_after:
            assert request.transport is not None
            request.transport.abort()
            return response
        if number == reply.stall_after:
            await (reply.rest or asyncio.Event()).wait()
        if number and reply.piece_delay_s:
            await asyncio.sleep(reply.piece_delay_s)
        await response.write(piece)
    await response.write_eof()
    return response


async def _serve(port: int, script: Path) -> None:
    scripted = load(script)
    async with ModelServer(scripted.replies, turns=scripted.turns, port=port) as server:
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
