"""A separate engine process that dies while the window is open."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from errand.client.launch import connect, read_endpoint
from errand.paths import Paths
from errand.window.stores.stores import make_stores
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
    await until(lambda: states[:2] == ["ready", "lost"] and states[-1] == "ready", 30)
    assert read_endpoint(paths).pid != killed
    await stores.session.close()
