"""Behaviours 60 and 61: a killed engine leaves no process of a tool behind, though no other engine is started."""

import sys
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from tests.support.errand import Errand, rest
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import file_appears, running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the watchdog reads /proc")
MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def hidden(marker: str) -> Reply:
    """A command and a child of it that leaves its session and clears its environment; both carry the marker."""
    child = f"import os,signal,time; os.setsid(); signal.signal(15, 1); open('ready','w'); time.sleep(60) # {marker}"
    return Reply(calls=(Call("shell", {"command": f'env -i {sys.executable} -c "{child}" & sleep 60 # {marker}'}),))


async def test_60_a_killed_engine_leaves_no_process_of_a_tool_behind(own_errand: Errand, workspace: Path) -> None:
    marker = uuid4().hex
    async with ModelServer(replies=[hidden(marker)]) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "wait")
        await file_appears(workspace / "ready")
        assert len(running(marker)) >= 2
        own_errand.kill_engine()
        await until(lambda: not running(marker))
        process.kill()  # it would look for its engine for a while
        await rest(process)


async def test_61_an_engine_that_ends_in_order_takes_its_watchdog_along(own_errand: Errand) -> None:
    done = Reply(calls=(Call("shell", {"command": "true"}),))
    async with ModelServer(replies=[done, Reply(text="Done.")]) as server:
        await own_errand.run("run", "--approve", "all", *MODEL, server.url, "go")
        (watchdog,) = psutil.Process(own_errand.engine_pid()).children()
        await own_errand.close()
    assert not watchdog.is_running()
