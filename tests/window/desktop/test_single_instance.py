"""A second start wakes the open window; callers without the token are rejected."""

import asyncio
import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from errand.system.local_trust import is_valid_proof, proof
from errand.window.desktop.instance_server import InstanceServer
from errand.window.desktop.single_instance import InstanceAddress, InstanceProof, WakeRequest, wake_running_window
from tests.support.window import until


class Opened:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.server = InstanceServer(file)
        self.requests: list[WakeRequest] = []
        self.server.wake_requested.connect(self.requests.append)

    @property
    def address(self) -> InstanceAddress:
        return msgspec.json.decode(self.file.read_bytes(), type=InstanceAddress)


@pytest.fixture
async def opened(qapp: object, tmp_path: Path) -> AsyncGenerator[Opened]:
    opened = Opened(tmp_path / "window.json")
    await opened.server.open()
    yield opened
    opened.server.close()


async def say(port: int, message: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(message)
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_wake_request_is_accepted_and_answered(opened: Opened) -> None:
    taken = await asyncio.to_thread(wake_running_window, opened.file, "open", "conv_1", "activation")
    assert taken
    assert [(wish.what, wish.conversation_id, wish.activation) for wish in opened.requests] == [
        ("open", "conv_1", "activation")
    ]
    assert stat.S_IMODE(opened.file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "message",
    [b'{"proof": "guess", "what": "show"}\n', b"not json\n", b"\n", b"x" * 10_000, b"GET / HTTP/1.1\r\n\r\n"],
)
async def test_a_caller_without_the_token_is_rejected(opened: Opened, message: bytes) -> None:
    assert await say(opened.address.port, message) == b""
    assert opened.requests == []


async def test_a_proof_for_other_nonces_is_rejected(opened: Opened) -> None:
    token = opened.address.token
    for own in (proof(token, "asks", "n", "m"), proof("guess", "asks", "n", ""), token):
        reader, writer = await asyncio.open_connection("127.0.0.1", opened.address.port)
        writer.write(b'{"nonce": "n"}\n')
        answer = msgspec.json.decode(await reader.readline(), type=InstanceProof)
        assert is_valid_proof(answer.proof, token, "answers", "n", answer.nonce)
        writer.write(msgspec.json.encode(WakeRequest(own, "show")) + b"\n")
        assert await reader.read() == b""
        writer.close()
    assert opened.requests == []


async def test_many_silent_callers_do_not_block_a_second_start(opened: Opened) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", opened.address.port) for _ in range(100)]
    assert await asyncio.to_thread(wake_running_window, opened.file, "show")
    for reader, writer in silent:
        assert await reader.read() == b""
        writer.close()


async def test_a_process_on_the_port_of_a_killed_window_learns_neither_token_nor_request(
    opened: Opened, tmp_path: Path
) -> None:
    heard: list[bytes] = []

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.write(b'{"nonce": "m", "proof": "%s"}\nok\n' % (b"0" * 64))
        heard.append(await reader.read())
        writer.close()

    async with await asyncio.start_server(impostor, "127.0.0.1", 0) as server:
        left = tmp_path / "left.json"
        address = InstanceAddress(server.sockets[0].getsockname()[1], opened.address.token)
        left.touch(0o600)
        left.write_bytes(msgspec.json.encode(address))
        assert not await asyncio.to_thread(wake_running_window, left, "open", "conv_1", "activation", 0)
        await until(lambda: len(heard) == 2)
    assert opened.address.token.encode() not in heard[0]
    assert heard[1] == b""


async def test_a_silent_caller_delays_no_other_and_is_disconnected(opened: Opened) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", opened.address.port)
    assert await asyncio.to_thread(wake_running_window, opened.file, "show")
    writer.close()
    assert await reader.read() == b""


async def test_the_stale_file_of_a_killed_window_is_ignored(opened: Opened, tmp_path: Path) -> None:
    left = tmp_path / "left.json"
    left.touch(0o600)
    left.write_bytes(opened.file.read_bytes())
    opened.server.close()
    assert not opened.file.exists()
    assert not await asyncio.to_thread(wake_running_window, left, "show", timeout_s=0.1)
    left.write_bytes(b"{half")
    assert not await asyncio.to_thread(wake_running_window, left, "show", timeout_s=0.1)


async def test_a_second_start_waits_for_a_window_that_is_just_starting(qapp: object, tmp_path: Path) -> None:
    late = Opened(tmp_path / "late.json")
    ringing = asyncio.get_running_loop().create_task(asyncio.to_thread(wake_running_window, late.file, "show"))
    await late.server.open()
    await until(ringing.done)
    assert ringing.result()
    late.server.close()
