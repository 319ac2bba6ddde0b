"""Opening a database: a new one, an old one, and files that must not be mistaken for one."""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from errand.engine.core.errors import ConfigurationError, StorageError
from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations
from errand.engine.storage.records.agents import ASSISTANT
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.system.database_file import replacement_path
from tests.support.records import conversation


async def filled(path: Path, count: int = 1) -> str:
    """A database with this many conversations; returns its epoch."""
    database = await Database.open(sqlite_url(path), path.parent / "copies")
    for number in range(count):
        database.journal.put(conversations.save(conversation(f"c{number}")))
    await database.close()
    return database.epoch


async def test_a_new_database_has_the_assistant_an_epoch_and_nothing_else(tmp_path: Path) -> None:
    database = await Database.open(sqlite_url(tmp_path / "home" / "errand.db"), tmp_path / "copies")
    try:
        assert await database.personalities.all() == (ASSISTANT,)
        assert len(database.epoch) == 32
        assert (await database.conversations.page()).conversations == ()
        assert await database.events.bounds() == (0, 0)
    finally:
        await database.close()
    assert (tmp_path / "home" / "errand.db").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "copies").exists()


async def test_opening_again_keeps_the_epoch_and_the_records(tmp_path: Path) -> None:
    epoch = await filled(tmp_path / "errand.db")
    database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path)
    stored = await database.conversations.get("c0")
    await database.close()
    assert (database.epoch, stored) == (epoch, conversation("c0"))


async def test_closing_puts_all_into_the_file_although_another_program_has_it_open(tmp_path: Path) -> None:
    file = tmp_path / "errand.db"
    await filled(file)
    with closing(sqlite3.connect(file)) as other:
        other.execute("SELECT name FROM meta").fetchone()
        await filled(file, 3)
        assert file.with_name("errand.db-wal").stat().st_size == 0
        shutil.copy2(file, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT count(*) FROM conversations").fetchone() == (3,)


async def test_a_read_whose_caller_is_cancelled_leaves_nothing_behind_that_holds_the_log(tmp_path: Path) -> None:
    database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path / "copies")
    for number in range(2_000):
        database.journal.put(conversations.save(conversation(f"c{number}")))
    await database.journal.flush()
    for moment in range(40):
        reading = asyncio.create_task(database.conversations.page(200))
        await asyncio.sleep(moment / 10_000)
        reading.cancel()
        await asyncio.wait({reading})
    await database.close()  # nothing collects garbage before: what is left of a read may stay for long
    assert not (tmp_path / "errand.db-wal").exists() or not (tmp_path / "errand.db-wal").stat().st_size


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\x00" + b"\xff" * 5000])
async def test_non_database_file_is_refused_and_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "errand.db"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="Nothing was changed"):
        await Database.open(sqlite_url(path), tmp_path / "copies")
    assert path.read_bytes() == content


async def test_folder_at_the_database_path_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        await Database.open(sqlite_url(tmp_path), tmp_path / "copies")


async def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="No database can be made"):
        await Database.open(sqlite_url(tmp_path / "file" / "errand.db"), tmp_path / "copies")


async def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "errand.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE things (name TEXT)")
    with pytest.raises(StorageError, match="not a database of Errand"):
        await Database.open(sqlite_url(path), tmp_path / "copies")


async def test_a_newer_schema_is_refused_and_the_file_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "errand.db"
    await filled(path)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
        newer.commit()
    before = path.read_bytes(), path.stat().st_mtime_ns, _beside(path)
    with pytest.raises(StorageError, match=r"newer Errand \(schema 9999"):
        await Database.open(sqlite_url(path), tmp_path / "copies")
    assert (path.read_bytes(), path.stat().st_mtime_ns, _beside(path)) == before


async def test_newer_database_keeps_its_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "errand.db"
    await filled(path)
    with closing(sqlite3.connect(path)) as newer:  # kept open, so that its changes stay in the write-ahead log
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
        newer.commit()
        folder = tmp_path / "crashed"
        folder.mkdir()
        for file in path.parent.glob("errand.db*"):
            shutil.copy2(file, folder / file.name)
    crashed = folder / "errand.db"
    before = crashed.read_bytes(), crashed.stat().st_mtime_ns, (folder / "errand.db-wal").read_bytes()
    with pytest.raises(StorageError, match=r"newer Errand \(schema 9999"):
        await Database.open(sqlite_url(crashed), tmp_path / "copies")
    assert (crashed.read_bytes(), crashed.stat().st_mtime_ns, (folder / "errand.db-wal").read_bytes()) == before


def _beside(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}-*")}


async def test_damage_in_the_middle_is_reported_instead_of_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "errand.db"
    await filled(path, 2000)
    with path.open("r+b") as file:
        for offset in range(path.stat().st_size // 8192 * 4096, path.stat().st_size, 4096):
            file.seek(offset)
            file.write(b"\xee" * 4096)
    database = await Database.open(sqlite_url(path), tmp_path / "copies")
    with pytest.raises(StorageError, match="cannot be read: database disk image is malformed"):
        await database.conversations.page(2000)
    assert [(held.kind, "errand doctor --repair" in held.advice) for held in database.health.conditions] == [
        ("damaged", True)
    ]
    with pytest.raises(StorageError, match="is damaged"):
        await database.journal.probe()
    await database.close()


async def test_damage_at_the_beginning_names_the_folder_of_copies(tmp_path: Path) -> None:
    path = tmp_path / "errand.db"
    await filled(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xee" * 4096 * 20)
    with pytest.raises(StorageError, match="put a copy from the copies folder in its place"):
        await Database.open(sqlite_url(path), tmp_path / "copies")


async def test_restore_interrupted_between_its_moves_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "errand.db"
    epoch = await filled(path, 2)
    os.replace(path, replacement_path(path))
    path.with_name("errand.db-wal").write_bytes(b"of the one before")
    database = await Database.open(sqlite_url(path), tmp_path / "copies")
    assert len((await database.conversations.page()).conversations) == 2
    await database.close()
    assert (database.epoch, replacement_path(path).exists()) == (epoch, False)


async def test_restore_interrupted_before_its_moves_has_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "errand.db"
    epoch = await filled(path, 2)
    replacement_path(path).write_bytes(b"another")
    database = await Database.open(sqlite_url(path), tmp_path / "copies")
    await database.close()
    assert (database.epoch, replacement_path(path).exists()) == (epoch, False)


async def test_crash_during_creation_leaves_no_empty_database(tmp_path: Path) -> None:
    (tmp_path / "errand.db.new").write_bytes(b"half a data")
    await filled(tmp_path / "errand.db")
    assert not (tmp_path / "errand.db.new").exists()


@pytest.mark.parametrize(
    "url", ["not a url", "sqlite+aiosqlite://", "sqlite+aiosqlite:///:memory:", "nothing://x", "postgresql+none://x/y"]
)
async def test_a_url_that_cannot_be_used_is_a_configuration_error(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="database_url"):
        await Database.open(url, tmp_path)
