"""Unread counts messages: what the agent said in conversations that nobody looked at, also while no window was open."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
from shiboken6 import delete

from errand.protocol.asks import AskAnswerParams
from errand.window.stores.tasks import UnreadStore
from errand.window.stores.window_state import WindowStateStore
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.store_engine import StoreEngine, store_engine
from tests.support.window import until

pytestmark = pytest.mark.usefixtures("qapp")

UPDATE = Reply(calls=(Call("send_update", {"message": "half done"}),))
LOOK = Reply(calls=(Call("shell", {"command": "true"}),))


@dataclass(slots=True)
class Person:
    looks_at: str = ""

    def conversation(self) -> str:
        return self.looks_at


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[StoreEngine]:
    turns = [Reply(text="First.", calls=LOOK.calls), UPDATE, LOOK, DONE]
    async with store_engine(tmp_path, ModelServer(turns=turns)) as running:
        yield running


def unread_of(engine: StoreEngine, state: Path, person: Person) -> UnreadStore:
    return UnreadStore(engine.stores.tasks, WindowStateStore(state), person.conversation)


async def test_the_engine_counts_what_was_said_to_people_and_not_steps_without_words(engine: StoreEngine) -> None:
    ended = await engine.parts.watcher.end((await engine.parts.start()).id)
    assert (ended.progress.step_count, ended.progress.messages) == (4, 3), "a text, an update, the summary"


async def test_a_conversation_in_the_background_has_as_many_unread_as_it_got_messages(
    engine: StoreEngine, tmp_path: Path
) -> None:
    person = Person()
    unread = unread_of(engine, tmp_path / "window.json", person)
    task = await engine.parts.start()
    await until(lambda: unread.count(task.conversation_id) == 3 and len(unread.finished()) == 1)
    other = await engine.parts.start()
    await until(lambda: unread.counts() == {task.conversation_id: 3, other.conversation_id: 3})
    unread.mark_read(task.conversation_id)
    assert unread.counts() == {other.conversation_id: 3}
    unread.dismiss(other.id)
    assert (unread.counts(), unread.finished()) == ({}, ())


async def test_the_conversation_in_front_has_nothing_unread(engine: StoreEngine, tmp_path: Path) -> None:
    person = Person()
    unread = unread_of(engine, tmp_path / "window.json", person)
    task = await engine.parts.start(task_id="task_in_front")
    person.looks_at = task.conversation_id
    unread.mark_read(task.conversation_id)
    await engine.parts.watcher.end(task.id)
    await until(
        lambda: (current := engine.stores.tasks.get(task.id)) is not None and current.outcome.ended_at is not None
    )
    assert (unread.counts(), unread.finished()) == ({}, ())


async def test_a_task_that_failed_without_a_word_has_one_unread_message(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer([Reply(status=400, error="refused")])) as engine:
        unread = unread_of(engine, tmp_path / "window.json", Person())
        task = await engine.parts.start()
        await until(lambda: unread.count(task.conversation_id) == 1)
        assert [ended.activity.status for ended in unread.finished()] == ["error"]


async def test_what_a_task_says_without_the_window_is_unread_at_its_next_start(
    engine: StoreEngine, tmp_path: Path
) -> None:
    file, person = tmp_path / "window.json", Person()
    state = WindowStateStore(file)
    first = UnreadStore(engine.stores.tasks, state, person.conversation)
    read = await engine.parts.start()
    person.looks_at = read.conversation_id
    first.mark_read(read.conversation_id)
    await engine.parts.watcher.end(read.id)
    await until(
        lambda: (current := engine.stores.tasks.get(read.id)) is not None and current.outcome.ended_at is not None
    )
    waiting = await engine.parts.start(attended=True, max_turns=2)  # asks at its limit, after two messages
    await engine.parts.watcher.ask(waiting.id)
    await until(lambda: first.count(waiting.conversation_id) == 2)
    first.mark_read(waiting.conversation_id)
    unseen = await engine.parts.start(attended=True, max_turns=2)
    await engine.parts.watcher.ask(unseen.id)
    await until(lambda: first.count(unseen.conversation_id) == 2)
    state.flush()
    delete(first)  # the window is closed
    for task in (waiting, unseen):
        ask = await engine.parts.watcher.ask(task.id)
        await engine.parts.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        await engine.parts.watcher.end(task.id)
    last = await engine.parts.start()
    await engine.parts.watcher.end(last.id)
    again = UnreadStore(engine.stores.tasks, WindowStateStore(file), person.conversation)
    for task in (read, waiting, unseen, last):
        stored = await engine.parts.services.database.tasks.get(task.id)
        assert stored is not None
        engine.stores.tasks.taskUpdate.emit(stored)  # as the first page of conversations brings it
    assert again.counts() == {
        waiting.conversation_id: 1,
        unseen.conversation_id: 3,
        last.conversation_id: 3,
    }
