"""The lists of a window: all conversations, tasks and asks."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from errand.protocol.asks import AskAnswerParams
from errand.protocol.conversations import Conversation, ConversationSearchResult
from errand.protocol.events import AskUpdate, ConversationUpdate, PromptReading, TaskMessage, TaskUpdate
from errand.protocol.tasks.task import Task, replace_fields
from errand.window.stores.conversation_list import ConversationListStore
from errand.window.stores.stores import Stores
from errand.window.stores.tasks import TaskStore, task_activity
from tests.support.engine_server import EngineServer, engine_server
from tests.support.processes import until
from tests.support.records import NOW, ask, conversation, node, task
from tests.support.rows import APPROVAL
from tests.support.store_engine import stores_on


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[EngineServer]:
    async with engine_server(tmp_path / "home") as running:
        for number in range(250):
            running.log.publish(ConversationUpdate(conversation=numbered(number)))
        await running.log.flush()
        yield running


@pytest.fixture
async def stores(engine: EngineServer) -> AsyncGenerator[Stores]:
    async with stores_on(engine.endpoint) as connected:
        await until(lambda: connected.conversations.count() > 0)
        yield connected


def numbered(number: int) -> Conversation:
    return conversation(f"c{number}", at=NOW + timedelta(seconds=number))


def ids(store: ConversationListStore) -> list[str]:
    return [store.at(index).id for index in range(store.count())]


async def test_conversations_are_paged_newest_first(stores: Stores) -> None:
    store = stores.conversations
    assert ids(store) == [f"c{number}" for number in range(249, 149, -1)]
    while store.has_more:
        count = store.count()
        store.fetch_more()
        store.fetch_more()
        await until(lambda: store.count() > count)  # noqa: B023 -- awaited at once
    assert ids(store) == [f"c{number}" for number in range(249, -1, -1)]


async def test_a_change_moves_a_conversation_and_archiving_takes_it_out(engine: EngineServer, stores: Stores) -> None:
    store = stores.conversations
    moved = conversation("c200", at=NOW + timedelta(days=1))
    engine.log.publish(ConversationUpdate(conversation=moved))
    await until(lambda: store.at(0).id == "c200")
    assert store.count() == 100
    engine.log.publish(ConversationUpdate(conversation=conversation("c3", at=NOW + timedelta(seconds=3, days=-1))))
    store.archive("c200")
    await until(lambda: store.at(0).id == "c249")
    assert (store.count(), store.get("c200"), store.get("c3")) == (99, None, None)
    store.rename("c249", "Better")
    await until(lambda: store.at(0).title == "Better")
    store.pin("c249")
    await until(lambda: store.at(0).pinned)


async def test_a_search_finds_messages_and_discards_an_older_search(engine: EngineServer, stores: Stores) -> None:
    engine.log.publish(TaskMessage(node=node("n1", text="A needle here.")))
    engine.log.publish(TaskMessage(node=node("n2", text="Some hay here.")))
    await engine.log.flush()
    results: list[ConversationSearchResult] = []
    stores.conversations.searched.connect(results.append)
    stores.conversations.search("hay")
    stores.conversations.search("needle")
    await until(lambda: bool(results))
    assert [[hit.node_id for hit in hits] for hits in (result.hits for result in results)] == [["n1"]]
    stores.conversations.search(" ")
    assert results[-1] == ConversationSearchResult(hits=())


async def test_a_failed_change_is_reported(stores: Stores) -> None:
    failures: list[str] = []
    stores.conversations.failed.connect(failures.append)
    stores.conversations.rename("c249", "")
    await until(lambda: bool(failures))
    assert failures == ["title: a text of 1 to 500 characters."]


async def test_the_newest_state_of_each_task_is_known_by_conversation(engine: EngineServer, stores: Stores) -> None:
    heard: list[Task] = []
    stores.tasks.taskUpdate.connect(heard.append)
    first = task("t1", ended_at=NOW)
    second = task("t2", started_at=NOW + timedelta(seconds=1))
    for state in (first, second, second):
        engine.log.publish(TaskUpdate(task=state))
    await until(lambda: stores.tasks.of_conversation("c1") == second)
    assert heard == [first, second]
    assert stores.tasks.running() == (second,)
    late = replace_fields(first, summary="late")
    engine.log.publish(TaskUpdate(task=late))
    await until(lambda: stores.tasks.get("t1") == late)
    assert stores.tasks.of_conversation("c1") == second


async def test_asks_stay_open_until_they_are_answered(engine: EngineServer, stores: Stores) -> None:
    changes: list[int] = []
    stores.asks.changed.connect(lambda: changes.append(len(stores.asks.waiting())))
    engine.log.publish(TaskUpdate(task=task()))
    engine.log.publish(AskUpdate(ask=ask("k2", at=NOW + timedelta(seconds=1))))
    engine.log.publish(AskUpdate(ask=ask("k1")))
    await until(lambda: len(stores.asks.waiting()) == 2)
    assert [open_ask.id for open_ask in stores.asks.of_task("t1")] == ["k1", "k2"]
    assert stores.asks.of_conversation("c2") == ()
    engine.log.publish(AskUpdate(ask=msgspec.structs.replace(ask("k1"), status="answered")))
    await until(lambda: [open_ask.id for open_ask in stores.asks.waiting()] == ["k2"])
    assert changes == [1, 2, 1]


async def test_equal_approvals_are_grouped_and_answered_together(engine: EngineServer, stores: Stores) -> None:
    assert APPROVAL.approval is not None
    first = msgspec.structs.replace(APPROVAL.approval, basis="fingerprint")
    other = msgspec.structs.replace(first, call_id="call_2")
    elsewhere = msgspec.structs.replace(first, working_dir="/home/anna/elsewhere")
    engine.log.publish(TaskUpdate(task=task()))
    for number, approval in enumerate((first, other, elsewhere, None, None)):
        kind = "question" if approval is None else "approval"
        open_ask = msgspec.structs.replace(ask(f"k{number}", at=NOW + timedelta(seconds=number)), kind=kind)
        engine.log.publish(AskUpdate(ask=msgspec.structs.replace(open_ask, approval=approval)))
    await until(lambda: len(stores.asks.waiting()) == 5)
    groups = [[open_ask.id for open_ask in group] for group in stores.asks.groups()]
    assert groups == [["k0", "k1"], ["k2"], ["k3"], ["k4"]]
    assert [open_ask.id for open_ask in stores.asks.equal_to(stores.asks.waiting()[1])] == ["k0", "k1"]
    stores.asks.answer_all(AskAnswerParams(ask_id="k1", allow=True))
    await until(lambda: len(engine.runner.answers) == 2)
    assert {(answer.ask_id, answer.allow) for answer in engine.runner.answers} == {("k0", True), ("k1", True)}
    assert {answer.basis for answer in engine.runner.answers} == {"fingerprint"}, "bound to what was shown"


async def test_a_window_opened_later_knows_running_tasks_and_open_asks(engine: EngineServer) -> None:
    engine.log.publish(TaskUpdate(task=task()))
    engine.log.publish(AskUpdate(ask=ask()))
    await engine.log.flush()
    async with stores_on(engine.endpoint) as later:
        assert later.tasks.running() == (task(),)
        assert later.asks.waiting() == (ask(),)


def test_the_activity_says_how_much_of_a_request_is_read_until_the_task_changes() -> None:
    store, thinking = TaskStore(), replace_fields(task("t1"), status="thinking")
    store.put(thinking)
    store.show_reading(
        PromptReading(conversation_id=thinking.conversation_id, task_id=thinking.id, processed=1200, total=4000)
    )
    reading = store.get(thinking.id)
    assert reading is not None
    assert task_activity(reading) == "Reading 1,200 of 4,000 tokens"
    store.put(thinking)
    assert store.get(thinking.id) == thinking
