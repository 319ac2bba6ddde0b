"""Behaviours 10 to 15: stopping a task, by signal, by command, and by losing the reader or the engine."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.command_line import Errand, rest
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import file_appears, running, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def stubborn(marker: str) -> Reply:
    """A command with a child in a separate session that ignores SIGTERM; both contain the marker."""
    child = f"import os,signal,time; os.setsid(); signal.signal(15, 1); open('ready','w'); time.sleep(60) # {marker}"
    return Reply(calls=(Call("shell", {"command": f'python3 -c "{child}" & sleep 60 # {marker}'}),))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_the_task_and_every_process_it_started(
    errand: Errand, workspace: Path, number: signal.Signals
) -> None:
    marker = uuid4().hex
    async with ModelServer(replies=[stubborn(marker)]) as server:
        process = await errand.start("run", "--approve", "all", *MODEL, server.url, "wait")
        await file_appears(workspace / "ready")
        process.send_signal(number)
        done = await rest(process)
    assert done.code == 130, done.err
    assert "errand: stopping" in done.err
    assert "task stopped" in done.out
    assert running(marker) == []


async def test_a_second_ctrl_c_leaves_at_once_and_the_engine_stops_the_task_anyway(
    errand: Errand, workspace: Path
) -> None:
    marker = uuid4().hex
    async with ModelServer(replies=[stubborn(marker)]) as server:
        process = await errand.start("run", "--approve", "all", *MODEL, server.url, "wait")
        await file_appears(workspace / "ready")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        done = await rest(process)
        await until(lambda: not running(marker))
    assert done.code == 130
    assert "Traceback" not in done.err


async def test_a_stop_while_the_model_answers_closes_its_request(errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="A long answer", stall_after=2)]) as server:
        process = await errand.start("run", *MODEL, server.url, "wait")
        request = await server.request(0)
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(WAIT_LIMIT_S):
            await request.gone.wait()
        done = await rest(process)
    assert done.code == 130


async def test_a_task_is_stopped_by_a_part_of_its_id_from_another_terminal(errand: Errand, workspace: Path) -> None:
    marker = uuid4().hex
    async with ModelServer(replies=[stubborn(marker)]) as server:
        process = await errand.start("run", "--json", "--approve", "all", *MODEL, server.url, "wait")
        await file_appears(workspace / "ready")
        task_id = (await errand.task("tool_executing")).id
        nothing = await errand.run("stop", "no-such-task")
        stopped = await errand.run("stop", task_id[-8:])
        done = await rest(process)
    assert (nothing.code, "No task has the id" in nothing.err) == (2, True)
    assert stopped.code == 0, stopped.err
    assert "task stopped" in stopped.out
    assert (done.code, done.lines[-1]["stopReason"]) == (130, "manual_stop")
    assert running(marker) == []


async def test_a_reader_that_leaves_is_no_crash_and_the_task_goes_on(errand: Errand) -> None:
    gate = asyncio.Event()
    async with ModelServer(replies=[Reply(text="two", gate=gate)]) as server:
        reading, writing = os.pipe()
        process = await errand.start("run", *MODEL, server.url, "go on", out=writing)
        os.close(writing)
        await server.request(0)
        os.close(reading)
        gate.set()
        done = await rest(process)
        completed = await errand.task("completed")
    assert "Traceback" not in done.err
    assert "Exception" not in done.err
    assert completed.request.prompt == "go on"


async def test_a_killed_engine_is_said_and_its_task_is_kept_as_interrupted(own_errand: Errand) -> None:
    async with ModelServer(replies=[Reply(text="never", stall_after=1)]) as server:
        process = await own_errand.start("run", *MODEL, server.url, "wait")
        await server.request(0)
        own_errand.kill_engine()
        listed = await own_errand.run("tasks", "--json")
        done = await rest(process)
    assert [task["status"] for task in listed.lines] == ["interrupted"]
    assert done.code == 1
    # From the client if it gives up before `errand tasks` has started another engine, else from that engine.
    assert "engine" in done.err.casefold()
    assert "Traceback" not in done.err
