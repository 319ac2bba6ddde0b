"""A model server as people run one: it may want a key, answer with a page, send callers on, or be self-signed."""

import ssl
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from app.protocol.json import JsonObject


@dataclass(slots=True)
class OwnServer:
    """`keys` are those that callers sent, in order, empty for none; `paths` where they looked."""

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
    """`url` is the machine and port alone; the interface is at `base`. `rows` are its list in place of `models`."""
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

    app = web.Application()
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
    """A certificate for 127.0.0.1 that nobody else has signed."""
    made, kept = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    options = ["-keyout", str(kept), "-out", str(made), "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*command, *options], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made, kept)
    return context
