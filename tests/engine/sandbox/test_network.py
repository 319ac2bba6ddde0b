"""Commands that have the network: they reach it only through the engine's proxy."""

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errand.engine.permissions.addresses import is_public, is_this_machine
from errand.engine.permissions.network import judge_connection, needs_network
from errand.engine.sandbox.http_proxy import Judge
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.context import ToolContext
from tests.engine.sandbox.conftest import profile_of, run_shell
from tests.support.company_network import certificate
from tests.support.limits import WAIT_LIMIT_S
from tests.support.loop_parts import task_of
from tests.support.processes import until


@asynccontextmanager
async def serving(body: bytes = b"reached", tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """An HTTP server that answers each request with the body, and a redirect at /away."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"http://" not in head.partition(b"\r\n")[0], "the server gets a path"
        away = b"Location: http://127.0.0.1:1/\r\n" if b" /away " in head else b""
        status = b"302 Found" if away else b"200 OK"
        length = str(len(body)).encode()
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + away + b"Content-Length: " + length + b"\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def opened(context: ToolContext, judge: Judge) -> ToolContext:
    return replace(context, sandbox=CommandSandbox(replace(profile_of(context), network=True), judge))


def anything(host: str, port: int, addresses: Sequence[str]) -> None:
    return None


def by_policy(*listed: str, own_port: int | None = None) -> Judge:
    return lambda host, port, addresses: judge_connection(host, port, addresses, listed, own_port)


_CURL = "curl -sS --noproxy '' --max-time 5"
_TO_PROXY = "exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}"


async def test_a_command_reaches_a_listed_host_through_the_proxy(sandboxed: ToolContext) -> None:
    async with task_of(sandboxed), serving() as port:
        context = opened(sandboxed, by_policy(f"localhost:{port}"))
        assert await run_shell(context, f"{_CURL} http://localhost:{port}/a?b=c") == "reached"
        assert context.sandbox is not None
        await context.sandbox.after(has_background=False)


@pytest.mark.parametrize(
    "url", ["http://localhost:{port}/", "http://127.0.0.1:{port}/", "http://[::1]:{port}/", "http://0.0.0.0:{port}/"]
)
async def test_this_machine_is_closed(sandboxed: ToolContext, url: str) -> None:
    async with serving() as port:
        output = await run_shell(opened(sandboxed, by_policy()), f"{_CURL} '{url.format(port=port)}'")
    assert "reached" not in output and "Errand does not connect to" in output


async def test_the_engines_port_is_closed_though_its_host_is_listed(sandboxed: ToolContext) -> None:
    async with serving() as port:
        output = await run_shell(
            opened(sandboxed, by_policy("localhost", "127.0.0.1", own_port=port)),
            f"{_CURL} http://localhost:{port}/; {_CURL} http://127.0.0.1:{port}/; {_CURL} http://127.1:{port}/",
        )
    assert "reached" not in output and output.count("the engine's own port is closed") >= 2


async def test_a_redirect_is_judged_again(sandboxed: ToolContext) -> None:
    async with serving() as port:
        context = opened(sandboxed, by_policy(f"localhost:{port}"))
        output = await run_shell(context, f"{_CURL} -L http://localhost:{port}/away")
    assert "Errand does not connect to 127.0.0.1:1" in output


@pytest.mark.parametrize(
    "line",
    [
        "echo > /dev/tcp/127.0.0.1/{port}",
        "curl -sS --noproxy '*' --max-time 2 http://127.0.0.1:{port}/",
        "echo x > /dev/udp/127.0.0.1/{port}; cat < /dev/tcp/127.0.0.1/{port}",
    ],
)
async def test_there_is_no_way_around_the_proxy(sandboxed: ToolContext, line: str) -> None:
    async with serving() as port:
        output = await run_shell(opened(sandboxed, anything), f"({line.format(port=port)}) 2>&1 || echo refused")
    assert output.endswith("refused") and "reached" not in output


async def test_https_and_git_work_through_a_tunnel(sandboxed: ToolContext) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate(sandboxed.workspace, "localhost"))
    git = f"{'0' * 40}\trefs/heads/main\n".encode()
    async with serving(git, tls) as port:
        context = opened(sandboxed, by_policy(f"localhost:{port}"))
        output = await run_shell(
            context,
            f"{_CURL} --cacert ca.pem https://localhost:{port}/; "
            f"NO_PROXY= no_proxy= GIT_SSL_CAINFO=ca.pem git ls-remote https://localhost:{port}/x.git",
        )
    assert output.splitlines() == [git.decode().strip()] * 2


async def test_pip_works(sandboxed: ToolContext) -> None:
    page = b"<!DOCTYPE html><html><body></body></html>"
    async with serving(page) as port:
        context = opened(sandboxed, by_policy(f"localhost:{port}"))
        output = await run_shell(
            context,
            "NO_PROXY= no_proxy= python3 -m pip download --disable-pip-version-check --retries 0 --timeout 5 "
            f"--index-url http://localhost:{port}/simple nothing-there 2>&1",
        )
    assert "No matching distribution found" in output, output


async def test_a_server_of_the_command_itself_is_reached(sandboxed: ToolContext) -> None:
    """`localhost` inside is the sandbox's own."""
    async with task_of(sandboxed):
        output = await run_shell(
            opened(sandboxed, by_policy()),
            "echo mine > index.html; python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 & "
            "for i in $(seq 100); do curl -s http://127.0.0.1:8123/ && break; sleep 0.05; done; kill %1",
        )
    assert output == "mine"


@pytest.mark.parametrize(
    "request_text",
    ["GET / HTTP/1.1", "CONNECT localhost HTTP/1.1", "GET ftp://x/ HTTP/1.1", "CONNECT http://x:80 HTTP/1.1", "x" * 9],
)
async def test_what_is_no_request_for_a_proxy_is_refused(sandboxed: ToolContext, request_text: str) -> None:
    talk = f"{_TO_PROXY}; printf '{request_text}\\r\\n\\r\\n' >&3; head -n1 <&3"
    assert "400 This proxy takes" in await run_shell(opened(sandboxed, anything), talk)


async def test_a_large_answer_passes_whole(sandboxed: ToolContext) -> None:
    async with serving(bytes(5_000_000)) as port:
        context = opened(sandboxed, by_policy(f"localhost:{port}"))
        assert await run_shell(context, f"{_CURL} http://localhost:{port}/ | wc -c") == "5000000"


async def test_a_command_whose_program_is_missing_says_so(sandboxed: ToolContext, tmp_path: Path) -> None:
    output = await run_shell(opened(sandboxed, anything), "nothing-of-this-name")
    assert "[exit code 127: a program was not found" in output


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("example.org", ["127.0.0.1"]),
        ("example.org", ["93.184.215.14", "10.0.0.1"]),
        ("example.org", ["::ffff:192.168.0.1"]),
        ("10.0.0.1", ["10.0.0.1"]),
        ("169.254.169.254", ["169.254.169.254"]),
        ("metadata.google.internal", ["93.184.215.14"]),
        ("example.org", ["64:ff9b::7f00:1"]),
        ("0x7f.1", ["127.0.0.1"]),
        ("fd00::1", ["fd00::1"]),
        ("localhost.", ["127.0.0.1"]),
    ],
)
def test_names_and_addresses_of_the_inside_are_closed(host: str, addresses: list[str]) -> None:
    assert judge_connection(host, 443, addresses, (), None) is not None


@pytest.mark.parametrize(
    ("host", "addresses"), [("example.org", ["93.184.215.14"]), ("8.8.8.8", ["8.8.8.8"]), ("a.b", ["2606:4700::1"])]
)
def test_public_hosts_are_open(host: str, addresses: list[str]) -> None:
    assert judge_connection(host, 443, addresses, ("localhost:5432",), 1234) is None


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("pip install x", True),
        ("sudo -E env A=b timeout 5 curl https://x", True),
        ("cd sub && git -C x fetch origin", True),
        ("python3.11 -m pip install x", True),
        ("bash -c 'npm ci'", True),
        ("git commit -m 'push'", False),
        ("pytest curl", False),
        ("make", False),
        ("echo curl", False),
    ],
)
def test_the_commands_that_need_the_network_are_known(line: str, needs: bool) -> None:
    assert needs_network(line) is needs


async def test_a_background_process_keeps_no_sockets_of_later_commands(sandboxed: ToolContext) -> None:
    async with task_of(sandboxed):
        context = opened(sandboxed, anything)
        await run_shell(context, "sleep 60 >/dev/null 2>&1 &")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(4):
            await run_shell(context, "true")
        assert len(os.listdir("/proc/self/fd")) == before
        assert context.sandbox is not None
        await context.sandbox.proxy.close()


async def test_names_that_nobody_answers_block_no_thread_of_the_engine(
    sandboxed: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, real = threading.Event(), socket.getaddrinfo

    def look_up(host: str, *rest: Any, **options: Any) -> Any:
        if host.endswith(".hang"):
            answered.wait(30)
            raise socket.gaierror
        return real(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    context = opened(sandboxed, anything)
    hang = "".join(f"{_CURL} http://{number}.hang/ & " for number in range(12))
    running = asyncio.create_task(run_shell(context, f"touch started; {hang} wait"))
    try:
        await until((context.workspace / "started").exists)
        async with task_of(context), asyncio.timeout(WAIT_LIMIT_S):
            # As a stop does.
            await asyncio.gather(*(asyncio.to_thread(str) for _ in range(40)))
    finally:
        answered.set()
        await running


def test_an_address_of_this_machine_is_not_public() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))
        own = str(probe.getsockname()[0])
    assert is_this_machine(own) and is_this_machine("127.0.0.1")
    assert not is_this_machine("198.51.100.1") and is_public("8.8.8.8")
