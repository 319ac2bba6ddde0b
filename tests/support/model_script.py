"""What the model server is told to send: replies in plain fields, or exact bytes. Sending is left to the server."""

import asyncio
from pathlib import Path

import msgspec
import yaml

from app.protocol.json import JsonObject


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call; `arguments` may be raw text, valid JSON or not. Index and id are counted where left out."""

    tool: str
    arguments: JsonObject | str = {}
    id: str | None = None
    index: int | None = None


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer of the server, the good ones first, then what can go wrong.

    Text, thinking and arguments are cut into pieces of `piece_length` characters, one chunk each. `delay_s` comes
    before the first chunk, `piece_delay_s` before each further one; `gate` is awaited before the first chunk.
    `status` other than 200 sends `body` (or an error of OpenAI's form with `error`) and `headers`. `cut_after` closes
    the socket after that many chunks, `stall_after` goes silent then until the client leaves. `raw` is sent as it is,
    in place of chunks. `finish` overrides the finish reason; an empty text leaves it out. `done` sends [DONE].
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    piece_length: int = 8
    delay_s: float = 0.0
    piece_delay_s: float = 0.0
    gate: asyncio.Event | None = None
    status: int = 200
    error: str = ""
    body: str = ""
    headers: dict[str, str] = {}
    cut_after: int | None = None
    stall_after: int | None = None
    raw: tuple[bytes, ...] | None = None
    finish: str | None = None
    done: bool = True
    usage: tuple[int, int] = (100, 20)

    def pieces(self) -> list[bytes]:
        """The body in the pieces in which it is sent."""
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
        sent, given = self.usage
        events.append(
            _event(
                {
                    "choices": [],
                    "usage": {"prompt_tokens": sent, "completion_tokens": given, "total_tokens": sent + given},
                }
            )
        )
        return [*events, b"data: [DONE]\n\n"] if self.done else events


class ServerScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A YAML file for the server as a process: `replies` by the order of requests, or `turns` as in `by_turn`."""

    replies: tuple[Reply, ...] = ()
    turns: tuple[Reply, ...] = ()


def load(path: Path) -> ServerScript:
    return msgspec.convert(yaml.safe_load(path.read_text("utf-8")), ServerScript)


def _call_deltas(call: Call, number: int, length: int) -> list[JsonObject]:
    index = number if call.index is None else call.index
    call_id = f"call_{number}" if call.id is None else call.id
    raw = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
    first: JsonObject = {"index": index, "type": "function", "function": {"name": call.tool, "arguments": ""}}
    if call_id:
        first["id"] = call_id
    rest: list[JsonObject] = [{"index": index, "function": {"arguments": piece}} for piece in _cut(raw, length)]
    return [{"tool_calls": [delta]} for delta in (first, *rest)]


def _deltas(name: str, text: str, length: int) -> list[JsonObject]:
    return [{name: piece} for piece in _cut(text, length)]


def _event(chunk: JsonObject) -> bytes:
    head: JsonObject = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model"}
    return b"data: " + msgspec.json.encode(head | chunk) + b"\n\n"


def _cut(text: str, length: int) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]
