"""Behaviours 121 to 129: the engine shuts down orderly and in time, and a newer one continues its tasks."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

import errand
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from tests.support.command_line import Errand, rest
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import is_alive, running, until

MODEL = ("--model", "openai_compatible/test-model", "--approve", "all", "--api-base")


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_an_engine_that_is_told_to_go_ends_a_stubborn_tool_and_leaves(
    own_errand: Errand, name: signal.Signals
) -> None:
    marker = f"3{os.getpid()}{name.value}"
    command = Call("shell", {"command": f"trap '' TERM INT HUP; sleep {marker}"})
    async with ModelServer(replies=[Reply(calls=(command,)), Reply(text="Done.")]) as server:
        task = await own_errand.start("run", *MODEL, server.url, "sleep")
        await until(lambda: bool(running(marker)))
        engine = own_errand.engine_pid()
        os.kill(engine, name)
        await until(lambda: not is_alive(engine))
        done = await rest(task)
    assert running(marker) == []
    assert done.code == 1
    await restarted(own_errand)
    assert await own_errand.task("interrupted")


async def test_a_step_that_is_soon_done_is_done_and_recorded_before_the_engine_leaves(
    own_errand: Errand, workspace: Path
) -> None:
    command = Call("shell", {"command": "touch began; sleep 0.5; echo finished | tee ended"})
    async with ModelServer(replies=[Reply(calls=(command,)), Reply(text="Done.")]) as server:
        task = await own_errand.start("run", *MODEL, server.url, "work")
        await until((workspace / "began").exists)
        engine = own_errand.engine_pid()
        os.kill(engine, signal.SIGTERM)
        await until(lambda: not is_alive(engine))
        await rest(task)
        assert (workspace / "ended").read_text() == "finished\n"
        (workspace / "ended").unlink()
        await restarted(own_errand)
        interrupted = await own_errand.task("interrupted")
        resumed = await own_errand.run("resume", interrupted.id)
        message = str(server.requests[1].messages[-1])
    assert resumed.code == 0, resumed.err
    assert "finished" in message
    assert not (workspace / "ended").exists()


async def test_a_second_signal_is_obeyed_at_once(own_errand: Errand) -> None:
    marker = f"4{os.getpid()}"
    command = Call("shell", {"command": f"trap '' TERM; sleep {marker}"})
    async with ModelServer(replies=[Reply(calls=(command,))]) as server:
        task = await own_errand.start("run", *MODEL, server.url, "sleep")
        await until(lambda: bool(running(marker)))
        engine = own_errand.engine_pid()
        os.kill(engine, signal.SIGTERM)
        os.kill(engine, signal.SIGINT)
        await until(lambda: not is_alive(engine))
        await until(lambda: not running(marker))
        task.kill()
        await rest(task)
    log = "".join(file.read_text() for file in Paths(own_errand.home).logs.iterdir())
    assert "leaving before all is ended in order" in log


async def test_a_newer_client_has_an_older_engine_hand_its_tasks_over_and_they_go_on_by_themselves(
    own_errand: Errand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = tmp_path / "newer"
    metadata = newer / "errand_desktop-999.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: errand-desktop\nVersion: 999.0\n")
    gate = asyncio.Event()
    replies = [Reply(text="Cut.", gate=gate), Reply(text="Done by the new one.")]
    async with ModelServer(replies=replies) as server:
        task = await own_errand.start("run", *MODEL, server.url, "work")
        await server.request(0)
        old = own_errand.engine_pid()
        monkeypatch.setattr(sys, "path", [str(newer), *sys.path])
        os.chmod(errand.__file__, os.stat(errand.__file__).st_mode)  # as if these files had just been installed
        task.kill()
        await rest(task)
        connection = await connect(Paths(own_errand.home), "test")
        try:
            assert own_errand.engine_pid() != old
            assert not is_alive(old)
            done = await ended(connection)
        finally:
            await connection.close()
        gate.set()
    assert (done.activity.status, done.outcome.summary) == ("completed", "Done by the new one.")


async def restarted(errand: Errand) -> None:
    assert (await errand.run("tasks")).code == 0


async def ended(connection: Connection) -> Task:
    async with asyncio.timeout(WAIT_LIMIT_S):
        while True:
            (task,) = (await connection.call(TASK_LIST, TaskListParams(limit=1))).tasks
            if task.outcome.ended_at is not None:
                return task
            await asyncio.sleep(0.02)  # a client that asks without a pause is refused
