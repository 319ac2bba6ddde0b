"""Processes that try to outlive their task, with one trick or several: none remains."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.results import ToolError
from tests.attacks.campaign import Campaign
from tests.support.command_line import Errand, rest
from tests.support.loop_parts import make_tool_context, run, tool_of
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import PYTHON, running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans can be adopted on Linux only")

# Each is Python; `rest()` sleeps for a minute under the marker, `become()` does so in a new program.
_BEGIN = """
import ctypes, os, resource, signal, sys, time
marker = sys.argv[1]
def rest():
    open(f"up-{os.getpid()}", "w").close()
    time.sleep(60)
def become():
    open(f"up-{os.getpid()}", "w").close()
    os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", marker], {})
def lower(): resource.setrlimit(resource.RLIMIT_MSGQUEUE, (1000, 1000))
def leave():
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
"""
TRICKS = {
    "an empty environment": "become()",
    "a session of its own": "os.setsid() if os.fork() == 0 else None; rest()",
    "a double fork": "leave(); rest()",
    "lower limits": "lower(); rest()",
    "lower limits and an empty environment": "lower(); become()",
    "lower limits, an empty environment and a double fork": "lower(); leave(); become()",
    "a double fork first": "leave(); lower(); become()",
    "no files and no processes allowed": "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); lower(); time.sleep(60)",
    "another name": "ctypes.CDLL(None).prctl(15, b'kworker/0:1'); leave(); lower(); rest()",
    "deaf to signals": "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 15)]; leave(); lower(); rest()",
    "a stop of its own": "leave(); lower(); open(f'up-{os.getpid()}', 'w').close(); os.kill(os.getpid(), 19); rest()",
    "many children": "leave(); lower(); [os.fork() for _ in range(4)]; os.getpgrp() == os.getpid() or os.setsid(); "
    "rest()",
}


def _command(folder: Path, trick: str, marker: str, after: str) -> str:
    script = folder / "trick.py"
    script.write_text(f"{_BEGIN}{TRICKS[trick]}\n")
    return f"{PYTHON} trick.py {marker} & {after}"


def _is_up(folder: Path, marker: str) -> Callable[[], bool]:
    return lambda: bool(running(marker)) and (any(folder.glob("up-*")) or "NOFILE" in (folder / "trick.py").read_text())


@pytest.mark.parametrize("trick", TRICKS)
async def test_a_stop_leaves_nothing_of_a_process_with(tmp_path: Path, trick: str, campaign: Campaign) -> None:
    context, marker, cancel = make_tool_context(tmp_path), uuid4().hex, CancelSignal()
    command = _command(context.workspace, trick, marker, "sleep 60")
    running_tool = asyncio.create_task(run(tool_of(context, "shell"), {"command": command}, cancel))
    await until(_is_up(context.workspace, marker))
    cancel.set()
    with pytest.raises(ToolError):
        await running_tool
    assert running(marker) == []
    campaign.count("runaway processes ended by a stop")
    await context.processes.end()


@pytest.mark.parametrize("trick", TRICKS)
async def test_the_end_of_a_task_leaves_nothing_of_a_process_with(tmp_path: Path, trick: str) -> None:
    context, marker = make_tool_context(tmp_path), uuid4().hex
    command = _command(context.workspace, trick, marker, "sleep 0.2")
    await run(tool_of(context, "shell"), {"command": command})
    await until(_is_up(context.workspace, marker))
    await context.processes.end()
    assert running(marker) == []


async def test_what_one_task_hides_is_ended_with_the_last_task_that_may_have_started_it(tmp_path: Path) -> None:
    hidden, other, marker = make_tool_context(tmp_path, "task_h"), make_tool_context(tmp_path, "task_o"), uuid4().hex
    await run(tool_of(other, "shell"), {"command": "true"})
    command = _command(hidden.workspace, "a double fork first", marker, "true")
    await run(tool_of(hidden, "shell"), {"command": command})
    await until(_is_up(hidden.workspace, marker))
    await hidden.processes.end()
    await other.processes.end()
    assert running(marker) == []


async def test_a_hundred_processes_that_fork_on_are_ended(tmp_path: Path) -> None:
    context, marker, cancel = make_tool_context(tmp_path), uuid4().hex, CancelSignal()
    bomb = f"{_BEGIN}\nfor _ in range(7): os.fork(); os.getpgrp() == os.getpid() or os.setsid()\nlower(); rest()\n"
    (context.workspace / "bomb.py").write_text(bomb)
    command = f"{PYTHON} bomb.py {marker} & sleep 60"
    running_tool = asyncio.create_task(run(tool_of(context, "shell"), {"command": command}, cancel))
    await until(lambda: len(running(marker)) > 20)
    cancel.set()
    with pytest.raises(ToolError):
        await running_tool
    assert running(marker) == []
    await context.processes.end()


async def test_a_process_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    context, marker = make_tool_context(tmp_path), uuid4().hex
    program = [sys.executable, "-c", "import time; time.sleep(60)", marker]
    stranger = await asyncio.create_subprocess_exec(*program, start_new_session=True)
    await run(tool_of(context, "shell"), {"command": "true"})
    await context.processes.end()
    assert running(marker) == [stranger.pid]
    stranger.kill()
    await stranger.wait()


@pytest.mark.parametrize("trick", ["an empty environment", "lower limits and an empty environment"])
async def test_the_watchdog_of_a_killed_engine_leaves_nothing_of_a_process_with(
    own_errand: Errand, workspace: Path, trick: str
) -> None:
    marker = uuid4().hex
    command = _command(workspace, trick, marker, "sleep 60")
    async with ModelServer(replies=[Reply(calls=(Call("shell", {"command": command}),))]) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        process = await own_errand.start("run", "--approve", "all", *model, "go")
        await until(_is_up(workspace, marker))
        os.kill(own_errand.engine_pid(), signal.SIGKILL)
        await until(lambda: not running(marker))
        await rest(process)


# An engine reduced to its processes, killed before its watchdog has read all messages.
_BUSY_ENGINE = """
import os, signal, sys
from pathlib import Path
import asyncio
from errand.engine.sandbox.launch import Launch
from errand.engine.tools.processes import marks, spawn, watchdog
from errand.engine.tools.processes.process_table import adopted_children
async def main():
    watchdog.start_watchdog()
    launch = Launch([sys.executable, "-c", "import time; time.sleep(60)", sys.argv[1]], Path.cwd(), {})
    start = lambda mark: spawn.start(launch, mark, print, print)
    start(marks.new_mark("task"))
    (dog,) = [child for child in adopted_children() if watchdog.is_watchdog(child)]
    os.kill(dog, signal.SIGSTOP)
    for number in range(3000):
        watchdog.watch_mark(marks.new_mark("task_" + "x" * 90))
    os.kill(dog, signal.SIGCONT)
    for number in range(200):
        watchdog.watch_mark(marks.new_mark("task_" + "x" * 90))
        await asyncio.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_a_watchdog_that_was_told_of_more_calls_than_it_read_ends_their_processes(tmp_path: Path) -> None:
    marker = uuid4().hex
    engine = await asyncio.create_subprocess_exec(sys.executable, "-c", _BUSY_ENGINE, marker)
    assert await engine.wait() == -signal.SIGKILL
    await until(lambda: not running(marker))
