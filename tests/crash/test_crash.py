"""A short `make crash` on both databases; run the long one by hand and before a release."""

from pathlib import Path

from errand.system.paths import Paths
from tests.crash.run import crash, data_directory
from tests.support.postgres_server import PostgresServer
from tests.support.stored_records import PostgresRecords, SqliteRecords


async def test_engines_that_are_killed_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    stored = SqliteRecords(Paths(data_directory(tmp_path)).database)
    counts = await crash(6, seed=4, folder=tmp_path, stored=stored)
    assert (counts.engines, counts.tasks > 0) == (6, True)


async def test_engines_and_the_server_of_their_database_are_killed_and_lose_nothing(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    counts = await crash(3, seed=4, folder=tmp_path, stored=PostgresRecords(postgres))
    assert (counts.engines, counts.servers, counts.tasks > 0) == (3, 1, True)
