"""Removal of a conversation: deletes all of its rows, and no other row of the audit."""

from datetime import UTC, datetime

import msgspec
import pytest

from errand.engine.core.errors import StorageError
from errand.engine.storage.database import Database
from errand.engine.storage.event_writes import event_writes
from errand.engine.storage.records import (
    agents,
    asks,
    commands,
    conversations,
    events,
    executions,
    grants,
    nodes,
    tasks,
    turns,
)
from errand.engine.storage.records.removal import Removal, begin, done, scrub
from errand.protocol.asks import Grant
from errand.protocol.events import ConversationDeleted, EventRecord, FactUpdate, GrantUpdate, TaskMessage
from errand.protocol.tasks.task import replace_fields
from tests.engine.storage.test_audit import finished, started
from tests.engine.storage.test_events import FACT
from tests.support.databases import execute, of_sqlite
from tests.support.records import NOW, agent, ask, conversation, grant, logged, node, task

_SECRET = "the secret word"


def grant_for(conversation_id: str) -> Grant:
    return msgspec.structs.replace(
        grant(f"g-{conversation_id}"), scope="conversation", scope_id=conversation_id, exact=_SECRET
    )


def gone(sequence: int, conversation_id: str = "c1") -> EventRecord:
    return EventRecord(sequence=sequence, epoch="e", event=ConversationDeleted(conversation_id=conversation_id))


OF_NEIGHBOUR = EventRecord(sequence=3, epoch="e", event=GrantUpdate(grant=grant_for("c_")))


async def fill(database: Database) -> None:
    """Everything that belongs to c1, and another conversation with a similar id."""
    for write in (
        nodes.save(node("n1", text=_SECRET)),
        nodes.save(node("n2", "n1", text=_SECRET)),
        agents.save_agent(agent("a1", 1, "n2")),
        turns.started("c1", "t1", 1, "m", NOW),
        asks.save(ask()),
        executions.started(started("x1")),
        executions.finished(finished("x1")),
        grants.save(grant_for("c1")),
        commands.save("client", "1", "task/start", '{"task":{"conversationId":"c1"}}', datetime.now(UTC)),
        conversations.save(conversation("c_")),
        *tasks.add(replace_fields(task("t2"), conversation_id="c_")),
        grants.save(grant_for("c_")),
        commands.save("client", "2", "task/start", '{"task":{"conversationId":"c_"}}', datetime.now(UTC)),
    ):
        database.journal.put(write)
    for record in (
        EventRecord(sequence=1, epoch="e", event=TaskMessage(node=node("n1", text=_SECRET))),
        EventRecord(sequence=2, epoch="e", event=GrantUpdate(grant=grant_for("c1"))),
        OF_NEIGHBOUR,
    ):
        database.journal.put(*event_writes(record))
    await database.journal.flush()


async def test_removed_conversation_leaves_no_rows_or_text(database: Database) -> None:
    await fill(database)
    database.journal.put(begin(Removal("c1", ("/home/p.png",))), *event_writes(gone(4)))
    await scrub(database.journal)
    await database.journal.flush()
    assert await database.removals.pending() == (Removal("c1", ("/home/p.png",)),)
    assert await database.search.find("secret") == ()
    assert await database.titles.find("title") == (conversation("c_"),)
    assert await database.events.after(0) == logged(OF_NEIGHBOUR, gone(4))
    assert await database.commands.answered("client", "1") is None
    assert await database.commands.answered("client", "2") is not None
    assert await database.grants.valid() == (grant_for("c_"),)
    database.journal.put(done("c1"))
    await database.journal.flush()
    tables = ("conversations", "nodes", "agents", "tasks", "turns", "asks", "tool_executions", "removals")
    left = {table: (await execute(database, f"SELECT count(*) FROM {table}"))[0][0] for table in tables}
    assert left == dict.fromkeys(left, 0) | {"conversations": 1, "tasks": 1}


@of_sqlite
async def test_a_removal_leaves_the_search_index_in_order(database: Database) -> None:
    await fill(database)
    database.journal.put(begin(Removal("c1", ())), *event_writes(gone(4)))
    await database.journal.flush()
    await execute(database, "INSERT INTO node_search (node_search) VALUES ('integrity-check')")


async def test_facts_outlive_the_conversation_in_which_they_were_said(database: Database) -> None:
    await fill(database)
    fact = EventRecord(sequence=4, epoch="e", event=FactUpdate(fact=FACT))
    database.journal.put(*event_writes(fact))
    database.journal.put(begin(Removal("c1", ())), *event_writes(gone(5)))
    await scrub(database.journal)
    assert await database.facts.all() == (FACT,)
    assert await database.events.after(0) == logged(OF_NEIGHBOUR, fact, gone(5)), (
        "a client that reconnects learns of it"
    )


async def test_removing_a_conversation_does_not_unlock_the_audit_of_others(database: Database) -> None:
    await fill(database)
    database.journal.put(grants.save(grant()), begin(Removal("c_", ())))
    await database.journal.flush()
    for statement in (
        "DELETE FROM tool_executions",
        "DELETE FROM grants WHERE grant_id = 'g1'",
        "DELETE FROM grants WHERE grant_id = 'g-c1'",
        "UPDATE grants SET body = ''",
    ):
        with pytest.raises(StorageError, match="append-only"):
            await execute(database, statement)


async def test_failed_removal_deletes_nothing(database: Database) -> None:
    await fill(database)
    database.journal.put(*event_writes(gone(4)), events.save(gone(4)))  # a duplicate number: the group fails at its end
    with pytest.raises(StorageError, match=r"(?i)unique"):
        await database.journal.flush()
    assert await database.nodes.path("n2") == (node("n1", text=_SECRET), node("n2", "n1", text=_SECRET))
    assert await database.removals.pending() == ()
