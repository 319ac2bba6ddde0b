"""OpenCode's database while OpenCode writes to it, and databases that mean harm."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from errand.engine.core.errors import InvalidParams
from tests.engine.data.importers.test_real_sessions import conversations, sessions_of
from tests.engine.data.test_round_trip import home

_SESSION = "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)"


async def test_database_is_read_while_opencode_has_it_open(tmp_path: Path) -> None:
    path = sessions_of("opencode", tmp_path) / "opencode.db"
    async with home(tmp_path / "home") as data_home:
        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("UPDATE session SET title = 'Renamed now' WHERE title = 'Breaks'")
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("UPDATE session SET title = 'Not committed' WHERE title = 'Renamed now'")
            done = await data_home.take(path)
            writer.execute("COMMIT")
        assert done.conversations == 5
        titles = [each.title for each, _ in await conversations(data_home)]
        assert "Renamed now" in titles and "Not committed" not in titles


async def test_import_leaves_no_file_beside_the_database(tmp_path: Path) -> None:
    folder = sessions_of("opencode", tmp_path)
    before = (folder / "opencode.db").read_bytes()
    async with home(tmp_path / "home") as data_home:
        await data_home.take(folder)
    assert [file.name for file in folder.iterdir()] == ["opencode.db"]
    assert (folder / "opencode.db").read_bytes() == before


@pytest.mark.parametrize(
    "harm",
    [
        "CREATE TABLE session (id, time_created); CREATE TABLE message (id); CREATE VIEW part AS SELECT 1 AS data",
        "CREATE TABLE session (a); CREATE TABLE message (b); CREATE TABLE part (c)",
        "CREATE TABLE cookies (host, value)",
    ],
)
async def test_other_databases_are_refused(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(harm)
    async with home(tmp_path / "home") as data_home:
        with pytest.raises(InvalidParams, match="database"):
            await data_home.take(path)


async def test_damaged_databases_only_cause_refusals(tmp_path: Path) -> None:
    path = sessions_of("opencode", tmp_path) / "opencode.db"
    content = path.read_bytes()
    async with home(tmp_path / "home") as data_home:
        for offset in range(100, len(content), len(content) // 12):
            path.write_bytes(content[:offset] + bytes(range(200)) + content[offset + 200 :])
            try:
                await data_home.take(path)
            except InvalidParams as error:
                assert str(path) in str(error)
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(InvalidParams, match="cannot be read"):
            await data_home.take(path)


async def test_values_of_wrong_types_are_counted_and_left_out(tmp_path: Path) -> None:
    path = sessions_of("opencode", tmp_path) / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"{_SESSION} VALUES ('odd', 'p', 's', '/', x'00ff', '1', 'never', 0)")
        database.execute("INSERT INTO message VALUES ('m', 'odd', 0, 0, x'ff')")
        database.execute("INSERT INTO part VALUES ('p', 'm', 'odd', 0, 0, 7)")
        database.commit()
    async with home(tmp_path / "home") as data_home:
        done = await data_home.take(path)
        assert done.conversations == 5
        assert "sessions that cannot be read" in {left.kind for left in done.left}
