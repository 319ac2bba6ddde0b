"""Processes that fork and exit, so that each is gone before it is signalled: none escapes a stop."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.context import ToolContext
from errand.engine.tools.processes import termination
from errand.engine.tools.results import ToolError
from tests.support.limits import WAIT_LIMIT_S
from tests.support.loop_parts import make_tool_context, run, tool_of, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans can be adopted on Linux only")

_PYTHON = """
import gc, os, resource, signal, time
end = time.monotonic() + 30
signal.signal(signal.SIGTERM, signal.SIG_IGN)
gc.freeze()
open("pid", "w").write(str(os.getpid()))
{begin}
while time.monotonic() < end:
    if os.fork(): os._exit(0)
    {each}
"""
_LEAVE = "os.setsid()"
_LOWER = "resource.setrlimit(resource.RLIMIT_MSGQUEUE, (1000, 1000))"


def _python(begin: str, each: str) -> str:
    """Return a chain that runs as fast as Python can: a process lives for less than a millisecond."""
    return f"cat > chain.py <<'end'\n{_PYTHON.format(begin=begin, each=each)}\nend\n{sys.executable} chain.py &"


# An engine reduced to its processes, killed as soon as the chain forks.
_ENGINE = """
import asyncio, os, signal, sys
from pathlib import Path
from errand.engine.sandbox.launch import Launch
from errand.engine.tools.processes import marks, spawn, watchdog
async def main():
    watchdog.start_watchdog()
    launch = Launch(["bash", "-c", sys.argv[1]], Path.cwd(), os.environ)
    spawn.start(launch, marks.new_mark("task"), print, print)
    while not Path("pid").exists():
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


# Each starts in the background, and ends by itself if the tests are killed.
CHAINS = {
    "a pause each time": "hop() { echo $BASHPID > pid; sleep 0.002; [ $SECONDS -gt 30 ] || (hop &); }; "
    "(trap '' TERM; hop) &",
    "a session of its own each time": "echo '[ $1 = 9999 ] || setsid sh hop.sh $(($1 + 1)) & echo $$ > pid' > hop.sh; "
    "(trap '' TERM; sh hop.sh 1) &",
    "no pause": _python("", "pass"),
    "no pause and a session of its own each time": _python("", _LEAVE),
    "no mark and a session of its own each time": _python(_LOWER, _LEAVE),
    "four at once": _python("os.fork(); os.fork()", _LEAVE),
}


async def _hops(context: ToolContext) -> None:
    file = context.workspace / "pid"
    await until(lambda: file.exists() and file.read_text() != "")


async def _stop(context: ToolContext, chain: str) -> None:
    cancel = CancelSignal()
    running = asyncio.create_task(run(tool_of(context, "shell"), {"command": f"{chain}\nsleep 71"}, cancel))
    await _hops(context)
    cancel.set()
    with pytest.raises(ToolError) as caught:
        await running
    assert "still there" not in str(caught.value)
    assert termination.alive(context.task_id) == 0


@asynccontextmanager
async def _busy(count: int) -> AsyncGenerator[None]:
    """This many processes that use all CPU time they get, until this one ends."""
    program = ("nice", "-n", "1", "sh", "-c", "while kill -0 $PPID; do :; done")
    busy = [await asyncio.create_subprocess_exec(*program) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
async def test_stop_ends_a_fork_chain_with(tmp_path: Path, chain: str) -> None:
    await _stop(make_tool_context(tmp_path), chain)


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
async def test_end_of_a_task_ends_a_fork_chain_with(tmp_path: Path, chain: str) -> None:
    context = make_tool_context(tmp_path)
    await run(tool_of(context, "shell"), {"command": chain})
    await _hops(context)
    ended = await context.processes.end()
    assert ended and not any(process.still_there for process in ended)


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
async def test_on_a_busy_machine_a_stop_ends_a_fork_chain_with(tmp_path: Path, chain: str) -> None:
    async with _busy(4):
        await _stop(make_tool_context(tmp_path), chain)


async def test_fork_chains_of_two_tasks_are_ended_at_once(tmp_path: Path) -> None:
    contexts = [make_tool_context(tmp_path / task_id, task_id) for task_id in ("task_a", "task_b")]
    chains = [CHAINS["a pause each time"], CHAINS["no pause and a session of its own each time"]]
    async with asyncio.TaskGroup() as group:
        for context, chain in zip(contexts, chains, strict=True):
            group.create_task(_stop(context, chain))


async def test_ending_a_fork_chain_does_not_affect_other_calls_of_the_task(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    await run(tool_of(context, "shell"), {"command": "sleep 72 & sleep 73 &"})
    with pytest.raises(ToolError):
        await run(tool_of(context, "shell"), {"command": f"{CHAINS['no pause']}\nsleep 71", "timeout_secs": 0.3})
    assert termination.alive(context.task_id) == 2
    ended = await context.processes.end()
    assert sorted(process.name for process in ended) == ["sleep 72", "sleep 73"]


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
async def test_watchdog_of_a_killed_engine_ends_a_fork_chain_with(tmp_path: Path, chain: str) -> None:
    alive = tmp_path / "alive"  # it ends when no process of the chain has it open
    os.mkfifo(alive)
    engine = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _ENGINE, f"exec 9> alive\n{chain}", cwd=tmp_path
    )
    async with asyncio.timeout(WAIT_LIMIT_S):
        await asyncio.to_thread(alive.read_bytes)
    assert await engine.wait() == -signal.SIGKILL
