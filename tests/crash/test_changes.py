"""Engines that are killed around a change of a file: nothing is half done, and everything can be undone."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from errand.client.connection import Connection
from errand.client.errors import ConnectionLost
from errand.client.launch import read_endpoint
from errand.protocol.changes import (
    CHANGE_LIST,
    CHANGE_REDO,
    CHANGE_UNDO,
    ChangeListParams,
    ChangeUndoParams,
    TaskChanges,
)
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.system.paths import Paths
from tests.support.command_line import Errand
from tests.support.forked_process import start_program
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.warm_errand import CHECKOUT, Command

TASK = "task_killed"

Life = Callable[..., Awaitable[Process]]


@pytest.fixture
async def life(own_errand: Errand) -> AsyncGenerator[Life]:
    """Starts an engine, which kills itself as its arguments say; what still runs ends with the test."""
    started: list[Process] = []

    async def begin(*crash_point: str) -> Process:
        command = Command(("engine",), str(CHECKOUT), own_errand.environment)
        if crash_point:
            command = replace(command, module="tests.support.killed_at_change", arguments=crash_point)
        process = await start_program(command, (DEVNULL, PIPE, 2))
        started.append(process)
        assert process.stdout is not None and await process.stdout.readline()
        return process

    yield begin
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def connected(errand: Errand) -> Connection:
    connection = Connection(lambda: read_endpoint(Paths(errand.home)), "a person")
    await connection.open()
    return connection


async def start(connection: Connection, server: ModelServer, workspace: Path) -> None:
    params = TaskStartParams(
        task_id=TASK,
        prompt="go",
        model="openai_compatible/test-model",
        api_base=server.url,
        workspace=str(workspace),
        approve="all",
    )
    await connection.call(TASK_START, params)


async def changes(connection: Connection) -> TaskChanges:
    (task_changes,) = (await connection.call(CHANGE_LIST, ChangeListParams(task_id=TASK))).tasks
    return task_changes


def write(name: str, content: str) -> Call:
    return Call("code", {"action": "write", "path": name, "content": content})


async def test_an_engine_killed_between_note_and_change_leaves_the_file_and_a_list_that_says_so(
    own_errand: Errand, workspace: Path, life: Life
) -> None:
    (workspace / "a").write_text("old\n")
    async with ModelServer(turns=[Reply(calls=(write("a", "new\n"),)), Reply(text="Done.")]) as server:
        killed = await life("noted")
        connection = await connected(own_errand)
        await start(connection, server, workspace)
        assert await killed.wait() == -9
        await connection.close()
    assert (workspace / "a").read_text() == "old\n"
    await life()
    connection = await connected(own_errand)
    (file,) = (await changes(connection)).files
    assert (file.name, file.state, file.can_undo) == ("a", "undone", False)
    await connection.call(CHANGE_REDO, ChangeUndoParams(task_id=TASK))
    assert (workspace / "a").read_text() == "new\n"
    await connection.call(CHANGE_UNDO, ChangeUndoParams(task_id=TASK))
    assert (workspace / "a").read_text() == "old\n"
    await connection.close()


async def test_file_that_was_half_written_when_the_engine_was_killed_is_removed_and_no_other(
    own_errand: Errand, workspace: Path, life: Life
) -> None:
    (workspace / "a").write_text("old\n")
    foreign = workspace / ".errand-0123456789abcdef.tmp"
    foreign.write_text("new\n")  # from before
    async with ModelServer(turns=[Reply(calls=(write("a", "new\n"),)), Reply(text="Done.")]) as server:
        killed = await life("writing")
        connection = await connected(own_errand)
        os.utime(foreign, (1, 1))
        await start(connection, server, workspace)
        assert await killed.wait() == -9
        await connection.close()
    (left,) = set(os.listdir(workspace)) - {"a", foreign.name}
    other = workspace / ".errand-fedcba9876543210.tmp"
    other.write_text("something else\n")
    await life()
    connection = await connected(own_errand)
    (file,) = (await changes(connection)).files
    assert (file.name, file.state) == ("a", "undone")
    assert not (workspace / left).exists() and foreign.exists() and other.exists()
    assert (workspace / "a").read_text() == "old\n"
    await connection.close()


async def test_a_change_whose_event_was_not_committed_when_the_engine_was_killed_can_be_undone(
    own_errand: Errand, workspace: Path, life: Life
) -> None:
    (workspace / "a").write_text("old\n")
    async with ModelServer(turns=[Reply(calls=(write("a", "new\n"),)), Reply(text="Done.")]) as server:
        killed = await life("made")
        connection = await connected(own_errand)
        await start(connection, server, workspace)
        assert await killed.wait() == -9
        await connection.close()
    assert (workspace / "a").read_text() == "new\n"
    await life()
    connection = await connected(own_errand)
    task_changes = await changes(connection)
    assert [(file.name, file.state, file.steps, file.added) for file in task_changes.files] == [
        ("a", "changed", (1,), 1)
    ]
    await connection.call(CHANGE_UNDO, ChangeUndoParams(task_id=TASK))
    assert (workspace / "a").read_text() == "old\n"
    await connection.close()


async def test_what_a_command_had_changed_when_the_engine_was_killed_can_be_undone(
    own_errand: Errand, workspace: Path, life: Life
) -> None:
    for name in ("a", "b", "c"):
        (workspace / name).write_text("old\n")
    os.mkfifo(workspace / "ready")
    command = Call("shell", {"command": "echo new > a; rm b; echo > ready; sleep 61; rm c"})
    async with ModelServer(turns=[Reply(calls=(command,)), Reply(text="Done.")]) as server:
        first = await life()
        connection = await connected(own_errand)
        await start(connection, server, workspace)
        await asyncio.to_thread((workspace / "ready").read_text)
        first.kill()
        assert await first.wait() == -9
        await connection.close()
    await life()
    connection = await connected(own_errand)
    task_changes = await changes(connection)
    assert {(file.name, file.state, file.command_steps) for file in task_changes.files} == {
        ("a", "changed", (1,)),
        ("b", "changed", (1,)),
    }
    await connection.call(CHANGE_UNDO, ChangeUndoParams(task_id=TASK))
    assert [(workspace / name).read_text() for name in ("a", "b", "c")] == ["old\n"] * 3
    await connection.close()


async def test_an_undo_that_was_killed_in_the_middle_is_completed_by_repeating_it(
    own_errand: Errand, workspace: Path, life: Life
) -> None:
    names = ("a", "b", "c")
    for name in names:
        (workspace / name).write_text(f"old {name}\n")
    calls = tuple(write(name, f"new {name}\n") for name in names)
    async with ModelServer(turns=[Reply(calls=calls), Reply(text="Done.")]) as server:
        first_run = await own_errand.run(
            *("run", "--approve", "all", "--json", "--model", "openai_compatible/test-model"),
            *("--api-base", server.url, "go"),
        )
        task_id = str(first_run.lines[-1]["id"])
    await own_errand.run("engine", "--stop")
    killed = await life("undoing")
    connection = await connected(own_errand)
    call = asyncio.create_task(connection.call(CHANGE_UNDO, ChangeUndoParams(task_id=task_id)))
    assert await killed.wait() == -9
    await connection.close()
    with suppress(ConnectionLost):
        await call
    contents = [(workspace / name).read_text() for name in names]
    assert sorted(text.split()[0] for text in contents) == ["new", "new", "old"]
    await life()
    connection = await connected(own_errand)
    (task,) = (await connection.call(CHANGE_LIST, ChangeListParams(task_id=task_id))).tasks
    assert sorted(file.state for file in task.files) == ["changed", "changed", "undone"]
    result = await connection.call(CHANGE_UNDO, ChangeUndoParams(task_id=task_id))
    assert (len(result.changes), result.conflicts) == (2, ())
    assert [(workspace / name).read_text() for name in names] == [f"old {name}\n" for name in names]
    assert sorted(os.listdir(workspace)) == [*names]
    await connection.close()
