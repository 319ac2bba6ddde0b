"""A model that streams 100 tokens per second for as long as requested. Prints its base URL."""

import asyncio
import json
import sys

_TOKENS_A_SECOND = 100
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_WORDS = ("the", "discount", "was", "taken", "off", "as", "an", "**amount**", "and", "`total`", "gave", "190.")
_LINE = 60  # tokens in a paragraph


def _event(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'r', 'choices': [choice]})}\n\n".encode()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tokens: int) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(_HEAD)
    loop = asyncio.get_running_loop()
    started = loop.time()
    for number in range(tokens):
        gap = "\n\n" if number % _LINE == _LINE - 1 else " "
        writer.write(_event(_WORDS[number % len(_WORDS)] + gap))
        await asyncio.sleep(max(0.0, started + number / _TOKENS_A_SECOND - loop.time()))
        if writer.is_closing():
            return
    writer.write(_event("", "stop") + b"data: [DONE]\n\n")
    writer.close()


async def _serve(seconds: int) -> None:
    tokens = seconds * _TOKENS_A_SECOND
    server = await asyncio.start_server(lambda r, w: _answer(r, w, tokens), "127.0.0.1", 0)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
