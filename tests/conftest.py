"""What all tests share: the command line on data directories of its own, and when garbage is collected.

Garbage is collected between tests and in the main thread, as the window does it: in a thread of a store it would delete
widgets of earlier tests there, and the process would crash at some later test.
Properties are tried with the same examples every time, however slow the machine: ERRAND_EXPLORE=1 tries others.
"""

import asyncio
import gc
import itertools
import os
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.errand import Errand

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("others", deadline=None, database=None)
settings.load_profile("others" if os.environ.get("ERRAND_EXPLORE") else "same")

_ALL_EVERY = 50
_numbers = itertools.count(1)


def pytest_sessionstart() -> None:
    gc.disable()


def pytest_runtest_logfinish() -> None:
    gc.collect(1 if next(_numbers) % _ALL_EVERY else 2)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A data directory for all tests that do not need their own: its engine is started by the first command."""
    folder = tmp_path_factory.mktemp("shared")
    yield folder / "home"
    asyncio.run(Errand(folder / "home", folder).close())


@pytest.fixture
def errand(shared_home: Path, workspace: Path) -> Errand:
    """The command line with the shared engine, in a folder of the test's own."""
    return Errand(shared_home, workspace)


@pytest.fixture
async def own_errand(tmp_path: Path, workspace: Path) -> AsyncGenerator[Errand]:
    """The command line with an engine of its own, which is ended after the test."""
    command = Errand(tmp_path / "home", workspace)
    yield command
    await command.close()
