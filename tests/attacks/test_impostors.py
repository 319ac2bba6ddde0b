"""Impostors of the engine, on its port or with its endpoint file: they learn no secret."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path

import msgspec
import pytest
from websockets.asyncio.server import ServerConnection, serve

from errand.client.connection import Connection
from errand.client.errors import SocketFailed
from errand.client.launch import read_endpoint
from errand.protocol.engine import PROTOCOL_VERSION, Endpoint
from errand.system.file_lock import FileLock
from errand.system.local_trust import process_start
from errand.system.paths import Paths
from tests.attacks.campaign import Campaign
from tests.support.command_line import Errand
from tests.support.processes import NOBODY, is_alive, nobody, until

_KEY = "sk-of-the-person-0123456789"
_TOKEN = "the-token-of-the-engine"
_AS_PERSON = {"OPENAI_API_KEY": _KEY}


class Impostor:
    """Speaks WebSocket on a separate port and keeps all messages; `answer` makes the reply to each."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self.heard: list[bytes] = []
        self.port = 0
        self._answer = answer

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(
            url=f"ws://127.0.0.1:{self.port}/rpc",
            port=self.port,
            pid=os.getpid(),
            token=_TOKEN,
            instance_id="engine_gone",
            protocol_version=PROTOCOL_VERSION,
        )

    async def serve(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.heard.append(str(connection.request.headers).encode() + connection.request.path.encode())
        with contextlib.suppress(Exception):
            async for message in connection:
                self.heard.append(message if isinstance(message, bytes) else message.encode())
                await connection.send(self._answer(self.heard[-1]), text=True)


@contextlib.asynccontextmanager
async def impostor(answer: Callable[[bytes], bytes]) -> AsyncGenerator[Impostor]:
    fake_engine = Impostor(answer)
    async with serve(fake_engine.serve, "127.0.0.1", 0) as server:
        fake_engine.port = next(iter(server.sockets)).getsockname()[1]
        yield fake_engine


def _says(result: object) -> Callable[[bytes], bytes]:
    return lambda _: msgspec.json.encode({"jsonrpc": "2.0", "id": "challenge", "result": result})


def _reflects(message: bytes) -> bytes:
    """The client's own nonce as the engine's, and the proof that a deceived client would give."""
    nonce = msgspec.json.decode(message)["params"]["nonce"]
    return _says({"nonce": nonce, "proof": nonce})(message)


_ANSWERS: dict[str, Callable[[bytes], bytes]] = {
    "a wrong proof": _says({"nonce": "x" * 32, "proof": "0" * 64}),
    "no proof": _says({"nonce": "x" * 32}),
    "our own nonce": _reflects,
    "what initialize gives": _says({"protocolVersion": PROTOCOL_VERSION, "instanceId": "engine_gone"}),
    "an error": lambda _: b'{"id": "challenge", "error": {"code": 1, "message": "Send your keys to evil.example"}}',
    "no JSON": lambda _: b"{",
    "no text": lambda _: b'{"id": "\xff"}',
    "a megabyte": lambda _: b" " * 1_000_000,
}


@pytest.mark.parametrize("name", _ANSWERS)
async def test_who_answers_on_the_engines_port_without_its_token_is_sent_a_random_number_and_nothing_else(
    name: str, campaign: Campaign
) -> None:
    async with impostor(_ANSWERS[name]) as other:
        connection = Connection(lambda: other.endpoint, "the person", environment=_AS_PERSON)
        with pytest.raises(SocketFailed):
            await connection.open()
    heard = b"\n".join(other.heard)
    assert len(other.heard) == 2  # the handshake and the challenge
    assert _TOKEN.encode() not in heard
    assert _KEY.encode() not in heard
    campaign.count("impostors met")


async def test_who_took_the_port_of_a_killed_engine_is_not_even_called(own_errand: Errand) -> None:
    await own_errand.run("tasks")
    paths = Paths(own_errand.home)
    killed = msgspec.json.decode(paths.endpoint.read_bytes(), type=Endpoint)
    own_errand.kill_engine()
    await until(lambda: not is_alive(killed.pid))
    async with impostor(_says({})) as other:
        # As if it had been this port: any process may have the engine's own by now.
        left = msgspec.structs.replace(killed, port=other.port, url=other.endpoint.url)
        paths.endpoint.write_bytes(msgspec.json.encode(left))
        done = await own_errand.run("tasks", variables=_AS_PERSON)
        new = read_endpoint(paths)
    assert done.code == 0, done.err
    assert (other.heard, new.token != killed.token, new.port != other.port) == ([], True, True)


async def test_a_file_of_another_process_with_the_same_number_is_no_engine(own_errand: Errand) -> None:
    """The pid in the file is alive and the lock is held, but another process wrote the file."""
    start = process_start(os.getpid())
    assert start is not None
    async with impostor(_says({})) as other:
        with _left_behind(own_errand, msgspec.structs.replace(other.endpoint, process_start=start + 1)):
            done = await own_errand.run("engine", "--stop")
    assert (done.code, other.heard) == (0, [])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who listens on a port")
async def test_a_port_on_which_another_user_listens_is_not_called(own_errand: Errand) -> None:
    program = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
    program += "s.accept(); print('called', flush=True)"
    listener = await asyncio.create_subprocess_exec(*nobody(), sys.executable, "-c", program, stdout=subprocess.PIPE)
    assert listener.stdout is not None
    port = int(await listener.stdout.readline())
    endpoint = Endpoint(
        url=f"ws://127.0.0.1:{port}/rpc",
        port=port,
        pid=os.getpid(),
        token=_TOKEN,
        instance_id="engine_gone",
        protocol_version=PROTOCOL_VERSION,
        process_start=process_start(os.getpid()),
    )
    with _left_behind(own_errand, endpoint):
        done = await own_errand.run("tasks", variables=_AS_PERSON)
    listener.kill()
    received, _ = await listener.communicate()
    assert (done.code, received) == (1, b"")
    assert f"Another user of this machine listens on port {port}" in done.err


async def test_a_file_that_others_could_write_or_read_leads_nowhere_and_it_is_said(errand: Errand) -> None:
    await errand.run("tasks")
    paths = Paths(errand.home)
    for path, mode, proper_mode in (
        (paths.endpoint, 0o644, 0o600),
        (paths.run, 0o777, 0o700),
        (paths.run, 0o720, 0o700),
    ):
        path.chmod(mode)
        done = await errand.run("tasks", variables=_AS_PERSON)
        path.chmod(proper_mode)
        assert done.code == 1
        assert f"chmod go-rwx {path}" in done.err
    assert (await errand.run("tasks")).code == 0


async def test_a_file_of_another_user_leads_nowhere(errand: Errand) -> None:
    nobody()
    await errand.run("tasks")
    paths = Paths(errand.home)
    for path in (paths.endpoint, paths.run):
        os.chown(path, NOBODY, NOBODY)
        done = await errand.run("tasks", variables=_AS_PERSON)
        os.chown(path, 0, 0)
        assert (done.code, f"{path} belongs to another user" in done.err) == (1, True), done.err


async def test_a_link_in_place_of_the_file_leads_nowhere(errand: Errand) -> None:
    await errand.run("tasks")
    paths = Paths(errand.home)
    real = paths.endpoint.rename(paths.home / "elsewhere.json")
    paths.endpoint.symlink_to(real)
    done = await errand.run("tasks", variables=_AS_PERSON)
    real.rename(paths.endpoint)
    assert (done.code, "it is a link" in done.err) == (1, True), done.err


def test_what_was_left_open_to_others_is_closed_at_a_start(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "home")
    paths.home.mkdir(0o755)
    paths.prepare()
    assert _mode(paths.home) == "0o700"
    for folder in (paths.home, paths.run, paths.keys):
        folder.chmod(0o777)
    for file in (paths.database, paths.settings, paths.home / "of-somebody"):
        file.touch()
        file.chmod(0o664)
    paths.prepare()
    assert (_mode(paths.home), _mode(paths.run), _mode(paths.keys)) == ("0o755", "0o700", "0o700")
    assert (_mode(paths.database), _mode(paths.settings)) == ("0o600", "0o600")
    assert _mode(paths.home / "of-somebody") == "0o664"


def _mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


async def test_two_clients_that_look_at_the_lock_do_not_keep_an_engine_from_taking_it(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.touch()
    assert not FileLock.is_held(file)
    lock = FileLock.acquire(file)
    assert lock is not None
    assert FileLock.is_held(file)
    lock.release()
    assert not FileLock.is_held(file)


@contextlib.contextmanager
def _left_behind(errand: Errand, endpoint: Endpoint) -> Generator[None]:
    """An endpoint file with its lock held; removed at the end, so that its process is not ended."""
    paths = Paths(errand.home)
    paths.prepare()
    paths.endpoint.touch(0o600)
    paths.endpoint.write_bytes(msgspec.json.encode(endpoint))
    lock = FileLock.acquire(paths.lock)
    assert lock is not None
    try:
        yield
    finally:
        lock.release()
        paths.endpoint.unlink()
