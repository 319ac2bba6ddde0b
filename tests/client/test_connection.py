"""The client's connection: calls, ordered events, and reconnection."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost, NoEngine
from errand.client.subscription import ConnectionDown, ConnectionMessage, ConnectionRestored
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_SHUTDOWN, ENGINE_STATUS, EngineShutdownParams
from errand.protocol.events import ConversationUpdate, EventRecord, Resync, TaskUpdate
from errand.protocol.tasks.methods import (
    TASK_LIST,
    TASK_START,
    TASK_STEER,
    TASK_STOP,
    TaskIdParams,
    TaskListParams,
    TaskMessageParams,
    TaskStartParams,
)
from tests.support.connections import Cable, Watcher, cable_to
from tests.support.engine_server import EngineServer, engine_server
from tests.support.records import NOW, conversation, task


@asynccontextmanager
async def connected(cable: Cable, patience_s: float = 10.0) -> AsyncGenerator[Connection]:
    connection = Connection(cable.find, "test", patience_s)
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


async def publish_steps(engine: EngineServer, count: int) -> None:
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    for step in range(count - 1):
        engine.log.publish(TaskUpdate(task=task(step_count=step)))
    await engine.log.flush()


async def test_a_call_gives_the_typed_result_or_the_engines_error(engine: EngineServer) -> None:
    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        started = await connection.call(TASK_START, TaskStartParams(prompt="Do it."))
        listed = await connection.call(TASK_LIST, TaskListParams())
        assert listed.tasks == (started.task,)
        with pytest.raises(CallError, match="no task 'none'") as refused:
            await connection.call(TASK_STOP, TaskIdParams(task_id="none"))
        assert refused.value.code == "not_found"
        with pytest.raises(CallError, match="at most 1,048,576") as too_large:
            await connection.call(TASK_STEER, TaskMessageParams(task_id="t1", text="x" * 2_000_000))
        assert too_large.value.code == "too_large"


async def test_listener_that_raises_affects_neither_the_connection_nor_other_listeners(
    engine: EngineServer, caplog: pytest.LogCaptureFixture
) -> None:
    def bad(message: ConnectionMessage) -> None:
        raise ZeroDivisionError

    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        connection.subscribe(bad)
        watcher = Watcher(connection)
        await connection.subscribe_scope()
        await publish_steps(engine, 3)
        await watcher.until_sequence(3)
        await connection.call(ENGINE_STATUS, EmptyParams())
    assert {record.getMessage() for record in caplog.records} == {"a listener failed"}


async def test_concurrent_calls_get_their_own_answers(engine: EngineServer) -> None:
    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        calls = [connection.call(TASK_START, TaskStartParams(prompt=f"p{number}")) for number in range(50)]
        results = await asyncio.gather(*calls)
        assert [result.task.request.prompt for result in results] == [f"p{number}" for number in range(50)]


async def test_command_running_at_a_disconnect_runs_once_and_is_answered(engine: EngineServer) -> None:
    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        watcher = Watcher(connection)
        engine.runner.gate.clear()
        starting = asyncio.create_task(connection.call(TASK_START, TaskStartParams(prompt="once")))
        await engine.runner.starting.wait()
        cable.cut()
        await watcher.until_kind(ConnectionRestored)
        assert [message.reason for message in watcher.messages if isinstance(message, ConnectionDown)] == [
            "The connection was lost."
        ]
        engine.runner.gate.set()
        assert (await starting).task.request.prompt == "once"
        assert engine.runner.started == ["once"]


async def test_command_answered_during_a_disconnect_gets_the_same_answer(engine: EngineServer) -> None:
    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        engine.runner.gate.clear()
        starting = asyncio.create_task(connection.call(TASK_START, TaskStartParams(prompt="once")))
        await engine.runner.starting.wait()
        cable.pull()
        engine.runner.gate.set()
        await engine.log.flush()
        cable.pulled = False
        assert (await starting).task.request.prompt == "once"
        assert engine.runner.started == ["once"]


async def test_events_missed_during_a_disconnect_come_once_and_in_order(engine: EngineServer) -> None:
    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        watcher = Watcher(connection)
        await publish_steps(engine, 2)
        await connection.subscribe_scope()
        await connection.subscribe_scope("c1", "full")
        await publish_steps(engine, 5)
        await watcher.until_sequence(7)
        cable.pull()
        await watcher.until_kind(ConnectionDown)
        await publish_steps(engine, 5)
        cable.pulled = False
        await watcher.until_kind(ConnectionRestored)
        await publish_steps(engine, 1)
        await watcher.until_sequence(13)
        assert watcher.sequences == list(range(3, 14))
        assert Resync not in [type(message) for message in watcher.messages]


async def test_the_end_of_a_task_that_was_listed_is_seen_though_it_came_before_its_conversation_was_followed(
    engine: EngineServer,
) -> None:
    await publish_steps(engine, 3)
    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        watcher, start = Watcher(connection), connection.welcome
        assert len((await connection.call(TASK_LIST, TaskListParams())).tasks) == 1
        end = TaskUpdate(task=task(step_count=1, ended_at=NOW))
        engine.log.publish(end)
        await engine.log.flush()
        await connection.subscribe_scope("c1", "full", after=start.head, epoch=start.epoch)
        assert watcher.messages == [EventRecord(sequence=4, epoch=start.epoch, event=end)]


async def test_an_engine_that_comes_back_elsewhere_with_another_token_is_found(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with cable_to(None) as cable:
        async with engine_server(home, instance_id="first") as engine:
            cable.target = engine.endpoint()
            connection = Connection(cable.find, "test")
            await connection.open()
            watcher = Watcher(connection)
            await connection.subscribe_scope()
            await publish_steps(engine, 3)
            await watcher.until_sequence(3)
            await connection.call(TASK_START, TaskStartParams(prompt="a"))
        await watcher.until_kind(ConnectionDown)
        async with engine_server(home, instance_id="second") as engine:
            cable.target = engine.endpoint()
            await publish_steps(engine, 1)
            await watcher.until_kind(ConnectionRestored)
            await watcher.until_sequence(6)
            assert watcher.sequences == [1, 2, 3, 4, 5, 6]
            assert ConnectionRestored("second") in watcher.messages
            assert (await connection.call(ENGINE_STATUS, EmptyParams())).instance_id == "second"
            await connection.close()


async def test_different_event_log_causes_a_resync(tmp_path: Path) -> None:
    async with cable_to(None) as cable:
        async with engine_server(tmp_path / "one") as engine:
            cable.target = engine.endpoint()
            connection = Connection(cable.find, "test")
            await connection.open()
            watcher = Watcher(connection)
            await connection.subscribe_scope()
        async with engine_server(tmp_path / "two") as engine:
            cable.target = engine.endpoint()
            await watcher.until_kind(ConnectionRestored)
            kinds = [type(message) for message in watcher.messages]
            assert kinds == [ConnectionDown, Resync, ConnectionRestored]
            await connection.close()


async def test_client_gives_up_calls_but_keeps_reconnecting(engine: EngineServer) -> None:
    async with cable_to(engine.endpoint()) as cable, connected(cable, patience_s=0.05) as connection:
        watcher = Watcher(connection)
        cable.pull()
        with pytest.raises(ConnectionLost, match="does not answer"):
            await connection.call(ENGINE_STATUS, EmptyParams())
        await watcher.until(
            lambda messages: any(isinstance(message, ConnectionDown) and message.gave_up for message in messages)
        )
        with pytest.raises(ConnectionLost):
            await connection.call(ENGINE_STATUS, EmptyParams())
        cable.pulled = False
        await watcher.until_kind(ConnectionRestored)
        assert (await connection.call(ENGINE_STATUS, EmptyParams())).clients == 1


async def test_snapshot_is_delivered_before_later_events(engine: EngineServer) -> None:
    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        watcher = Watcher(connection)
        for _ in range(20):
            following = connection.subscribe_scope()
            for step in range(5):
                engine.log.publish(ConversationUpdate(conversation=conversation(f"c{step}")))
            result = await following
            assert result.snapshot is not None
            assert [number for number in watcher.sequences if number > result.snapshot.sequence] == []
            await connection.unsubscribe_scope()


async def test_shutdown_is_answered_and_a_closed_connection_says_so(engine: EngineServer) -> None:
    async with cable_to(engine.endpoint()) as cable, connected(cable) as connection:
        await connection.call(ENGINE_SHUTDOWN, EngineShutdownParams())
        assert engine.ended.is_set()
        await connection.close()
        with pytest.raises(ConnectionLost, match="closed"):
            await connection.call(ENGINE_STATUS, EmptyParams())


async def test_connection_closed_right_after_opening_leaves_nothing_behind(engine: EngineServer) -> None:
    connection = Connection(engine.endpoint, "test")
    await connection.open()
    await connection.close()
    # An unreferenced open socket warns when it is collected, which fails this test.
    gc.collect()


async def test_without_an_engine_the_first_attempt_fails_at_once() -> None:
    async with cable_to(None) as cable:
        with pytest.raises(NoEngine):
            await Connection(cable.find, "test").open()
