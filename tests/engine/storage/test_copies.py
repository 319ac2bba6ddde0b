"""Copies of the database: consistent during writes, one per day with changes, five kept, damage detected."""

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from errand.engine.core.resources import Health
from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations, events
from errand.engine.storage.sqlite.backups import DailyBackups
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.events import ConversationUpdate, EventRecord
from errand.system import database_file
from tests.support.databases import of_sqlite
from tests.support.records import conversation


def happen(database: Database, sequence: int) -> None:
    """Store one change as an event."""
    changed = conversation(f"c{sequence}")
    event = EventRecord(sequence=sequence, epoch=database.epoch, event=ConversationUpdate(conversation=changed))
    database.journal.put(conversations.save(changed), events.save(event))


def conversations_in(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM conversations").fetchone()
        return int(count)


@of_sqlite
async def test_copy_made_during_writes_is_a_consistent_snapshot(database: Database, tmp_path: Path) -> None:
    for number in range(3000):
        happen(database, number + 1)
    await database.journal.flush()
    source, copy = tmp_path / "errand.db", tmp_path / "copy.db"
    copying = asyncio.create_task(asyncio.to_thread(database_file.copy_database, source, copy))
    number = 3000
    while not copying.done():
        number += 1
        happen(database, number)
        await database.journal.flush()
    await copying
    assert 3000 <= conversations_in(copy) <= number
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not copy.with_name("copy.db-wal").exists()
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@of_sqlite
async def test_each_day_with_changes_gets_a_copy_and_the_last_five_are_kept(database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    daily = DailyBackups(tmp_path / "errand.db", folder, Health())
    for number in range(7):
        happen(database, number + 1)
        await database.journal.flush()
        assert await daily.make()
    copies = sorted(folder.iterdir())
    assert [conversations_in(file) for file in copies] == [3, 4, 5, 6, 7]
    for file in copies:
        made_at = file.stat().st_mtime - 3600
        os.utime(file, (made_at, made_at))
    assert await daily.make()
    assert sorted(folder.iterdir()) == copies
    assert copies[-1].stat().st_mtime > time.time() - 1800, "nothing has happened since: it is as good as a new one"


@of_sqlite
async def test_copies_dated_in_the_future_are_replaced_by_later_ones(database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    daily = DailyBackups(tmp_path / "errand.db", folder, Health())
    ahead = time.time() + 400 * 24 * 3600
    for number in range(8):
        happen(database, number + 1)
        await database.journal.flush()
        assert await daily.make()
        if number < 5:
            newest = max(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
            os.utime(newest, (ahead + number, ahead + number))
    by_age = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    assert [conversations_in(file) for file in by_age] == [4, 5, 6, 7, 8]


@of_sqlite
async def test_migration_and_manual_copies_do_not_count_as_daily_copies(database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    others = [folder / name for name in ("errand-0003-20260101.db", "errand-backup-20260101.db", "mine.db")]
    for file in others:
        file.write_bytes(b"")
    daily = DailyBackups(tmp_path / "errand.db", folder, Health())
    for number in range(6):
        happen(database, number + 1)
        await database.journal.flush()
        assert await daily.make()
    assert all(file.exists() for file in others)


async def test_hidden_damage_is_found_by_the_daily_copy_and_good_copies_are_kept(tmp_path: Path) -> None:
    path, folder, health = tmp_path / "errand.db", tmp_path / "copies", Health()
    database = await Database.open(sqlite_url(path), folder)
    for number in range(2000):
        happen(database, number + 1)
    await database.journal.flush()
    assert await DailyBackups(path, folder, health).make()
    good = list(folder.iterdir())
    happen(database, 2001)
    await database.close()
    with path.open("r+b") as file:
        for offset in range(path.stat().st_size // 8192 * 4096, path.stat().st_size - 40 * 4096, 4096):
            file.seek(offset)
            file.write(b"\xee" * 4096)
    assert not await DailyBackups(path, folder, health).make()
    assert list(folder.iterdir()) == good
    assert [condition.kind for condition in health.conditions] == ["damaged"]
