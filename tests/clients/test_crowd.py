"""Clients that connect and disconnect at random end with exactly the stored state."""

from pathlib import Path

import pytest

from tests.clients.crowd import crowd

_CLIENTS = 20


@pytest.mark.parametrize("seed", range(2))
async def test_every_client_knows_in_the_end_what_the_database_holds(tmp_path: Path, seed: int) -> None:
    async with crowd(tmp_path, seed) as clients:
        await clients.play(_CLIENTS)
        assert clients.tally.faults == []
        assert clients.tally.done["resyncs"] > 0
