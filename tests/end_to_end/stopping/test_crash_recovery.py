"""Behaviours 100 to 102: after an engine was killed, no tool process remains, and its task can be resumed."""

import asyncio
import re
import sys
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from errand.engine.core.settings import Settings
from tests.support.command_line import Errand, rest
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import PYTHON, file_appears, is_alive, running, until
from tests.support.sandboxes import SANDBOXES, set_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the watchdog reads /proc")
MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def hidden(marker: str) -> Reply:
    """A command and a child of it that leaves its session and clears its environment; both contain the marker."""
    child = f"import os,signal,time; os.setsid(); signal.signal(15, 1); open('ready','w'); time.sleep(60) # {marker}"
    return Reply(calls=(Call("shell", {"command": f'env -i {PYTHON} -c "{child}" & sleep 60 # {marker}'}),))


async def test_a_killed_engine_leaves_no_process_of_a_tool_behind(own_errand: Errand, workspace: Path) -> None:
    marker = uuid4().hex
    async with ModelServer(replies=[hidden(marker)]) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "wait")
        await file_appears(workspace / "ready")
        assert len(running(marker)) >= 2
        own_errand.kill_engine()
        await until(lambda: not running(marker))
        async with asyncio.timeout(WAIT_LIMIT_S):  # a possibly running engine is searched for longer
            left = await rest(process)
    assert left.code != 0
    assert "ended unexpectedly" in left.err
    assert re.search("Continue the task: errand resume [0-9a-f]+", left.err)


async def test_a_killed_engine_leaves_no_background_command_behind(own_errand: Errand, workspace: Path) -> None:
    marker = uuid4().hex
    line = f"bash -c 'touch ready; setsid sleep 60 & sleep 60 # {marker}'"
    background = Reply(calls=(Call("shell", {"command": line, "background": True}),))
    async with ModelServer(replies=[background, Reply(text="It runs.")]) as server:
        await own_errand.run("run", "--approve", "all", *MODEL, server.url, "start it")
        await file_appears(workspace / "ready")
        assert running(marker)
        assert "running for" in (await own_errand.run("background")).out
        own_errand.kill_engine()
        await until(lambda: not running(marker))


@pytest.mark.usefixtures("bare_commands")
async def test_what_an_engine_and_its_watchdog_left_is_ended_by_the_next_engine(
    own_errand: Errand, workspace: Path
) -> None:
    command = Reply(calls=(Call("shell", {"command": "echo $$ > ready; exec sleep 60"}),))
    async with ModelServer(replies=[command]) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "wait")
        await until(lambda: (workspace / "ready").exists() and bool((workspace / "ready").read_text()), 30)
        engine = psutil.Process(own_errand.engine_pid())
        engine.suspend()  # it would start another watchdog
        for child in engine.children():
            if "watchdog_child" in " ".join(child.cmdline()):
                child.kill()
        process.kill()
        own_errand.kill_engine()
        await rest(process)
        pid = int((workspace / "ready").read_text())
        assert is_alive(pid)
        await own_errand.run("tasks")
        await until(lambda: not is_alive(pid))


@pytest.mark.parametrize("is_on", SANDBOXES)
async def test_what_conversations_kept_is_ended_by_the_next_engine_if_the_watchdog_is_gone_too(
    own_errand: Errand, workspace: Path, is_on: bool
) -> None:
    marker = uuid4().hex
    own_errand.home.mkdir(mode=0o700, exist_ok=True)
    set_sandbox(Settings(own_errand.home / "settings.json"), is_on)
    background = f"bash -c 'touch ready; setsid sleep 60 & sleep 60 # {marker}'"
    session = (
        f"import subprocess\nsubprocess.Popen(['bash', '-c', 'sleep 60; true # {marker}'])\nopen('ran', 'w').close()"
    )
    replies = [
        Reply(calls=(Call("shell", {"command": background, "background": True}),)),
        Reply(calls=(Call("python", {"code": session}),)),
        Reply(text="They run.", stall_after=0),  # what Python started ends with the task
    ]
    async with ModelServer(replies=replies) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "start them")
        await file_appears(workspace / "ready")
        await file_appears(workspace / "ran")
        assert len(running(marker)) >= 2
        engine = psutil.Process(own_errand.engine_pid())
        engine.suspend()  # it would start another watchdog
        for child in engine.children():
            if "watchdog_child" in " ".join(child.cmdline()):
                child.kill()
        process.kill()
        own_errand.kill_engine()
        await rest(process)
    await own_errand.run("tasks")
    await until(lambda: not running(marker))


async def test_a_watchdog_that_was_ended_is_replaced_before_the_next_command(
    own_errand: Errand, workspace: Path
) -> None:
    marker = uuid4().hex
    first = Reply(calls=(Call("shell", {"command": "touch first; until [ -e go ]; do sleep 0.01; done"}),))
    async with ModelServer(replies=[first, hidden(marker)]) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "wait")
        await file_appears(workspace / "first")
        children = psutil.Process(own_errand.engine_pid()).children()
        (watchdog,) = [child for child in children if "watchdog_child" in " ".join(child.cmdline())]
        watchdog.kill()
        (workspace / "go").touch()
        await file_appears(workspace / "ready")
        process.kill()
        own_errand.kill_engine()
        await until(lambda: not running(marker))
        await rest(process)


async def test_an_engine_that_ends_in_order_takes_its_watchdog_along(own_errand: Errand) -> None:
    done = Reply(calls=(Call("shell", {"command": "true"}),))
    async with ModelServer(replies=[done, Reply(text="Done.")]) as server:
        await own_errand.run("run", "--approve", "all", *MODEL, server.url, "go")
        (watchdog,) = psutil.Process(own_errand.engine_pid()).children()
        await own_errand.close()
    assert not watchdog.is_running()


async def test_where_nobody_can_answer_a_call_of_unknown_outcome_is_not_run_again(
    own_errand: Errand, workspace: Path
) -> None:
    command = Reply(calls=(Call("shell", {"command": "echo once >> ready; sleep 60"}),))
    async with ModelServer(replies=[command, Reply(text="Done.")]) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "wait")
        await file_appears(workspace / "ready")
        own_errand.kill_engine()
        process.kill()
        await rest(process)
        (task,) = (await own_errand.run("tasks", "--json")).lines
        done = await own_errand.run("resume", str(task["id"]))
    assert done.code == 0, done.err
    assert "the outcome of `echo once >> ready; sleep 60` is unknown; it is not run again" in done.err
    assert "outcome unknown" in done.out
    assert (workspace / "ready").read_text() == "once\n"
