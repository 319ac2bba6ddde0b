"""A network that leads out through an HTTP proxy, which signs what it passes on with an authority of its own."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HOST = "server.company.test"


@dataclass(frozen=True, slots=True)
class CompanyNetwork:
    """`proxy` is its address, `ca_file` the authority; `seen` has the first line of each request to the proxy.

    `HOST`, which no name server knows, is reached through it alone: with https and with http.
    """

    proxy: str
    ca_file: Path
    seen: list[str] = field(default_factory=list[str])
    logins: list[str] = field(default_factory=list[str])


@asynccontextmanager
async def company_network(
    folder: Path, server_port: int, environment: pytest.MonkeyPatch
) -> AsyncGenerator[CompanyNetwork]:
    """Leads to the server at a port of this machine; the environment names the proxy."""
    ca_file, key = certificate(folder, HOST)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(ca_file, key)
    async with AsyncExitStack() as stack:

        async def lead_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _copy_both(reader, writer, server_port)

        inside = await stack.enter_async_context(await asyncio.start_server(lead_on, "127.0.0.1", 0, ssl=tls))
        tls_port = int(inside.sockets[0].getsockname()[1])

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *headers = head.split("\r\n")
            network.seen.append(first)
            network.logins.extend(line.partition(": ")[2] for line in headers if line.startswith("Proxy-Authorization"))
            if HOST not in first:
                writer.write(b"HTTP/1.1 502 Unknown host\r\n\r\n")
                writer.close()
            elif first.startswith("CONNECT "):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _copy_both(reader, writer, tls_port)
            else:
                method, url, version = first.split(" ")
                path = "/" + url.split("/", 3)[3]
                await _copy_both(reader, writer, server_port, "\r\n".join((f"{method} {path} {version}", *headers)))

        outside = await stack.enter_async_context(await asyncio.start_server(serve, "127.0.0.1", 0))
        address = f"127.0.0.1:{outside.sockets[0].getsockname()[1]}"
        network = CompanyNetwork(f"http://{address}", ca_file)
        for name in ("http_proxy", "https_proxy"):
            environment.setenv(name, f"http://me:secret@{address}")
        yield network


def certificate(folder: Path, host: str) -> tuple[Path, Path]:
    """A self-signed certificate of `host`, and its key."""
    files = folder / "ca.pem", folder / "key.pem"
    name = ("-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}")
    new = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", *name)
    subprocess.run([*new, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


async def _copy_both(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, head: str = "") -> None:
    there, out = await asyncio.open_connection("127.0.0.1", port)
    out.write(head.encode())
    await asyncio.wait({asyncio.ensure_future(_copy(reader, out)), asyncio.ensure_future(_copy(there, writer))})


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
