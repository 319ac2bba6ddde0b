"""The event log: stored changes, replay, pruning."""

import msgspec

from errand.engine.storage.database import Database
from errand.engine.storage.event_writes import event_writes
from errand.engine.storage.records import conversations, events
from errand.protocol.events import (
    AgentUpdate,
    AskUpdate,
    ConversationUpdate,
    Event,
    EventRecord,
    FactRemoved,
    FactUpdate,
    GrantUpdate,
    TaskMessage,
    TaskPlan,
    TaskUpdate,
)
from errand.protocol.memory import Fact
from errand.protocol.tasks.task import AgentPlan, replace_fields
from tests.support.records import NOW, agent, ask, conversation, grant, logged, node, task

PLAN = AgentPlan(task_id="t1", turn=1, reasoning="", tool_calls=(), question="Which?", is_complete=False)
FACT = Fact(id="f1", scope="always", text="Use tabs.", status="pinned", at=NOW, conversation_id="c1", node_id="n1")
ALL: tuple[Event, ...] = (
    ConversationUpdate(conversation=conversation("c1")),
    AgentUpdate(agent=agent()),
    TaskUpdate(task=task()),
    TaskMessage(node=node("n1")),
    TaskPlan(conversation_id="c1", plan=PLAN),
    AskUpdate(ask=ask()),
    GrantUpdate(grant=grant()),
    FactUpdate(fact=msgspec.structs.replace(FACT, id="f2")),
    FactUpdate(fact=FACT),
    FactRemoved(fact_id="f2"),
)


def record(sequence: int, event: Event) -> EventRecord:
    return EventRecord(sequence=sequence, epoch="e1", event=event)


async def publish(database: Database, *records: EventRecord) -> None:
    for event_record in records:
        database.journal.put(*event_writes(event_record))
    await database.journal.flush()


async def test_every_event_is_logged_and_updates_its_record(database: Database) -> None:
    records = tuple(record(number, event) for number, event in enumerate(ALL, 1))
    await publish(database, *records)
    assert await database.events.after(0) == logged(*records)
    assert await database.conversations.get("c1") == conversation("c1")
    assert await database.agents.get("a1") == agent()
    assert await database.tasks.get("t1") == task()
    assert await database.nodes.get("n1") == node("n1")
    assert await database.turns.plans("t1") == (PLAN,)
    assert await database.asks.get("k1") == ask()
    assert await database.grants.get("g1") == grant()
    assert await database.facts.all() == (FACT,)


async def test_replay_starts_after_a_sequence_and_stops_at_the_limit(database: Database) -> None:
    records = [record(number * 10, TaskUpdate(task=task(step_count=number))) for number in range(1, 8)]
    await publish(database, *records)
    assert await database.events.after(30, limit=2) == logged(*records[3:5])
    assert await database.events.after(70) == ()
    assert await database.events.bounds() == (10, 70)
    assert await database.events.head() == 70


async def test_conversation_replay_omits_other_conversations_and_keeps_global_events(database: Database) -> None:
    other = replace_fields(task("t2"), conversation_id="c2")
    database.journal.put(conversations.save(conversation("c2")))
    records = (
        record(1, TaskUpdate(task=task())),
        record(2, TaskUpdate(task=other)),
        record(3, GrantUpdate(grant=grant())),
    )
    await publish(database, *records)
    assert await database.events.after(0, conversation_id="c1") == logged(records[0], records[2])
    assert await database.events.after(0, conversation_id="c2") == logged(records[1], records[2])


async def test_pruning_keeps_the_newest_events_and_all_records(database: Database) -> None:
    await publish(database, *(record(number, TaskUpdate(task=task(step_count=number))) for number in range(1, 101)))
    database.journal.put(events.prune(keep=10))
    await database.journal.flush()
    assert await database.events.bounds() == (91, 100)
    assert await database.tasks.get("t1") == task(step_count=100)


async def test_an_empty_log_has_the_head_zero(database: Database) -> None:
    assert await database.events.bounds() == (0, 0)
    database.journal.put(events.prune(keep=10))
    await database.journal.flush()
    assert await database.events.head() == 0
