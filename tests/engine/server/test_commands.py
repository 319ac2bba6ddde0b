"""A command runs once, however often a client sends the same id."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from errand.engine.storage.records import commands
from errand.protocol.base import JsonObject
from errand.protocol.tasks.methods import TaskStartResult
from tests.support.connections import error_of, raw_client
from tests.support.engine_server import EngineServer, engine_server


async def test_a_command_sent_twice_is_done_once_and_answered_twice(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        answers = [await client.ask("task/start", 7, prompt="a") for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        assert engine.runner.started == ["a"]


async def test_running_command_is_awaited_and_not_started_again(engine: EngineServer) -> None:
    engine.runner.gate.clear()
    async with raw_client(engine) as client, raw_client(engine) as again:
        await client.request("task/start", 7, prompt="a")
        await engine.runner.starting.wait()
        await again.request("task/start", 7, prompt="a")
        # A later request is answered meanwhile, which shows that the second start has been read.
        await again.ask("unsubscribe", 8)
        engine.runner.gate.set()
        assert await client.read() == await again.read()
        assert engine.runner.started == ["a"]


async def test_command_continues_after_its_client_disconnects(engine: EngineServer) -> None:
    engine.runner.gate.clear()
    async with raw_client(engine) as client:
        await client.request("task/start", 7, prompt="a")
        await engine.runner.starting.wait()
    engine.runner.gate.set()
    async with raw_client(engine) as client:
        assert "result" in await client.ask("task/start", 7, prompt="a")
        assert engine.runner.started == ["a"]


async def test_the_same_id_of_another_client_or_kind_is_another_command(engine: EngineServer) -> None:
    async with (
        raw_client(engine, client_id="one") as first_client,
        raw_client(engine, client_id="two") as second_client,
    ):
        for answer in (
            await first_client.ask("task/start", 7, prompt="a"),
            await second_client.ask("task/start", 7, prompt="b"),
            await first_client.ask("task/start", "7", prompt="c"),
        ):
            assert "result" in answer
        assert len(engine.runner.started) == 3
        assert error_of(await first_client.ask("task/stop", 7, taskId="t1"))[1] == "conflict"


async def test_failed_command_may_be_sent_again(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        assert error_of(await client.ask("task/stop", 7, taskId="t1"))[1] == "not_found"
        await client.ask("task/start", 8, prompt="a", taskId="t1")
        assert "result" in await client.ask("task/stop", 7, taskId="t1")


async def test_command_result_survives_a_restart(tmp_path: Path) -> None:
    answers: list[JsonObject] = []
    started: list[str] = []
    for _ in range(2):
        async with engine_server(tmp_path / "home") as engine, raw_client(engine) as client:
            answers.append(await client.ask("task/start", 7, prompt="a"))
            started += engine.runner.started
    assert answers[0] == answers[1]
    assert started == ["a"]


async def test_id_of_another_command_is_refused_also_after_a_restart(tmp_path: Path) -> None:
    async with engine_server(tmp_path / "home") as engine, raw_client(engine) as client:
        await client.ask("task/start", 7, prompt="a")
    async with engine_server(tmp_path / "home") as engine, raw_client(engine) as client:
        assert error_of(await client.ask("task/stop", 7, taskId="t1"))[1] == "conflict"


async def test_id_derived_from_a_command_prevents_duplicates_after_a_lost_answer(tmp_path: Path) -> None:
    """An engine that dies after the command and before its answer is stored: here the answer's row is lost."""
    started: list[JsonObject] = []
    for _ in range(2):
        async with engine_server(tmp_path / "home") as engine, raw_client(engine) as client:
            started.append(await client.ask("task/start", 7, prompt="a"))
            engine.database.journal.put(commands.prune(datetime.now(UTC) + timedelta(days=1)))
            await engine.database.journal.flush()
    first_id, second_id = (msgspec.convert(answer["result"], TaskStartResult).task.id for answer in started)
    assert first_id == second_id


async def test_answered_command_is_on_disk(engine: EngineServer) -> None:
    async with raw_client(engine) as client:
        assert "result" in await client.ask("task/start", 1, prompt="a")
        assert (await engine.database.tasks.page()).tasks == tuple(engine.runner.tasks.values())
