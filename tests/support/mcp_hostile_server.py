"""An MCP server that answers with what takes much memory or time. Arguments: transport (stdio, json, sse), kind.

Needs no packages. On the web it prints its port.
"""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

transport, kind = sys.argv[1], sys.argv[2]
DIGITS = b"9" * 400


def answer(number: object, result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def around(number: object, content: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":{"content":%s}}' % (cast(int, number), content)


def progress(number: object, amount: bytes) -> bytes:
    params = b'{"progressToken":%d,"progress":%s}' % (cast(int, number), amount)
    return b'{"jsonrpc":"2.0","method":"notifications/progress","params":%s}' % params


def tool(name: str, **schema: object) -> dict[str, object]:
    return {"name": name, "description": "d", "inputSchema": {"type": "object", **schema}}


def doubling() -> dict[str, object]:
    """Return 95 KB of definitions, each of which refers twice to the next."""
    parts: dict[str, object] = {
        f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in ("l", "r")}} for n in range(10)
    }
    parts["d10"] = {"type": "string", "description": "x" * 90_000}
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts}


def tools(cursor: object) -> dict[str, object]:
    if kind == "schemas":
        return {"tools": [tool("echo"), tool("hostile"), *(tool(f"t{n}", **doubling()) for n in range(12))]}
    if kind == "pages":
        page = [tool(f"t{cursor}x{n}", properties={"a": {"description": "x" * 50_000}}) for n in range(100)]
        return {"tools": [tool("echo"), tool("hostile"), *page], "nextCursor": f"{cursor}1"}
    return {"tools": [tool("echo"), tool("hostile")]}


def called(number: object, name: object) -> Iterator[bytes]:
    """Yield the messages that answer a call."""
    hello = answer(number, {"content": [{"type": "text", "text": "hello"}]})
    if name == "hostile":
        match kind:
            case "lists":
                yield around(number, b"[" + b"[]," * 10_000_000 + b"[]]")
                return
            case "values":
                yield around(number, b"[" + b"[]," * 2_000_000 + b"[]]")
                return
            case "members":
                yield around(number, b"{" + b",".join(b'"%d":0' % n for n in range(500_000)) + b"}")
                return
            case "text":
                yield around(number, b'"' + b"x" * 20_000_000 + b'"')
                return
            case "deep":
                yield around(number, b"[" * 1_000_000 + b"]" * 1_000_000)
                return
            case "digits":
                yield progress(number, DIGITS)
                yield b'{"jsonrpc":"2.0","id":%s,"result":{}}' % DIGITS
                yield b'{"jsonrpc":"2.0","id":null,"error":{"code":%s,"message":"m"}}' % DIGITS
            case "unasked":
                yield b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}' % (b"x" * 9_000_000)
                yield b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":[%s0]}}' % (b"[]," * 900_000)
            case "ids":
                for number_of_server in (b"1e300", b"1" + b"0" * 30, b"-1e25"):
                    yield b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % number_of_server
            case _:
                pass
    yield hello


def answers(message: dict[str, object]) -> Iterator[bytes]:
    number, params = message.get("id"), cast("dict[str, object]", message.get("params") or {})
    match message.get("method"):
        case "initialize":
            yield answer(number, {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}})
        case "tools/list":
            yield answer(number, tools(params.get("cursor", "")))
        case "tools/call":
            yield from called(number, params["name"])
        case _:
            pass


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(405)

    def do_POST(self) -> None:
        parts = list(answers(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        is_stream = transport == "sse"
        body = b"".join(b"data: %s\n\n" % part for part in parts) if is_stream else b"".join(parts[-1:])
        self.send_response(200 if body else 202)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    if transport != "stdio":
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
    for line in sys.stdin:
        sys.stdout.buffer.write(b"".join(part + b"\n" for part in answers(json.loads(line))))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
