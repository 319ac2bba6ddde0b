"""What the end-to-end tests share: data directories, a folder to work in, and the command line on them."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.support.errand import Errand


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
