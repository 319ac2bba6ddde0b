"""An engine server and connections to it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.engine_server import EngineServer, engine_server


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        yield running
