"""A model server process that floods its client: `python -m tests.benchmarks.flood_server` prints its URL.

The model's name selects what it sends: text, arguments or calls. The second request of a conversation gets a short
reply.
"""

import asyncio
import sys
from collections.abc import Iterator

import msgspec

from errand.protocol.base import JsonObject

_TEXT_BYTES = 52_000_000
_ARGUMENT_BYTES = 30_000_000
_CALLS = 200_000
_PIECE = "All work and no play makes a reply without an end. " * 2


def _event(delta: JsonObject, finish: str | None = None) -> bytes:
    return (
        b"data: " + msgspec.json.encode({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + b"\n\n"
    )


def _calls(numbers: range, arguments: str, name: str = "shell") -> JsonObject:
    return {
        "tool_calls": [{"index": n, "id": f"c{n}", "function": {"name": name, "arguments": arguments}} for n in numbers]
    }


def _flood(kind: str) -> Iterator[bytes]:
    match kind:
        case "text":
            piece = _event({"content": _PIECE})
            yield from (piece for _ in range(_TEXT_BYTES // len(_PIECE)))
        case "arguments":
            yield _event(_calls(range(1), '{"command": "'))
            piece = _event(_calls(range(1), _PIECE, ""))
            yield from (piece for _ in range(_ARGUMENT_BYTES // len(_PIECE)))
            yield _event(_calls(range(1), '"}', ""))
        case "calls":
            for first in range(0, _CALLS, 100):
                yield _event(_calls(range(first, first + 100), "{}"))
        case _:
            yield _event({"content": "Nothing."})
    yield _event({}, "stop")


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.lower().splitlines() if line.startswith(b"content-length:")]
    body = await reader.readexactly(int(lengths[0].split(b":")[1])) if lengths else b"{}"
    asked = msgspec.json.decode(body, type=JsonObject)
    is_first = b'"role":"assistant"' not in body
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    try:
        if is_first:
            for piece in _flood(str(asked.get("model"))):
                writer.write(piece)
                await writer.drain()
        else:
            writer.write(_event({"content": "Done."}) + _event({}, "stop"))
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
    except ConnectionError:
        pass  # it was cut, as expected
    writer.close()


async def _run() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_run())
