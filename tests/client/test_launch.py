"""Finding the engine of a data directory, or starting one that outlives the client."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from errand.client.errors import ConnectionLost, LaunchError, NoEngine
from errand.client.launch import connect, read_endpoint
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_SHUTDOWN, ENGINE_STATUS, EngineShutdownParams
from errand.system.paths import Paths
from tests.support.command_line import engine_home
from tests.support.disks import filled, small_disk
from tests.support.limits import WAIT_LIMIT_S
from tests.support.warm_errand import ForkedEngine

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def real_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines are started as by a user."""
    monkeypatch.setattr("errand.client.launch.EngineProcess", ForkedEngine.__base__)


@pytest.fixture
def paths(tmp_path: Path) -> Generator[Paths]:
    with engine_home(tmp_path / "home") as paths:
        yield paths


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_LIMIT_S):
        while not condition():  # noqa: ASYNC110 -- another process does it: there is no event
            await asyncio.sleep(0.01)


async def shut_down(paths: Paths) -> None:
    connection = await connect(paths, "test", start=False)
    await connection.call(ENGINE_SHUTDOWN, EngineShutdownParams())
    await connection.close()
    await until(lambda: not paths.endpoint.exists())


async def test_clients_that_start_at_once_share_one_engine_that_then_ends_in_order(paths: Paths) -> None:
    first, second, third = await asyncio.gather(*(connect(paths, f"client {number}") for number in range(3)))
    assert first.instance_id == second.instance_id == third.instance_id
    assert (await first.call(ENGINE_STATUS, EmptyParams())).clients == 3
    mode = paths.endpoint.stat().st_mode & 0o777
    assert mode == 0o600
    for connection in (first, second, third):
        await connection.close()
    await shut_down(paths)
    with pytest.raises(NoEngine):
        await connect(paths, "test", start=False)


async def test_the_engine_outlives_the_client_that_started_it(paths: Paths) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from errand.client.launch import connect\n"
        "from errand.system.paths import Paths\n"
        "async def main():\n"
        "    connection = await connect(Paths(pathlib.Path(sys.argv[1])), 'short')\n"
        "    sys.stdout.write(connection.instance_id)\n"
        "    await connection.close()\n"
        "asyncio.run(main())\n"
    )
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", "-c", script, str(paths.home), cwd=ROOT, stdout=subprocess.PIPE
    )
    output, _ = await client.communicate()
    assert client.returncode == 0
    connection = await connect(paths, "test", start=False)
    assert connection.instance_id == output.decode()
    await connection.close()
    await shut_down(paths)


async def test_an_engine_that_was_killed_is_replaced_by_the_next_client(paths: Paths) -> None:
    first = await connect(paths, "first")
    killed = first.instance_id
    os.kill(read_endpoint(paths).pid, signal.SIGKILL)
    second = await connect(paths, "second")
    assert second.instance_id != killed
    # The first client finds the new one by itself.
    await until(lambda: first.instance_id == second.instance_id)
    await first.close()
    await second.close()
    await shut_down(paths)


@pytest.mark.parametrize("content", ["", "garbage", '{"url": 1}'])
async def test_a_broken_endpoint_file_means_no_engine(paths: Paths, content: str) -> None:
    paths.prepare()
    paths.endpoint.write_text(content, encoding="utf-8")
    with pytest.raises(NoEngine):
        await connect(paths, "test", start=False)


async def test_stale_endpoint_file_with_a_reused_pid_is_detected(paths: Paths) -> None:
    paths.prepare()
    stale = {"url": "ws://127.0.0.1:9/rpc", "port": 9, "pid": os.getpid(), "token": "t"}
    stale |= {"instanceId": "gone", "protocolVersion": 1}
    paths.endpoint.write_text(json.dumps(stale), encoding="utf-8")
    connection = await connect(paths, "test")
    assert connection.instance_id != "gone"
    await connection.close()
    await shut_down(paths)


async def test_failed_engine_start_reports_its_last_output(paths: Paths) -> None:
    paths.prepare()
    paths.settings.write_text("{ not JSON", encoding="utf-8")
    with pytest.raises(LaunchError, match="settings"):
        await connect(paths, "test")


async def test_an_engine_that_finds_no_space_to_start_in_is_told_as_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        paths = Paths(disk / "data")
        paths.prepare()
        with filled(disk), pytest.raises(LaunchError, match=r"The disk of .*data is full: free some space"):
            await connect(paths, "test")


async def test_a_second_engine_names_the_process_that_has_the_directory(paths: Paths) -> None:
    connection = await connect(paths, "test")
    second = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "errand", "engine", cwd=ROOT, env=os.environ | {"ERRAND_HOME": str(paths.home)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, error_output = await second.communicate()
    assert second.returncode == 1
    assert str(read_endpoint(paths).pid) in error_output.decode()
    assert (await connection.call(ENGINE_STATUS, EmptyParams())).clients == 1
    await connection.close()
    await shut_down(paths)


async def test_engine_in_shutdown_disconnects_its_clients(paths: Paths) -> None:
    connection = await connect(paths, "test")
    await shut_down(paths)
    await connection.close()
    with pytest.raises(ConnectionLost):
        await connection.call(ENGINE_STATUS, EmptyParams())
