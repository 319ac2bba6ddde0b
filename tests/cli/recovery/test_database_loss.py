"""A missing, truncated or outdated database, or one with wrong indexes: reported, and repaired as the user chooses."""

import asyncio
import io
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from errand.cli.exit_codes import CommandError
from errand.cli.output import CommandOutput
from errand.cli.recovery.database_check import check_database
from errand.cli.recovery.repair import RepairOptions, repair
from errand.cli.terminal.terminal import Terminal
from errand.engine.core.errors import StorageError
from errand.engine.core.resources import Health
from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations
from errand.engine.storage.sqlite.backups import DailyBackups
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.system import database_file
from errand.system.paths import Paths
from tests.support.command_line import Errand
from tests.support.engine_parts import engine_parts
from tests.support.model_server import ModelServer, Reply
from tests.support.records import conversation

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def worked(tmp_path: Path, count: int, look: Callable[[Paths], None] = lambda paths: None) -> Paths:
    """An engine that has run this many more tasks and has ended; `look` is called while it still runs."""
    paths = Paths(tmp_path / "data")
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Well.")] * count)) as engine:
        for _ in range(count):
            task = await engine.start()
            await engine.watcher.end(task.id)
        await engine.services.log.flush()
        await asyncio.sleep(0)  # the note about a commit is written in the loop's next iteration
        look(paths)
    return paths


async def refusal(paths: Paths) -> str:
    """The error of the next engine, which does not start; it changes nothing."""
    before = {file.name: file.read_bytes() for file in paths.home.glob("errand.db*")}
    with pytest.raises(StorageError) as refused:
        await Database.open(sqlite_url(paths.database), paths.copies)
    assert {file.name: file.read_bytes() for file in paths.home.glob("errand.db*")} == before
    return str(refused.value)


def looked_at(paths: Paths) -> tuple[str, str]:
    state, _, text, _ = check_database(paths.database, paths.copies)
    return state, text


async def repaired(paths: Paths, *, yes: bool = True) -> tuple[int, str]:
    out = io.StringIO()
    try:
        code = await repair(RepairOptions(yes=yes), paths, CommandOutput(Terminal(io.StringIO(), out, out)))
    except CommandError as error:
        return error.code, f"{out.getvalue()}{error}"
    return code, out.getvalue()


async def tasks_in(paths: Paths) -> int:
    database = await Database.open(sqlite_url(paths.database), paths.copies)
    count = len((await database.tasks.page(10)).tasks)
    await database.close()
    return count


async def test_missing_database_is_noticed_and_replaced_by_its_newest_copy(tmp_path: Path) -> None:
    paths = await worked(tmp_path, 2)
    database_file.copy_database(paths.database, paths.copies / "errand-daily-1.db")
    paths.database.unlink()
    text = await refusal(paths)
    assert "is missing, but a copy of it is in" in text and "errand doctor --repair" in text
    assert looked_at(paths)[0] == "bad" and "is missing" in looked_at(paths)[1]
    code, text = await repaired(paths, yes=False)
    assert code == 1 and f"Then: errand restore {paths.copies / 'errand-daily-1.db'}" in text
    assert not paths.database.exists()
    code, text = await repaired(paths)
    assert code == 0 and "Restored from" in text
    assert await tasks_in(paths) == 2


async def test_missing_database_without_a_copy_is_reported_until_the_user_accepts_an_empty_one(tmp_path: Path) -> None:
    paths = await worked(tmp_path, 1)
    paths.database.unlink()
    assert "Errand has worked with it here" in await refusal(paths)
    code, text = await repaired(paths, yes=False)
    assert code == 1 and "Start with an empty database?" in text
    assert "is missing" in await refusal(paths)
    code, text = await repaired(paths)
    assert code == 0
    assert looked_at(paths)[0] == "good"
    assert await tasks_in(paths) == 0


async def test_log_without_its_database_is_not_treated_as_a_first_start(tmp_path: Path) -> None:
    def crash(paths: Paths) -> None:
        for file in paths.home.glob("errand.db*"):
            shutil.copy2(file, crashed.home / file.name)

    crashed = Paths(tmp_path / "crashed")
    crashed.prepare()
    await worked(tmp_path, 1, crash)
    crashed.database.unlink()
    (crashed.home / "errand.db.newest").unlink()
    assert "its log errand.db-wal is there" in await refusal(crashed)


async def test_log_deleted_after_a_crash_is_noticed_and_the_user_can_continue_without_it(tmp_path: Path) -> None:
    def crash(paths: Paths) -> None:
        for file in paths.home.glob("errand.db*"):
            shutil.copy2(file, crashed.home / file.name)

    crashed = Paths(tmp_path / "crashed")
    crashed.prepare()
    await worked(tmp_path, 1)
    await worked(tmp_path, 1, crash)
    shutil.copy2(crashed.home / "errand.db-wal", tmp_path / "kept")
    for name in ("errand.db-wal", "errand.db-shm"):
        (crashed.home / name).unlink()
    text = await refusal(crashed)
    assert "is older than what was stored last: it ends at event" in text and "was deleted" in text
    assert looked_at(crashed)[0] == "bad"
    code, _ = await repaired(crashed)
    assert code == 0
    assert await tasks_in(crashed) == 1


async def test_older_copy_in_place_of_the_database_is_noticed_and_a_newer_one_offered(tmp_path: Path) -> None:
    paths = await worked(tmp_path, 1)
    shutil.copy2(paths.database, tmp_path / "old.db")
    await worked(tmp_path, 1)
    database_file.copy_database(paths.database, paths.copies / "errand-daily-1.db")
    await worked(tmp_path, 1)
    shutil.copy2(tmp_path / "old.db", paths.database)
    assert "an older copy was put in its place" in await refusal(paths)
    code, text = await repaired(paths)
    assert code == 0 and "Restored from" in text
    assert await tasks_in(paths) == 2


async def test_another_database_that_was_put_in_place_on_purpose_is_opened(tmp_path: Path) -> None:
    paths = await worked(tmp_path, 2)
    (tmp_path / "other").mkdir()
    other = await worked(tmp_path / "other", 1)
    shutil.copy2(other.database, paths.database)
    assert await tasks_in(paths) == 1


async def test_truncated_database_is_refused_and_repaired_from_its_remains(tmp_path: Path) -> None:
    paths = await worked(tmp_path, 2)
    database_file.copy_database(paths.database, paths.copies / "errand-daily-1.db")
    size = paths.database.stat().st_size
    with paths.database.open("r+b") as file:
        file.truncate(size // 2 // 4096 * 4096)
    text = await refusal(paths)
    assert f"is cut: {size // 2 // 4096 * 4096:,} of its {size:,} bytes are there" in text
    code, text = await repaired(paths)
    assert code == 0, text
    assert await tasks_in(paths) == 2


async def test_index_with_a_missing_row_is_found_by_the_daily_copy_and_rebuilt(
    tmp_path: Path,
) -> None:
    paths, health = await worked(tmp_path, 1), Health()
    database = await Database.open(sqlite_url(paths.database), paths.copies)
    database.journal.put(conversations.save(conversation("unseen")))
    await database.close()
    forget(paths.database, "conversations_by_change", "DELETE FROM conversations WHERE id = 'unseen'")
    daily = DailyBackups(paths.database, paths.copies, health)
    assert not await daily.make()
    assert [condition.kind for condition in health.conditions] == ["damaged"]
    assert "index" in looked_at(paths)[1]
    code, output = await repaired(paths)
    assert code == 0 and "Only its indexes were damaged" in output
    assert looked_at(paths)[0] == "good"
    assert await tasks_in(paths) == 1


def forget(file: Path, index: str, change: str) -> None:
    """Change a table without updating an index."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        (row,) = connection.execute(
            "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = ?", (index,)
        )
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = ?", (index,))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(change)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, ?, ?)", row
        )


async def test_user_with_a_missing_database_is_guided_to_a_copy(own_errand: Errand, workspace: Path) -> None:
    async with ModelServer(replies=[Reply(text="Well.")]) as server:
        assert (await own_errand.run("run", *MODEL, server.url, "remember seven")).code == 0
    await own_errand.close()
    paths = Paths(own_errand.home)
    database_file.copy_database(paths.database, paths.copies / "errand-daily-1.db")
    paths.database.unlink()
    listed = await own_errand.run("tasks")
    assert listed.code != 0
    assert "is missing, but a copy of it is in" in listed.err and "errand doctor --repair" in listed.err
    assert (await own_errand.run("doctor", "--repair", "--yes")).code == 0
    assert "remember seven" in (await own_errand.run("tasks")).out
