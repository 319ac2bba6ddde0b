"""Power cuts while tasks run: acknowledged changes survive, and nothing ran without a record."""

import asyncio
import os
import random
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import select

from errand.client.connection import Connection
from errand.client.launch import read_endpoint
from errand.client.subscription import ConnectionMessage
from errand.engine.core.key_vaults import KeyFile
from errand.engine.core.settings import Settings
from errand.engine.data import pictures
from errand.engine.storage.records.executions import ExecutionStart
from errand.engine.storage.records.tasks import TASK_BODY
from errand.engine.storage.sql.statements import from_json
from errand.engine.storage.sqlite.opening import prepare_file
from errand.protocol.events import EventRecord, TaskUpdate
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.system import database_file
from errand.system.paths import Paths
from errand.system.regular_file import write_atomically
from tests.attacks.campaign import Campaign
from tests.support.command_line import CHECKOUT, Errand
from tests.support.disks import PoweredDisk, powered_disk
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply

# Concurrent users, each of which starts the next task when the last one is acknowledged.
_PEOPLE = 4
_STEPS = 2
_TASKS = str(select(TASK_BODY).compile(compile_kwargs={"literal_binds": True}))


@dataclass(slots=True)
class Told:
    """The state that clients have heard of: acknowledged tasks, and completed ones."""

    acknowledged: set[str] = field(default_factory=set[str])
    completed: set[str] = field(default_factory=set[str])
    asked: int = 0


def answer(request: ReceivedRequest) -> Reply:
    """Each step of a task records that it ran, on a disk that keeps its power."""
    if request.turn == _STEPS:
        return DONE
    task_id = next(str(message["content"]) for message in request.messages if message.get("role") == "user").split()[0]
    return Reply(calls=(Call("shell", {"command": f"echo {task_id} step{request.turn} >> effects.txt"}),))


async def test_whatever_was_acknowledged_before_a_power_cut_is_there_after_it(
    tmp_path: Path, workspace: Path, campaign: Campaign
) -> None:
    chance = campaign.random("power cuts")
    progress = Told()
    with powered_disk(tmp_path) as disk:
        async with ModelServer(answer=answer) as model:
            for _ in range(campaign.rounds(1, 30)):
                home = disk.folder / "home"
                await work_until_cut(disk, home, workspace, model.url, progress, chance)
                missing = lost(Paths(home).database, progress, workspace)
                campaign.count("power cuts: cuts")
                campaign.count("power cuts: acknowledged tasks lost", len(missing))
                assert missing == []
    campaign.count("power cuts: tasks acknowledged", len(progress.acknowledged))
    campaign.count("power cuts: tasks told as complete", len(progress.completed))


@pytest.mark.parametrize("what", ["settings", "keys", "picture", "written file", "copy", "new database"])
def test_a_file_that_was_written_whole_is_there_after_a_power_cut(tmp_path: Path, what: str) -> None:
    """Each is the last operation: nothing after it flushes it to disk by chance."""
    with powered_disk(tmp_path, 48) as disk:
        paths = Paths(disk.folder / "home")
        paths.prepare()
        (disk.folder / "old.txt").write_text("old")
        prepare_file(paths.database, paths.copies)
        os.sync()
        look = _writings(disk.folder, paths)[what]()
        disk.cut()
        disk.restore()
        assert look() == "new"


def _writings(folder: Path, paths: Paths) -> dict[str, Callable[[], Callable[[], str]]]:
    """Each writes something new and returns a function that reads it."""

    def settings() -> Callable[[], str]:
        Settings(paths.settings).set("default_model", "new")
        return lambda: str(Settings(paths.settings).values.default_model)

    def keys() -> Callable[[], str]:
        KeyFile(paths.keys).put("openai", "new")
        return lambda: KeyFile(paths.keys).read().get("openai", "no key")

    def picture() -> Callable[[], str]:
        picture_path = pictures.store_picture(paths.attachments, "picture.png", b"new")
        return lambda: picture_path.read_text() if picture_path.exists() else "no picture"

    def written_file() -> Callable[[], str]:
        write_atomically(folder / "old.txt", b"new")
        return (folder / "old.txt").read_text

    def copy() -> Callable[[], str]:
        database_file.copy_database(paths.database, paths.copies / "copy.db")
        return lambda: database_file.find_fault(paths.copies / "copy.db") or "new"

    def new_database() -> Callable[[], str]:
        database_path = folder / "another" / "home" / "errand.db"
        prepare_file(database_path, paths.copies)
        return lambda: database_file.find_fault(database_path) or "new"

    return {
        "settings": settings,
        "keys": keys,
        "picture": picture,
        "written file": written_file,
        "copy": copy,
        "new database": new_database,
    }


async def work_until_cut(
    disk: PoweredDisk, home: Path, workspace: Path, model: str, progress: Told, chance: random.Random
) -> None:
    """One engine from its start to the power cut, at the acknowledgement of a random task."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "errand",
        "engine",
        stdout=asyncio.subprocess.PIPE,
        cwd=CHECKOUT,
        env=Errand(home, workspace).environment,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT_LIMIT_S):
            assert await process.stdout.readline(), "the engine does not start on what the power cut has left"
            await people(home, workspace, model, progress, len(progress.acknowledged) + chance.randint(10, 40))
        disk.cut()
    finally:
        process.kill()
        await process.wait()
    disk.restore()


async def people(home: Path, workspace: Path, model: str, progress: Told, enough: int) -> None:
    """Start tasks until this many are acknowledged."""
    connection = Connection(lambda: read_endpoint(Paths(home)), "people", patience_s=0.1)
    await connection.open()

    def listen(message: ConnectionMessage) -> None:
        event = message.event if isinstance(message, EventRecord) else None
        if isinstance(event, TaskUpdate) and event.task.activity.status == "completed":
            progress.completed.add(event.task.id)

    connection.subscribe(listen)
    await connection.subscribe_scope()

    async def person() -> None:
        while len(progress.acknowledged) < enough:
            progress.asked += 1
            task_id = f"task_{progress.asked}"
            params = TaskStartParams(
                task_id=task_id,
                prompt=f"{task_id} goes on",
                model="openai_compatible/test-model",
                api_base=model,
                workspace=str(workspace),
                approve="all",
            )
            await connection.call(TASK_START, params)
            progress.acknowledged.add(task_id)

    try:
        await asyncio.gather(*(person() for _ in range(_PEOPLE)))
    finally:
        await connection.close()


def lost(database: Path, progress: Told, workspace: Path) -> list[str]:
    """Return what a client was told, or a tool has done, and the database does not contain."""
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        tasks = {task.id: task for task in (from_json(body, Task) for (body,) in connection.execute(_TASKS))}
        calls = connection.execute("SELECT body FROM tool_executions WHERE phase = 'started'")
        started = [from_json(body, ExecutionStart) for (body,) in calls]
        replies = {str(row[0]) for row in connection.execute("SELECT task_id FROM turns WHERE status = 'complete'")}
    intents = {str(call.arguments["command"]).split(" >>")[0] for call in started if call.tool == "shell"}
    effects = (workspace / "effects.txt").read_text().splitlines() if (workspace / "effects.txt").exists() else []
    return [
        *sorted(f"{task_id} is not there" for task_id in progress.acknowledged - tasks.keys()),
        *sorted(
            f"{task_id} is not complete"
            for task_id in progress.completed
            if task_id in tasks and tasks[task_id].activity.status != "completed"
        ),
        *sorted(f"the reply of {task_id} is not there" for task_id in progress.completed & tasks.keys() - replies),
        *(f"nobody knows that {line!r} has run" for line in effects if f"echo {line}" not in intents),
    ]
