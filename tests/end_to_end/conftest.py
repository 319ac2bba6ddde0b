"""What the end-to-end tests share: a data directory, a folder to work in, and the command line on them."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.errand import Errand


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
async def errand(tmp_path: Path, workspace: Path) -> AsyncGenerator[Errand]:
    """The command line with an engine of its own, which is ended after the test."""
    command = Errand(tmp_path / "home", workspace)
    yield command
    await command.close()
