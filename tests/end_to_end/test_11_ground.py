"""Behaviours 111 to 119: the disk is full, the database held or damaged; said plainly, and nothing is lost."""

import asyncio
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.errand import Errand, rest
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.small_disk import filled, small_disk

MODEL = ("--model", "openai_compatible/test-model", "--approve", "all", "--api-base")
COMMAND = Call("shell", {"command": "echo once >> made.txt"})


async def test_111_on_a_full_disk_a_task_waits_new_ones_are_refused_reading_goes_on_and_with_room_it_ends(
    tmp_path: Path, workspace: Path
) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(COMMAND,), gate=gate), Reply(text="All is saved.")]
    with small_disk(tmp_path / "disk") as disk:
        errand = Errand(disk / "home", workspace)
        async with ModelServer(replies=replies) as server:
            task = await errand.start("run", *MODEL, server.url, "go on when you can")
            await server.request(0)
            with filled(disk):
                gate.set()
                said = await said_on_stderr(task)
                refused = await errand.run("run", *MODEL, server.url, "another")
                listed = await errand.run("tasks")
                assert not (workspace / "made.txt").exists()
            done = await rest(task)
            asked = len(server.requests)
        await errand.close()
    assert "The disk is full" in said and "Make at least 100 MB free" in said
    assert refused.code == 1
    assert "Not saved: The disk is full" in refused.err
    assert listed.code == 0 and "go on when you can" in listed.out
    assert done.code == 0, done.err
    assert "All is saved." in done.out
    assert "the tasks go on" in done.err
    assert asked == 2
    assert (workspace / "made.txt").read_text() == "once\n"


async def test_112_while_another_program_holds_the_database_a_task_waits_and_goes_on_by_itself(
    own_errand: Errand, workspace: Path
) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(COMMAND,), gate=gate), Reply(text="All is saved.")]
    async with ModelServer(replies=replies) as server:
        task = await own_errand.start("run", *MODEL, server.url, "go on when you can")
        await server.request(0)
        with closing(sqlite3.connect(own_errand.home / "errand.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            gate.set()
            said = await said_on_stderr(task)
            assert not (workspace / "made.txt").exists()
            other.execute("ROLLBACK")
        done = await rest(task)
    assert "Another program holds the database" in said
    assert done.code == 0, done.err
    assert (workspace / "made.txt").read_text() == "once\n"


async def test_113_a_disk_that_refuses_to_write_is_waited_for_and_the_task_goes_on(
    own_errand: Errand, workspace: Path
) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(COMMAND,), gate=gate), Reply(text="All is saved.")]
    async with ModelServer(replies=replies) as server:
        task = await own_errand.start("run", *MODEL, server.url, "go on when you can")
        await server.request(0)
        engine = own_errand.engine_pid()
        _, most = resource.prlimit(engine, resource.RLIMIT_FSIZE)
        resource.prlimit(engine, resource.RLIMIT_FSIZE, (0, most))
        gate.set()
        said = await said_on_stderr(task)
        resource.prlimit(engine, resource.RLIMIT_FSIZE, (most, most))
        done = await rest(task)
    assert "The disk refuses to write" in said
    assert done.code == 0, done.err
    assert (workspace / "made.txt").read_text() == "once\n"


async def said_on_stderr(task: asyncio.subprocess.Process) -> str:
    """The first line that the task's command writes there."""
    assert task.stderr is not None
    async with asyncio.timeout(15):
        return (await task.stderr.readline()).decode()
