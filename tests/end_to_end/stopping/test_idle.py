"""Idle processes do not wake the CPU."""

import asyncio
import sys
from pathlib import Path

import pytest

from errand.client.connection import Connection
from errand.client.launch import read_endpoint
from errand.protocol.tasks.methods import TASK_START, TASK_STOP, TaskIdParams, TaskStartParams
from errand.system.paths import Paths
from tests.support.command_line import Errand
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, Reply

_LOOK_S = 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts how often a thread went to sleep")
async def test_an_engine_whose_task_waits_for_a_person_does_not_wake(own_errand: Errand, workspace: Path) -> None:
    await own_errand.run("tasks")
    connection = Connection(lambda: read_endpoint(Paths(own_errand.home)), "test")
    await connection.open()
    try:
        async with ModelServer(replies=[Reply(calls=(Call("shell", {"command": "touch it"}),))]) as server:
            params = TaskStartParams(
                prompt="go",
                model="openai_compatible/test-model",
                api_base=server.url,
                api_key="none",
                workspace=str(workspace),
                approve="ask",
            )
            task = await connection.call(TASK_START, params)
            async with asyncio.timeout(WAIT_LIMIT_S):
                # At a hundred wake-ups per second no two samples are equal.
                while (before := _sleeps(own_errand.engine_pid())) != await _sleeps_later(own_errand.engine_pid()):
                    assert before
            assert (await own_errand.task("waiting_user")).id == task.task.id
            await connection.call(TASK_STOP, TaskIdParams(task_id=task.task.id))
    finally:
        await connection.close()


async def _sleeps_later(pid: int) -> int:
    await asyncio.sleep(_LOOK_S)
    return _sleeps(pid)


def _sleeps(pid: int) -> int:
    """The number of times the threads of a process went to sleep."""
    lines = [
        line
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for line in (thread / "status").read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches")
    ]
    return sum(int(line.split()[1]) for line in lines)
