"""A separate engine process that dies while the window is open, or is not there yet."""

import asyncio
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from errand.client.connection import Connection
from errand.client.errors import LaunchError
from errand.client.launch import connect, read_endpoint
from errand.system.paths import Paths
from errand.window.stores.stores import make_stores
from errand.window.stores.task_commands import TaskControlStore
from tests.support.command_line import engine_home
from tests.support.processes import until


@pytest.fixture
def paths(tmp_path: Path) -> Generator[Paths]:
    with engine_home(tmp_path / "home") as paths:
        yield paths


async def test_an_engine_that_was_killed_is_started_again(paths: Paths) -> None:
    stores = make_stores(lambda: connect(paths, "the window"))
    states: list[str] = []
    stores.session.state_changed.connect(lambda: states.append(stores.session.state))
    await stores.session.start()
    killed = read_endpoint(paths).pid
    os.kill(killed, signal.SIGKILL)
    # Lost twice, with another reason, if the start of the next engine takes long.
    await until(lambda: states[:2] == ["ready", "lost"] and states[-1] == "ready")
    assert read_endpoint(paths).pid != killed
    await stores.session.close()


async def test_what_is_asked_for_before_the_first_connection_is_done_once_it_exists(paths: Paths) -> None:
    may_connect = asyncio.Event()

    async def connect_late() -> Connection:
        await may_connect.wait()
        return await connect(paths, "the window")

    stores = make_stores(connect_late)
    failures: list[str] = []
    control = TaskControlStore(stores.session)
    control.failed.connect(failures.append)
    starting = asyncio.create_task(stores.session.start())
    control.stop("a task that does not exist")
    await asyncio.sleep(0)
    assert failures == []
    may_connect.set()
    await starting
    await until(lambda: failures != [])
    assert "There is no task" in failures[0]
    await stores.session.close()


async def test_what_was_asked_for_says_why_no_engine_could_be_reached(paths: Paths) -> None:
    async def connect_never() -> Connection:
        raise LaunchError("The engine does not start.")

    stores = make_stores(connect_never)
    failures: list[str] = []
    control = TaskControlStore(stores.session)
    control.failed.connect(failures.append)
    control.stop("t1")
    await stores.session.start()
    await until(lambda: failures != [])
    assert failures[0].startswith("The engine does not start.")
    await stores.session.close()
