"""A model server for benchmarks: fixed bytes over plain asyncio, so that only the client is measured.

The first argument is a list of calls in JSON, each with its tool and arguments: each conversation gets these in turn,
then one that ends the task. The second is the number of tokens that each reply streams before its call, 100 a second;
with 0 the reply is sent at once. Prints its base URL, then a line with the time (`time.time()`) of the first request
after each line it reads on stdin.
"""

import asyncio
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeAlias

import msgspec

Calls: TypeAlias = list[tuple[str, dict[str, object]]]

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

_TOKENS_A_SECOND = 100
_TEXTS = ("The ", "discount ", "was ", "taken ", "off ", "as ", "an ", "**amount** ", "and ", "`total` ", "is 190.\n\n")


def _event(delta: dict[str, object], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"id": "r", "choices": [choice]}) + b"\n\n"


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


def _call(tool: str, arguments: Mapping[str, object], number: int) -> bytes:
    """The body of a reply with one call, to its end."""
    function = {"name": tool, "arguments": msgspec.json.encode(arguments).decode()}
    delta: dict[str, object] = {
        "role": "assistant",
        "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}],
    }
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}\n\n'
    body = _event(delta, None) + _event({}, "tool_calls") + usage + b"data: [DONE]\n\n"
    return _chunk(body) + b"0\r\n\r\n"


_TOKENS = [_chunk(_event({"content": text}, None)) for text in _TEXTS]


class _Connection(asyncio.Protocol):
    def __init__(self, server: "BenchModel") -> None:
        self._server = server
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        marker = head.lower().find(b"content-length:")
        length = int(head[marker + 15 :].split(b"\r\n", 1)[0]) if marker >= 0 else 0
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        assert self._transport is not None
        answer = self._server.answer(rest[:length])
        if not self._server.tokens:
            self._transport.write(_HEAD + answer)
        else:
            self._transport.write(_HEAD)
            self._stream(answer, 0, asyncio.get_running_loop().time())

    def _stream(self, answer: bytes, number: int, began: float) -> None:
        """Send the next token and all that are due, then wait for the following one."""
        assert self._transport is not None
        if self._transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        while number < self._server.tokens and began + number / _TOKENS_A_SECOND <= loop.time():
            self._transport.write(_TOKENS[number % len(_TOKENS)])
            number += 1
        if number == self._server.tokens:
            self._transport.write(answer)
        else:
            loop.call_at(began + number / _TOKENS_A_SECOND, self._stream, answer, number, began)


class BenchModel:
    """Chooses the reply by the assistant messages in the request, so any number of conversations may run at once."""

    def __init__(self, calls: Calls, tokens: int) -> None:
        self.tokens = tokens
        self._replies = [_call(tool, arguments, number) for number, (tool, arguments) in enumerate(calls)]
        self._last = _call("task_complete", {"summary": "done"}, len(calls))
        self._armed = False

    def arm(self) -> None:
        """Report when the next request arrives."""
        self._armed = True

    def answer(self, body: bytes) -> bytes:
        if self._armed:
            self._armed = False
            sys.stdout.write(f"{time.time()}\n")
            sys.stdout.flush()
        turn = body.count(b'"role":"assistant"')
        return self._replies[turn] if turn < len(self._replies) else self._last


async def _serve(calls: Calls, tokens: int) -> None:
    model = BenchModel(calls, tokens)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(model), "127.0.0.1", 0, backlog=512)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()

    def read() -> None:
        if not sys.stdin.readline():
            server.close()
            loop.stop()
        model.arm()

    loop.add_reader(sys.stdin, read)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(RuntimeError):  # the loop was stopped: stdin is closed, the benchmark has ended
        asyncio.run(_serve(msgspec.json.decode(sys.argv[1], type=Calls), int(sys.argv[2])))
