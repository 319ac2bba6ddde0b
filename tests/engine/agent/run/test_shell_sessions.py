"""What the shell keeps over tasks, stops and restarts of the engine: its folder and its background commands."""

from pathlib import Path

from errand.engine.tools.shell.background import BackgroundCommands
from errand.protocol.base import JsonObject
from errand.protocol.events import BackgroundUpdate
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import running, until


def calling(**arguments: object) -> Reply:
    call_arguments: JsonObject = {
        name: value for name, value in arguments.items() if isinstance(value, str | bool | float)
    }
    return Reply(text="Calling.", calls=(Call("shell", call_arguments),))


def told(engine: EngineParts, request: int) -> str:
    return str(engine.model.requests[request].messages[-1]["content"])


async def done(engine: EngineParts, conversation_id: str | None = None) -> Task:
    return await engine.watcher.end((await engine.start(conversation_id=conversation_id)).id)


async def test_the_folder_outlives_the_task_and_the_engine(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "sub").mkdir(parents=True)
    replies = [shell("cd sub"), DONE, shell("pwd"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=replies)) as engine:
        task = await done(engine)
        assert task.progress.working_dir == str(tmp_path / "workspace" / "sub")
        assert (await done(engine, task.conversation_id)).progress.working_dir == task.progress.working_dir
        assert told(engine, 3) == task.progress.working_dir
    async with engine_parts(tmp_path, ModelServer(turns=[*replies, shell("pwd"), DONE])) as engine:
        assert (await done(engine, task.conversation_id)).outcome.error is None
        assert told(engine, 1) == task.progress.working_dir
        (call,) = await engine.services.database.executions.newest_judged(1)
        assert (call.arguments, call.working_dir) == ({"command": "pwd"}, task.progress.working_dir)


async def test_an_ended_task_leaves_nothing_in_memory_that_it_does_not_need(tmp_path: Path) -> None:
    replies = [shell("cd /"), DONE, calling(command="exec sleep 4745", background=True), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=replies)) as engine:
        sessions = engine.services.tools.sessions
        task = await done(engine)
        await until(lambda: not sessions.conversations())
        task = await done(engine, task.conversation_id)
        assert sessions.conversations() == {task.conversation_id}, "a command still runs"


async def test_a_background_command_outlives_its_task_and_ends_with_the_engine(tmp_path: Path) -> None:
    replies = [calling(command="exec sleep 4742", background=True), DONE, calling(action="list"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=replies)) as engine:
        task = await done(engine)
        assert running("4742")
        await done(engine, task.conversation_id)
        assert "[background 1 `exec sleep 4742` is running in" in told(engine, 3)
        updates = [event for event in engine.watcher.events if isinstance(event, BackgroundUpdate)]
        assert updates[0].conversation_id == task.conversation_id and updates[0].commands[0].ended_at is None
    assert not running("4742")


async def test_a_person_who_stops_the_task_stops_its_background_commands(tmp_path: Path) -> None:
    replies = [calling(command="exec sleep 4743", background=True), shell("sleep 4744")]
    async with engine_parts(tmp_path, ModelServer(turns=replies)) as engine:
        started = await engine.start()
        await until(lambda: bool(running("4744")))
        await engine.services.runner.stop(started.id, "Ada")
        task = await engine.watcher.end(started.id)
        await until(lambda: not running("4743") and not running("4744"))
        background = engine.services.tools.sessions.find(task.conversation_id, BackgroundCommands)
        assert background is not None
        await until(lambda: background.commands()[0].ended_at is not None)
        assert background.commands()[0].stopped_by == "Ada"


async def test_it_ends_when_its_conversation_is_closed(tmp_path: Path) -> None:
    replies = [calling(command="exec sleep 4745", background=True), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=replies)) as engine:
        task = await done(engine)
        assert running("4745")
        await engine.services.tools.sessions.close_conversation(task.conversation_id)
        assert not running("4745")
