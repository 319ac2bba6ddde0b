"""The journal: group commit, order, isolation of failures, exclusive transactions."""

import asyncio
import logging
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import select

from errand.engine.core.errors import Busy, CannotSave, Conflict, StorageError
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, conversations, nodes
from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.journal import Journal, JournalChange, begin_ownership
from errand.engine.storage.sql.statements import Write
from errand.engine.storage.sql.tables import meta
from errand.engine.storage.sqlite.engines import connect, open_engine, sqlite_url
from errand.engine.storage.sqlite.writer import SqliteWriter
from tests.support.databases import of_sqlite
from tests.support.disks import full_disk
from tests.support.limits import WAIT_LIMIT_S
from tests.support.processes import until
from tests.support.records import agent, conversation, node

_REFUSED = re.compile(r"Not saved: .*foreign key constraint.*\. Everything saved before is kept\.", re.IGNORECASE)
ORPHAN = node("orphan", conversation_id="no such conversation")
ADD_META = meta.insert()


async def test_flush_returns_once_changes_can_be_read(database: Database) -> None:
    database.journal.put(conversations.save(conversation("c2")))
    await database.journal.flush()
    assert await database.conversations.get("c2") == conversation("c2")


async def test_callbacks_run_in_the_order_of_the_writes_before_the_flush_returns(database: Database) -> None:
    called: list[int] = []

    def put(number: int) -> None:
        write = conversations.save(conversation(f"c{number}"))
        database.journal.put(write, on_commit=lambda: called.append(number))

    for number in range(500):
        put(number)
    await database.journal.flush()
    assert called == list(range(500))


async def test_failed_group_is_omitted_as_a_whole_and_fails_only_its_owners_flush(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    called: list[str] = []

    async def save(name: str, *writes: Write) -> str:
        begin_ownership()
        database.journal.put(*writes, on_commit=lambda: called.append(name))
        try:
            await database.journal.flush()
        except StorageError as error:
            return str(error)
        return "saved"

    with caplog.at_level(logging.CRITICAL):
        outcomes = await asyncio.gather(
            save("before", nodes.save(node("before"))),
            save("bad", conversations.save(conversation("half")), nodes.save(ORPHAN)),
            save("after", nodes.save(node("after"))),
        )
    before, bad, after = outcomes
    assert (before, after) == ("saved", "saved")
    assert _REFUSED.fullmatch(bad)
    assert called == ["before", "after"]
    assert await database.conversations.get("half") is None
    assert await database.nodes.get("after") == node("after")


async def test_flush_reports_failures_only_to_their_owner(database: Database) -> None:
    put, flushed = asyncio.Event(), asyncio.Event()

    async def guilty() -> str:
        begin_ownership()
        database.journal.put(nodes.save(ORPHAN))
        put.set()
        await flushed.wait()
        with pytest.raises(StorageError) as caught:
            await database.journal.flush()
        return str(caught.value)

    async def innocent() -> None:
        begin_ownership()
        await put.wait()
        database.journal.put(nodes.save(node("fine")))
        await database.journal.flush()
        flushed.set()

    failure, _ = await asyncio.gather(guilty(), innocent())
    assert "foreign key" in failure.lower()
    assert await database.nodes.get("fine") == node("fine")


async def test_child_tasks_share_the_owner_of_their_parent(database: Database) -> None:
    async def helper() -> None:
        database.journal.put(nodes.save(ORPHAN))

    async def owner() -> None:
        begin_ownership()
        await asyncio.create_task(helper())
        with pytest.raises(StorageError):
            await database.journal.flush()

    await asyncio.create_task(owner())
    await database.journal.flush()


async def test_two_refused_changes_of_a_thousand_fail_and_the_others_keep_their_order(
    database: Database,
) -> None:
    called: list[int] = []

    def put(number: int) -> JournalChange:
        text = "half a pair \ud800" if number in (137, 138) else f"{number}"
        write = Write(ADD_META, {"name": f"change {number}", "value": text})
        return database.journal.put(write, on_commit=lambda: called.append(number))

    changes = [put(number) for number in range(1000)]
    with pytest.raises(StorageError, match="Not saved"):
        await database.journal.flush()
    good = [number for number in range(1000) if number not in (137, 138)]
    assert called == good
    assert [number for number, change in enumerate(changes) if change.failure is not None] == [137, 138]


async def test_change_that_depends_on_a_failed_one_is_not_saved(database: Database) -> None:
    first = database.journal.put(nodes.save(ORPHAN))
    second = database.journal.put(Write(ADD_META, {"name": "second", "value": ""}), after=first)
    database.journal.put(Write(ADD_META, {"name": "third", "value": ""}), after=second)
    database.journal.put(Write(ADD_META, {"name": "by itself", "value": ""}))
    with pytest.raises(StorageError):
        await database.journal.flush()
    database.journal.put(Write(ADD_META, {"name": "later", "value": ""}), after=second)
    with pytest.raises(StorageError):
        await database.journal.flush()

    async def names(connection: AsyncConnection) -> set[str]:
        return set((await connection.execute(select(meta.c.name))).scalars())

    assert await database.journal.transact(names) & {"second", "third", "by itself", "later"} == {"by itself"}


@of_sqlite
async def test_probe_and_transaction_behind_a_blocked_change_are_refused_at_once(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def nothing(connection: AsyncConnection) -> None:
        raise AssertionError("its turn must not come")

    database.journal.set_waits_saved(True)
    with full_disk(tmp_path / "errand.db"):
        database.journal.put(agents.save_agent(agent()))
        # Without an iteration of the loop in between, both are in one batch: no failure is known yet.
        with pytest.raises(CannotSave):
            async with asyncio.timeout(WAIT_LIMIT_S):
                await database.journal.probe()
        with pytest.raises(CannotSave):
            await database.journal.transact(nothing)
    await database.journal.flush()
    assert await database.agents.get("a1") == agent()
    error_records = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(error_records) == 1, "the log says so once, however often it is tried"


async def test_awaited_commit_is_durable_and_others_are_a_moment_later(database: Database, tmp_path: Path) -> None:
    """`synchronous` is the level of the newest commit: 2, FULL, flushes the log; 1, NORMAL, does not."""
    path = tmp_path / "levels.db"
    await (await Database.open(sqlite_url(path), tmp_path)).close()
    engine, writer, _ = await open_engine(path, tmp_path)
    await writer.close()
    connection = connect(path)
    levels: list[int] = []

    class Listening(SqliteWriter):
        async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
            await super().write(batch, durable=durable)
            levels.append(*connection.execute("PRAGMA synchronous").fetchone())

    journal = Journal(Listening(connection), engine)
    journal.put(conversations.save(conversation("c1")))
    await journal.flush()
    assert levels == [2]
    journal.put(conversations.save(conversation("c2")))
    await journal.flush(durable=False)
    assert levels[:2] == [2, 1]
    await until(lambda: levels == [2, 1, 2])  # by itself
    journal.put(conversations.save(conversation("c3")))
    both = [asyncio.ensure_future(journal.flush(durable=durable)) for durable in (False, True)]
    await asyncio.gather(*both)
    journal.put(conversations.save(conversation("nobody waits")))
    await journal.close()
    await engine.dispose()
    assert levels == [2, 1, 2, 2, 2]


@of_sqlite
async def test_change_without_effect_is_written_each_time(database: Database, tmp_path: Path) -> None:
    """SQLite skips a commit that changes no page: it would flush nothing, and succeed on a full disk."""
    log = tmp_path / "errand.db-wal"
    for number in range(3):
        database.journal.put(conversations.save(conversation(f"c{number}")))
        await database.journal.flush(durable=False)
        for change_nothing in (database.journal.flush, database.journal.probe):
            written = log.stat().st_size
            await change_nothing()
            assert log.stat().st_size > written


async def test_a_failed_group_is_logged_with_its_tables(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.journal.put(nodes.save(ORPHAN))
    with pytest.raises(StorageError):
        await database.journal.flush()
    (record,) = caplog.records
    assert re.fullmatch(f"a change of nodes was lost: {_REFUSED.pattern}", record.getMessage(), re.IGNORECASE)


async def test_failure_is_reported_once(database: Database) -> None:
    database.journal.put(nodes.save(ORPHAN))
    with pytest.raises(StorageError):
        await database.journal.flush()
    await database.journal.flush()


@pytest.mark.parametrize("value", ["half a pair \ud800", 2**70])
async def test_a_value_that_sqlite_cannot_hold_is_a_storage_error(database: Database, value: str | int) -> None:
    database.journal.put(Write(ADD_META, {"name": "x", "value": value}))
    with pytest.raises(StorageError):
        await database.journal.flush()


async def test_a_cancelled_flush_leaves_the_journal_working(database: Database) -> None:
    waiting = asyncio.create_task(database.journal.flush())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await database.journal.flush()


async def test_full_queue_is_busy_and_keeps_its_entries(tmp_path: Path) -> None:
    full = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path)
    await full.close()
    engine, writer, _ = await open_engine(tmp_path / "errand.db", tmp_path)
    journal = Journal(writer, engine, limit=3)
    for number in range(3):
        journal.put(conversations.save(conversation(f"c{number}")))
    with pytest.raises(Busy):
        journal.put(conversations.save(conversation("c3")))
    await journal.flush()
    journal.put(conversations.save(conversation("c3")))
    await journal.close()
    await engine.dispose()
    reopened = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path)
    page = await reopened.conversations.page()
    await reopened.close()
    assert [stored.id for stored in page.conversations] == ["c3", "c2", "c1", "c0"]


async def test_closed_journal_refuses_changes_and_can_be_closed_again(database: Database) -> None:
    await database.close()
    await database.close()
    with pytest.raises(StorageError, match="closed"):
        database.journal.put(conversations.save(conversation("c2")))


async def test_close_saves_queued_changes(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "errand.db")
    database = await Database.open(url, tmp_path)
    database.journal.put(conversations.save(conversation("c1")))
    await database.close()
    reopened = await Database.open(url, tmp_path)
    assert await reopened.conversations.get("c1") == conversation("c1")
    await reopened.close()


async def test_transaction_runs_in_queue_order(database: Database) -> None:
    async def add_up(connection: AsyncConnection) -> str:
        values = (await connection.execute(select(meta.c.value).where(meta.c.name == "sum"))).scalars().all()
        await connection.execute(meta.update().where(meta.c.name == "sum").values(value=values[0] + " two"))
        return values[0]

    database.journal.put(Write(ADD_META, {"name": "sum", "value": "one"}))
    turn = asyncio.create_task(database.journal.transact(add_up))
    await asyncio.sleep(0)
    database.journal.put(Write(ADD_META, {"name": "late", "value": "x"}))
    await database.journal.flush()
    assert await turn == "one"
    assert await database.journal.transact(add_up) == "one two"


@of_sqlite
async def test_finished_transaction_is_on_disk(database: Database) -> None:
    async def level(connection: AsyncConnection) -> int:
        return int((await connection.exec_driver_sql("PRAGMA synchronous")).scalar_one())

    assert await database.journal.transact(level) == 2


async def test_transaction_that_raises_is_rolled_back_and_the_journal_continues(database: Database) -> None:
    async def refuse(connection: AsyncConnection) -> None:
        await connection.execute(ADD_META, {"name": "x", "value": "y"})
        raise Conflict("Somebody else was first.")

    async def read(connection: AsyncConnection) -> int:
        return len((await connection.execute(select(meta).where(meta.c.name == "x"))).all())

    with pytest.raises(Conflict):
        await database.journal.transact(refuse)
    assert await database.journal.transact(read) == 0
    database.journal.put(agents.save_agent(agent()))
    await database.journal.flush()


async def test_a_statement_refused_in_a_transaction_is_a_storage_error(database: Database) -> None:
    async def twice(connection: AsyncConnection) -> None:
        await connection.execute(ADD_META, {"name": "x", "value": "y"})
        await connection.execute(ADD_META, {"name": "x", "value": "y"})

    with pytest.raises(StorageError, match=r"(?i)Not saved: .*unique constraint.* Everything"):
        await database.journal.transact(twice)


async def test_cancelled_transaction_does_not_block_the_next_one(database: Database) -> None:
    begun = asyncio.Event()

    async def wait(_: AsyncConnection) -> None:
        begun.set()
        await asyncio.Event().wait()

    first = asyncio.create_task(database.journal.transact(wait))
    second = asyncio.create_task(database.journal.transact(wait))
    await begun.wait()
    second.cancel()
    first.cancel()
    await asyncio.wait([first, second])
    database.journal.put(agents.save_agent(agent()))
    await database.journal.flush()
    assert await database.agents.get("a1") == agent()


class EndingWriter:
    """Its first write ends with an error that no writer should raise."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        raise self._error

    async def begin(self, connection: AsyncConnection, *, durable: bool) -> None:
        pass

    async def close(self) -> None:
        pass


@of_sqlite
@pytest.mark.parametrize("error", [ZeroDivisionError("a defect"), asyncio.CancelledError()])
async def test_who_waits_for_a_journal_that_ends_by_a_defect_is_told(
    database: Database, tmp_path: Path, error: BaseException
) -> None:
    engine, writer, _ = await open_engine(tmp_path / "errand.db", tmp_path)
    await writer.close()
    journal = Journal(EndingWriter(error), engine)

    async def work() -> None:
        raise AssertionError("never its turn")

    journal.put(conversations.save(conversation("c2")))
    waiting = [asyncio.create_task(call) for call in (journal.flush(), journal.probe(), journal.while_idle(work))]
    ended, left = await asyncio.wait(waiting, timeout=20)
    assert not left
    assert [type(call.exception()) for call in ended] == [StorageError] * 3
    with pytest.raises(StorageError, match="closed"):
        await journal.flush()
    await engine.dispose()


async def test_callers_that_stop_waiting_at_any_moment_never_block_the_others(database: Database) -> None:
    journal, chance = database.journal, random.Random(7)

    async def read(connection: AsyncConnection) -> int:
        await asyncio.sleep(0)
        return len((await connection.execute(select(meta))).all())

    async def nothing() -> None:
        await asyncio.sleep(0)

    def call(number: int) -> asyncio.Task[object]:
        journal.put(conversations.save(conversation(f"c{number}")))
        match number % 4:
            case 0:
                return asyncio.create_task(journal.flush())
            case 1:
                return asyncio.create_task(journal.transact(read, durable=False))
            case 2:
                return asyncio.create_task(journal.while_idle(nothing))
            case _:
                return asyncio.create_task(journal.probe())

    calls: list[asyncio.Task[object]] = []
    for number in range(300):
        calls.append(call(number))
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)
        if chance.random() < 0.5:
            chance.choice(calls).cancel()
    _, left = await asyncio.wait(calls, timeout=60)
    assert not left
    await journal.flush()
    assert await database.conversations.get("c299") == conversation("c299")
