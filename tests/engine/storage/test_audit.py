"""The audit: tool executions, grants and what was done with memory are append-only."""

from datetime import timedelta

import msgspec
import pytest

from errand.engine.core.errors import StorageError
from errand.engine.storage.database import Database
from errand.engine.storage.records import executions, grants, memory_log
from errand.engine.storage.records.executions import ExecutionEnd, ExecutionStart, StoredExecution
from tests.support.databases import execute, of_sqlite
from tests.support.records import NOW, grant


def started(execution_id: str) -> ExecutionStart:
    return ExecutionStart(
        execution_id=execution_id,
        task_id="t1",
        turn=1,
        node_id="n1",
        call_id="call_1",
        tool="shell",
        arguments={"command": "make", "env": {"DEEP": [1, None, "é"]}},
        at=NOW,
    )


def finished(execution_id: str) -> ExecutionEnd:
    return ExecutionEnd(
        execution_id=execution_id,
        task_id="t1",
        text="ok",
        summary="12 passed",
        details={"exit_code": 0},
        is_error=False,
        at=NOW + timedelta(seconds=1),
    )


async def test_an_execution_without_an_end_is_unfinished(database: Database) -> None:
    database.journal.put(executions.started(started("x1")), executions.started(started("x2")))
    database.journal.put(executions.finished(finished("x1")))
    await database.journal.flush()
    complete, begun = StoredExecution(started("x1"), finished("x1")), StoredExecution(started("x2"), None)
    assert await database.executions.of_task("t1") == (complete, begun)
    assert await database.executions.unfinished("t1") == (begun,)
    assert await database.executions.get("x1") == complete
    assert await database.executions.get("x3") is None


async def test_an_execution_cannot_end_twice(database: Database) -> None:
    database.journal.put(executions.started(started("x1")), executions.finished(finished("x1")))
    database.journal.put(executions.finished(finished("x1")))
    with pytest.raises(StorageError, match=r"(?i)unique"):
        await database.journal.flush()


async def test_grant_is_its_newest_row_and_keeps_its_history(database: Database) -> None:
    used = msgspec.structs.replace(grant(), last_used_at=NOW)
    revoked = msgspec.structs.replace(used, revoked_at=NOW + timedelta(seconds=1))
    for saved_grant in (grant(), grant("g2"), used):
        database.journal.put(grants.save(saved_grant))
    await database.journal.flush()
    assert await database.grants.valid() == (grant("g2"), used)
    database.journal.put(grants.save(revoked))
    await database.journal.flush()
    assert await database.grants.valid() == (grant("g2"),)
    assert await database.grants.all() == (grant("g2"), revoked)
    assert await database.grants.get("g1") == revoked
    assert await database.grants.history("g1") == (grant(), used, revoked)
    rows = await execute(database, "SELECT action FROM grants WHERE grant_id = 'g1' ORDER BY number")
    assert [action for (action,) in rows] == ["given", "used", "revoked"]


@pytest.mark.parametrize("table", ["tool_executions", "grants", "memory_log"])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {} SET number = 7",
        "DELETE FROM {}",
        "INSERT INTO {0} SELECT * FROM {0} WHERE true ON CONFLICT (number) DO UPDATE SET number = 7",
    ],
)
async def test_the_database_itself_refuses_to_change_the_audit(database: Database, table: str, change: str) -> None:
    audit = memory_log.add("pruned", "Errand", "12 vectors")
    database.journal.put(executions.started(started("x1")), grants.save(grant()), audit)
    await database.journal.flush()
    with pytest.raises(StorageError, match="append-only"):
        await execute(database, change.format(table))


@of_sqlite
@pytest.mark.parametrize("table", ["tool_executions", "grants", "memory_log"])
async def test_the_audit_cannot_be_replaced_either(database: Database, table: str) -> None:
    audit = memory_log.add("pruned", "Errand", "12 vectors")
    database.journal.put(executions.started(started("x1")), grants.save(grant()), audit)
    await database.journal.flush()
    with pytest.raises(StorageError, match="append-only"):
        await execute(database, f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")


async def test_the_audit_of_memory_is_read_in_pages_newest_first(database: Database) -> None:
    database.journal.put(memory_log.add("pinned", "Errand for the terminal", "fact fact_1"))
    database.journal.put(memory_log.add("pruned", "Errand", "12 vectors"), memory_log.add("rebuilt", "Errand", ""))
    await database.journal.flush()
    newest = await database.memory_log.page(2)
    assert [(entry.number, entry.action, entry.by, entry.about) for entry in newest.entries] == [
        (3, "rebuilt", "Errand", ""),
        (2, "pruned", "Errand", "12 vectors"),
    ]
    assert newest.has_more
    oldest = await database.memory_log.page(2, newest.entries[-1].number)
    assert ([entry.about for entry in oldest.entries], oldest.has_more) == (["fact fact_1"], False)
    assert newest.entries[0].at >= oldest.entries[0].at
