"""An answer that was read before an event does not overwrite it."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from errand.client.connection import Connection
from errand.client.conversation.branch import LoadedBranch
from errand.protocol.agents import Personality
from errand.protocol.base import Method
from errand.protocol.events import AgentUpdate, ConversationUpdate, PersonalityDeleted, PersonalityUpdate, TaskUpdate
from errand.window.stores.catalog import PersonalityStore
from errand.window.stores.conversation.paging import SettledLoader
from errand.window.stores.session import EngineSession, P, R
from tests.support.engine_server import EngineServer, engine_server
from tests.support.processes import until
from tests.support.records import NOW, agent, conversation, node, task


class OvertakenSession(EngineSession):
    """Every answer arrives after `first` was called."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], first: Callable[[], object]) -> None:
        super().__init__(connect)
        self._first = first

    async def call(self, method: Method[P, R], params: P) -> R:
        answer = await super().call(method, params)
        self._first()
        return answer


@asynccontextmanager
async def overtaken_session(engine: EngineServer, first: Callable[[], object]) -> AsyncGenerator[OvertakenSession]:
    async def connect() -> Connection:
        connection = Connection(engine.endpoint, "window")
        await connection.open()
        return connection

    session = OvertakenSession(connect, first)
    try:
        yield session
    finally:
        await session.close()


async def test_an_outdated_answer_does_not_restart_an_ended_task(tmp_path: Path) -> None:
    branch = LoadedBranch()
    running, ended = task("t1"), task("t1", ended_at=NOW)
    reply = msgspec.structs.replace(node("n1"), task_id="t1")
    async with (
        engine_server(tmp_path / "home") as engine,
        overtaken_session(engine, lambda: branch.tasks.put(ended)) as session,
    ):
        for event in (
            ConversationUpdate(conversation=conversation()),
            AgentUpdate(agent=agent()),
            TaskUpdate(task=running),
        ):
            engine.log.publish(event)
        await engine.log.flush()
        await session.start()
        await SettledLoader(session, branch).load("c1", [reply])
    assert branch.tasks.get("t1") == ended


async def test_an_outdated_answer_does_not_revert_a_personality(tmp_path: Path) -> None:
    events: list[PersonalityUpdate | PersonalityDeleted] = [
        PersonalityDeleted(personality_id="gone"),
        PersonalityUpdate(personality=Personality(id="changed", name="After", system_prompt="")),
    ]
    async with (
        engine_server(tmp_path / "home") as engine,
        overtaken_session(engine, lambda: [store.apply(event) for event in events]) as session,
    ):
        for name in ("gone", "changed", "same"):
            engine.log.publish(PersonalityUpdate(personality=Personality(id=name, name="Before", system_prompt="")))
        await engine.log.flush()
        store = PersonalityStore(session)
        await session.start()
        await until(lambda: store.get("same") is not None)
        changed = store.get("changed")
        assert (store.get("gone"), changed and changed.name) == (None, "After")
