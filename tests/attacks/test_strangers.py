"""Unauthenticated clients that open thousands of sockets and send nothing, or nonsense."""

import asyncio
import contextlib
import logging
import resource
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.server.acceptor import AcceptLimits, Acceptor
from errand.engine.server.websocket_server import bind_loopback
from errand.protocol.engine import Endpoint
from errand.system.log import RepeatLimit
from errand.system.paths import Paths
from tests.attacks.campaign import Campaign
from tests.support.command_line import Errand
from tests.support.connections import raw_client
from tests.support.engine_server import EngineServer, engine_server
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until
from tests.support.provider_servers import TOKEN, sharing

_UPGRADE = (
    "GET /rpc HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_REQUESTS = {
    "nothing": "",
    "half a request": "GET /rpc HTTP/1.1\r\nHost: 127",
    "a WebSocket and nothing more": _UPGRADE,
    "a page": "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
}


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as engine:
        yield engine


@contextlib.contextmanager
def _sockets(port: int, number: int, says: str) -> Generator[list[socket.socket]]:
    opened: list[socket.socket] = []
    try:
        for _ in range(number):
            connection = socket.socket()
            connection.setblocking(False)
            opened.append(connection)
            with contextlib.suppress(BlockingIOError):
                connection.connect(("127.0.0.1", port))
            with contextlib.suppress(OSError):
                connection.send(says.format(port=port).encode())
        yield opened
    finally:
        for connection in opened:
            connection.close()


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("name", _REQUESTS)
async def test_hundreds_of_strangers_take_few_descriptors_and_nobodys_place(
    engine: EngineServer, name: str, campaign: Campaign
) -> None:
    async with raw_client(engine, client_id="old") as old:
        before = _open_files()
        number = campaign.rounds(short=250, long=2_000)
        with _sockets(engine.server.port, number, _REQUESTS[name]):
            async with asyncio.timeout(WAIT_LIMIT_S), raw_client(engine, client_id="new") as new:
                # Our own ends are open in this process too.
                assert _open_files() - before - number <= AcceptLimits().unauthenticated + 10
                assert "result" in await new.ask("unsubscribe", "n", scope="all")
                assert "result" in await old.ask("unsubscribe", "o", scope="all")
        campaign.count("strangers", number)


async def test_strangers_of_the_shared_models_keep_nobody_out(tmp_path: Path) -> None:
    async with (
        ModelServer() as upstream,
        sharing(upstream.url, tmp_path, RetryPolicy()) as shared,
        aiohttp.ClientSession() as session,
    ):
        port = int(shared.url.rpartition(":")[2])
        with _sockets(port, 250, ""):
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with session.get(f"{shared.url}/api/models", headers=headers) as answer:
                assert answer.status == 200


class _Accepted(asyncio.Protocol):
    """Adds each accepted connection to a list."""

    def __init__(self, transports: list[asyncio.Transport]) -> None:
        self._made = transports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._made.append(transport)


async def test_who_does_not_say_who_they_are_is_sent_away_after_a_while_and_who_did_stays() -> None:
    transports: list[asyncio.Transport] = []
    listener = bind_loopback(0)
    acceptor = Acceptor(listener, AcceptLimits(authenticate_s=0.05))
    acceptor.start(lambda: _Accepted(transports))
    identified, identified_writer = await asyncio.open_connection(*listener.getsockname())
    await until(lambda: len(transports) == 1)
    acceptor.on_authenticated(transports[0])
    stranger, other = await asyncio.open_connection(*listener.getsockname())
    assert await stranger.read() == b""
    await acceptor.close()
    assert [transport.is_closing() for transport in transports] == [False, True]
    transports[0].close()
    assert await identified.read() == b""
    for writer in (identified_writer, other):
        writer.close()


async def test_a_request_that_comes_too_late_is_no_error_of_the_engine(
    engine: EngineServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run_out(acceptor: Acceptor, transport: asyncio.BaseTransport | None) -> None:
        assert transport is not None
        transport.close()

    monkeypatch.setattr(Acceptor, "on_request", run_out)
    await _send(engine.server.port, _UPGRADE.format(port=engine.server.port).encode())
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_task_goes_on_and_the_log_keeps_its_lines_while_strangers_do_their_worst(
    tmp_path: Path, workspace: Path, campaign: Campaign
) -> None:
    with_few_descriptors = ("sh", "-c", 'ulimit -n 400; exec "$@"', "sh")
    errand = Errand(tmp_path / "home", workspace, with_few_descriptors)
    await errand.run("tasks")
    port = msgspec.json.decode(Paths(errand.home).endpoint.read_bytes(), type=Endpoint).port
    calls = [Reply(calls=(Call("shell", {"command": f"echo {number}"}, f"c{number}"),)) for number in range(5)]
    bad = campaign.rounds(short=200, long=18_000)
    with _sockets(port, 600, ""):
        for _ in range(bad):
            await _send(port, b"GET /rpc HTTP/1.1\r\nContent-Length: abc\r\n\r\n")
        async with ModelServer(replies=[*calls, Reply(text="Done.")]) as server:
            model = ("--model", "openai_compatible/m", "--api-base", server.url)
            done = await errand.run("run", "--json", "--approve", "all", *model, "count")
    await errand.close()
    log = Paths(errand.home).logs.joinpath("engine.log").read_text()
    assert (done.code, done.lines[-1]["stopReason"]) == (0, "completed"), done.out + done.err
    assert "listening on" in log
    assert log.count("aiohttp.server Error handling request") == 20
    assert f"… {bad - 20:,} more like this" in log
    campaign.count("bad requests", bad)


async def _send(port: int, request: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.close()


async def test_where_all_places_are_taken_the_engine_works_on_until_one_is_free() -> None:
    transports: list[asyncio.Transport] = []
    listener = bind_loopback(0)
    acceptor = Acceptor(listener, AcceptLimits(unauthenticated=1, authenticate_s=60, silent_s=5))
    acceptor.start(lambda: _Accepted(transports))
    writers: list[asyncio.StreamWriter] = []
    for number in range(3):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writers.append(writer)
        await until(lambda number=number: len(transports) > number)
        acceptor.on_authenticated(transports[number])
    assert not any(transport.is_closing() for transport in transports), "nobody had to make room"
    await acceptor.close()
    for transport in (*transports, *writers):
        transport.close()


async def test_who_has_asked_for_something_keeps_its_place_before_who_says_nothing() -> None:
    transports: list[asyncio.Transport] = []
    listener = bind_loopback(0)
    acceptor = Acceptor(listener, AcceptLimits(unauthenticated=2, authenticate_s=60, silent_s=0, requested_s=60))
    acceptor.start(lambda: _Accepted(transports))
    writers: list[asyncio.StreamWriter] = []
    for number in range(3):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writers.append(writer)
        await until(lambda number=number: len(transports) > number)
        if number == 0:
            acceptor.on_request(transports[0])
    assert [transport.is_closing() for transport in transports[:2]] == [False, True]
    await acceptor.close()
    for transport in (*transports, *writers):
        transport.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives the limit back to a child")
async def test_the_engine_may_open_more_files_than_it_was_started_with_and_its_tools_may_not(
    tmp_path: Path, workspace: Path
) -> None:
    errand = Errand(tmp_path / "home", workspace, ("sh", "-c", 'ulimit -S -n 300; exec "$@"', "sh"))
    async with ModelServer(
        replies=[Reply(calls=(Call("shell", {"command": "ulimit -n"}),)), Reply(text="Done.")]
    ) as it:
        model = ("--model", "openai_compatible/m", "--api-base", it.url)
        done = await errand.run("run", "--json", "--approve", "all", *model, "count")
    limits = resource.prlimit(errand.engine_pid(), resource.RLIMIT_NOFILE)
    await errand.close()
    assert (done.code, '"300\\n' in done.out) == (0, True), done.out + done.err
    assert limits[0] == min(limits[1], 65_536)


def test_warnings_of_one_kind_are_counted_from_the_third_on_until_their_minute_is_over() -> None:
    now = [0.0]
    limit = RepeatLimit(most=2, seconds=60, clock=lambda: now[0])

    def record(line: int, level: int = logging.ERROR, error: Exception | None = None) -> logging.LogRecord:
        info = (type(error), error, None) if error is not None else None
        return logging.LogRecord("a", level, "a.py", line, "text", None, info)

    assert [limit.allows(record(1)) for _ in range(5)] == [True, True, False, False, False]
    assert [limit.allows(record(1, error=ValueError())), limit.allows(record(2))] == [True, True]
    assert all(limit.allows(record(3, logging.INFO)) for _ in range(9))
    assert limit.summaries() == []
    now[0] = 60.0
    assert [summary.getMessage().strip() for summary in limit.summaries()] == ["… 3 more like this"]
    assert limit.summaries(at_end=True) == []
    assert limit.allows(record(1))


_LARGE = 1_000_000


@pytest.mark.parametrize(
    "params",
    ["[" * _LARGE, "[]," * (_LARGE // 3), '{"x":' * (_LARGE // 5), '"",' * (_LARGE // 3), "7"],
    ids=["deep", "wide", "deep objects", "quotes", "a method without end"],
)
async def test_what_strangers_say_at_length_is_refused_without_being_read(engine: EngineServer, params: str) -> None:
    method = "x" * _LARGE if params == "7" else "challenge"
    frame = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}'
    async with raw_client(engine, client_id="") as stranger, raw_client(engine) as client:
        for ending in ("", "}"):
            await stranger.send(frame + ending)
            answer = await stranger.read()
            assert "error" in answer
            assert len(msgspec.json.encode(answer)) < 2_000
        assert "result" in await client.ask("unsubscribe", scope="all")


async def test_a_client_that_asks_too_fast_and_too_deep_is_told_so(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        for _ in range(1_000):
            await client.send('{"jsonrpc":"2.0","id":1,"method":"task/list","params":' + "[" * 2_000)
        errors = [str((await client.read())["error"]) for _ in range(1_000)]
        assert any("Too many requests" in text for text in errors)
        assert all("Too many requests" in text or "64 levels" in text for text in errors)
