"""A scripted model for programs of others: one script, served in the protocols of OpenAI, Anthropic and Google.

A script maps words of a prompt to replies. The key that stands last in what a request's user said chooses
the script, and each request for it gets the next reply. Requests without tools, such as those for titles and
summaries, get `ASIDE`, in the tags that gemini-cli wants for a summary.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias

from errand.protocol.base import JsonObject, JsonValue

MODEL = "scripted-1"
ASIDE = "Aside of the script"
_SNAPSHOT = b"<state_snapshot>"


@dataclass(frozen=True, slots=True)
class Reply:
    """`calls` are names and arguments of tools; `status` other than 200 is an error; `hangs` never ends the text."""

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, JsonObject], ...] = ()
    status: int = 200
    hangs: bool = False


Record: TypeAlias = dict[str, object]
Script: TypeAlias = Mapping[str, Sequence[Reply]]
Wire: TypeAlias = Callable[[Reply, int], Iterator[bytes]]


@dataclass(slots=True)
class ScriptedModel:
    """`requests` keeps the bodies of all requests; `hung` is set when a reply that hangs was sent."""

    script: Script
    requests: list[tuple[str, JsonValue]] = field(default_factory=list[tuple[str, JsonValue]])
    hung: threading.Event = field(default_factory=threading.Event)
    _served: dict[str, int] = field(default_factory=dict[str, int])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, path: str, data: bytes) -> tuple[Reply, int]:
        """The reply, and a number that makes its ids unique."""
        body: JsonValue = json.loads(data or b"{}")
        asked = body if isinstance(body, dict) else {}
        with self._lock:
            self.requests.append((path, body))
            number = len(self.requests)
            text = json.dumps(list(_said(asked)), ensure_ascii=False)
            key = max((key for key in self.script if key in text), key=text.rindex, default=None)
            if key is None or not asked.get("tools"):
                return Reply(f"<state_snapshot>\n{ASIDE}\n</state_snapshot>" if _SNAPSHOT in data else ASIDE), number
            turn = self._served.get(key, 0)
            self._served[key] = turn + 1
            replies = self.script[key]
            return (replies[turn] if turn < len(replies) else Reply(f"Nothing more for {key}.")), number

    def start(self) -> str:
        """Serve on the loopback; returns the address. The threads end with the process."""
        server = _Server(("127.0.0.1", 0), _Handler)
        server.model = self
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] - the only server that has this handler

    def do_GET(self) -> None:
        listed: Record = {"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []}
        self._send(200, "application/json", [json.dumps(listed).encode()])

    def do_POST(self) -> None:
        model = self.server.model
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            counted: Record = {"input_tokens": 10, "totalTokens": 10}
            self._send(200, "application/json", [json.dumps(counted).encode()])
            return
        reply, number = model.reply(path, data)
        if reply.status != 200:
            error: Record = {"type": "invalid_request_error", "message": reply.text, "code": reply.status}
            refused: Record = {"type": "error", "error": error}
            self._send(reply.status, "application/json", [json.dumps(refused).encode()])
            return
        wire = _wire(path)
        if wire is None:
            self._send(404, "text/plain", [b"no such wire"])
            return
        events = list(wire(reply, number))
        if path.endswith(":generateContent"):
            self._send(200, "application/json", [events[0].removeprefix(b"data: ")])
            return
        # The events after the text are what ends it.
        sent_count = next((at for at, event in enumerate(events) if reply.text.encode() in event), 0) + 1
        self._send(200, "text/event-stream", events[:sent_count] if reply.hangs else events)
        if reply.hangs:
            model.hung.set()
            time.sleep(60)

    def _send(self, status: int, kind: str, pieces: list[bytes]) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _said(asked: JsonObject) -> Iterator[JsonValue]:
    """Yield what the person, or the agent that called this one, said."""
    for name in ("messages", "input", "contents"):
        entries = asked.get(name)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and (entry.get("role") == "user" or entry.get("type") == "agent_message"):
                yield entry


def _wire(path: str) -> Wire | None:
    wires = {
        "/chat/completions": _chat,
        "/responses": _responses,
        "/messages": _anthropic,
        ":streamGenerateContent": _gemini,
        ":generateContent": _gemini,
    }
    return next((wire for ending, wire in wires.items() if path.endswith(ending)), None)


def _data(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _event(value: Record) -> bytes:
    return f"event: {value['type']}\n".encode() + _data(value)


def _chat(reply: Reply, number: int) -> Iterator[bytes]:
    head: Record = {"id": f"chat-{number}", "object": "chat.completion.chunk", "created": 1, "model": MODEL}

    def chunk(delta: Record, finish: str | None = None) -> bytes:
        return _data(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    if reply.thinking:
        yield chunk({"reasoning_content": reply.thinking})
    if reply.text:
        yield chunk({"content": reply.text})
    for at, (name, arguments) in enumerate(reply.calls):
        function: Record = {"name": name, "arguments": json.dumps(arguments)}
        yield chunk(
            {"tool_calls": [{"index": at, "id": f"call_{number}_{at}", "type": "function", "function": function}]}
        )
    yield chunk({}, "tool_calls" if reply.calls else "stop")
    usage: Record = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    last: Record = {"choices": [], "usage": usage}
    yield _data(head | last)
    yield b"data: [DONE]\n\n"


def _responses(reply: Reply, number: int) -> Iterator[bytes]:
    yield _event({"type": "response.created", "response": {"id": f"resp_{number}"}})
    items: list[Record] = []
    if reply.thinking:
        summary: list[Record] = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": "gAAA"})
    if reply.text:
        content: list[Record] = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content})
    for at, (name, arguments) in enumerate(reply.calls):
        call: Record = {"call_id": f"call_{number}_{at}", "id": f"fc_{number}_{at}"}
        space, _, bare = name.rpartition("/")
        named: Record = {"name": bare, "namespace": space} if space else {"name": name}
        raw = arguments.get("raw input")
        if raw is not None:
            items.append({"type": "custom_tool_call", "input": raw} | named | call)
        else:
            items.append({"type": "function_call", "arguments": json.dumps(arguments)} | named | call)
    for at, item in enumerate(items):
        yield _event({"type": "response.output_item.added", "output_index": at, "item": item})
        if item["type"] == "message":
            yield _event(
                {
                    "type": "response.output_text.delta",
                    "output_index": at,
                    "content_index": 0,
                    "item_id": item["id"],
                    "delta": reply.text,
                }
            )
        yield _event({"type": "response.output_item.done", "output_index": at, "item": item})
    usage: Record = {
        "input_tokens": 100,
        "input_tokens_details": None,
        "output_tokens": 10,
        "output_tokens_details": None,
        "total_tokens": 110,
    }
    yield _event({"type": "response.completed", "response": {"id": f"resp_{number}", "usage": usage}})


def _anthropic(reply: Reply, number: int) -> Iterator[bytes]:
    message: Record = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL}
    usage: Record = {"input_tokens": 100, "output_tokens": 10}
    yield _event(
        {
            "type": "message_start",
            "message": message | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage},
        }
    )
    blocks: list[tuple[Record, list[Record]]] = []
    if reply.thinking:
        deltas: list[Record] = [
            {"type": "thinking_delta", "thinking": reply.thinking},
            {"type": "signature_delta", "signature": "c2ln"},
        ]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if reply.text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": reply.text}]))
    for at, (name, arguments) in enumerate(reply.calls):
        block: Record = {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": name, "input": {}}
        blocks.append((block, [{"type": "input_json_delta", "partial_json": json.dumps(arguments)}]))
    for at, (block, deltas) in enumerate(blocks):
        yield _event({"type": "content_block_start", "index": at, "content_block": block})
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": at, "delta": delta})
        yield _event({"type": "content_block_stop", "index": at})
    stop: Record = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}})
    yield _event({"type": "message_stop"})


def _gemini(reply: Reply, number: int) -> Iterator[bytes]:
    parts: list[object] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in reply.calls]
    candidate: Record = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    # gemini-cli keeps a summary only if it is shorter than what was sent with the last request.
    sent = 100 + 10 * len(reply.text)
    usage: Record = {"promptTokenCount": sent, "candidatesTokenCount": 10, "totalTokenCount": sent + 10}
    yield _data({"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": f"r{number}"})
