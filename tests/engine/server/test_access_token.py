"""The access token is checked for every message, and what is refused leaves a line in the log."""

import asyncio
import logging

import pytest
from websockets.exceptions import ConnectionClosed

from errand.client.connection import Connection
from errand.client.launch import read_endpoint
from errand.protocol.engine import ENGINE_ROTATE_TOKEN
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from errand.system.paths import Paths
from tests.support.command_line import Errand
from tests.support.connections import error_of, raw_client
from tests.support.engine_server import TOKEN, EngineServer


async def test_a_rotation_disconnects_every_other_client_at_once_and_the_old_token_is_wrong(
    engine: EngineServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw_client(engine, client_id="owner") as owner, raw_client(engine, client_id="other") as other:
        await other.ask("subscribe", scope="all")
        assert (await owner.ask(ENGINE_ROTATE_TOKEN.name))["result"] == {}
        await owner.ask("task/start", 2, prompt="unseen")
        with pytest.raises(ConnectionClosed):
            await other.read()
        assert "result" in await owner.ask("unsubscribe", 3, scope="all")
    assert engine.token.value != TOKEN
    async with raw_client(engine, client_id="") as stale:
        await stale.ask("challenge", nonce="a-nonce-of-the-test")
        answer = await stale.ask("initialize", 2, clientId="stale", clientName="stale", proof="0" * 64)
        assert "proof: wrong" in error_of(answer)[2]
    assert "the token was replaced: disconnected 'raw'" in caplog.text
    assert "refused initialize of 'an unknown client': proof: wrong" in caplog.text


async def test_a_request_that_was_sent_before_the_rotation_reached_its_client_is_refused(engine: EngineServer) -> None:
    async with raw_client(engine, client_id="other") as other:
        await other.request("task/start", prompt="late")
        engine.token.rotate()  # before the engine reads it
        with pytest.raises(ConnectionClosed):
            await other.read()
    assert engine.runner.started == []


async def test_the_fifth_wrong_proof_closes_the_connection(
    engine: EngineServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw_client(engine, client_id="") as guesser:
        await guesser.ask("challenge", nonce="a-nonce-of-the-test")
        for number in range(5):
            answer = await guesser.ask("initialize", number, clientId="x", clientName="x", proof=str(number))
            assert "proof: wrong" in error_of(answer)[2]
        with pytest.raises(ConnectionClosed):
            await guesser.read()
    assert "too many wrong proofs" in caplog.text


@pytest.mark.parametrize(
    ("request_line", "status", "logged"),
    [
        ("GET / HTTP/1.1", b"404", "refused GET '/'"),
        ("POST /rpc HTTP/1.1", b"404", "refused POST '/rpc'"),
        ("OPTIONS /rpc HTTP/1.1", b"404", "refused OPTIONS '/rpc'"),
        ("GET /rpc HTTP/1.1", b"426", "refused GET '/rpc'"),
        ("GET /..%2f..%2fetc/passwd HTTP/1.1", b"404", "refused GET '/../../etc/passwd'"),
    ],
)
async def test_http_requests_are_refused_with_a_line_in_the_log(
    engine: EngineServer, request_line: str, status: bytes, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", engine.server.port)
    writer.write(f"{request_line}\r\nHost: 127.0.0.1:{engine.server.port}\r\nContent-Length: 0\r\n\r\n".encode())
    assert status in await reader.readline()
    writer.close()
    assert logged in caplog.text


async def test_a_stranger_cannot_write_lines_of_its_own_into_the_log(
    engine: EngineServer, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", engine.server.port)
    writer.write(
        b"GET /%0d%0a2026-01-01%20INFO%20allowed HTTP/1.1\r\nHost: x\r\nOrigin: \x85\xe2\x80\xa8all good\r\n\r\n"
    )
    assert b"404" in await reader.readline()
    writer.close()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "\n" not in line and "\r" not in line and "\u2028" not in line


async def test_the_command_replaces_the_token_and_a_client_that_may_read_the_new_one_goes_on(
    own_errand: Errand,
) -> None:
    assert "No engine is running" in (await own_errand.run("engine", "--rotate-token")).out
    await own_errand.run("tasks")
    paths = Paths(own_errand.home)
    before = read_endpoint(paths).token
    async with Connection(lambda: read_endpoint(paths), "test") as connection:
        await connection.open()
        done = await own_errand.run("engine", "--rotate-token")
        assert (await connection.call(TASK_LIST, TaskListParams())).tasks == ()
    assert (done.code, "new access token" in done.out) == (0, True), done.err
    after = read_endpoint(paths).token
    assert after != before
    log = (paths.logs / "engine.log").read_text()
    assert "the token was replaced: disconnected 'test'" in log
    assert before not in log and after not in log
