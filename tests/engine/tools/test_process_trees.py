import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.context import ToolContext
from errand.engine.tools.processes import marks, termination
from errand.engine.tools.processes.marks import marks_of
from errand.engine.tools.processes.process_table import PortableTable, Search, display_name
from errand.engine.tools.processes.termination import reap_orphans
from errand.engine.tools.results import ToolError, ToolResult
from tests.support import processes
from tests.support.loop_parts import is_running, make_tool_context, run, task_of, text_of, tool_of, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans can be adopted on Linux only")

# Forks twice, leaves its session, closes its files, clears its environment, like a daemon.
DAEMON = """
import os, sys, signal
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for name in range(3): os.close(name)
with open("daemon.new", "w") as file: file.write(str(os.getpid()))
os.rename("daemon.new", "daemon.pid")
os.execve("/bin/sleep", ["sleep", "70"], {})
"""

STARTERS = {
    "a plain child": "sleep 70 & echo $! > pid; sleep 71",
    "a child in its own session": "setsid sleep 70 & echo $! > pid; sleep 71",
    "a child with nohup": "nohup sleep 70 >/dev/null 2>&1 & echo $! > pid; sleep 71",
    "a child that ignores SIGTERM": "(trap '' TERM; echo $BASHPID > pid; while :; do sleep 0.01; done) & sleep 71",
    "a stopped child": "sleep 70 & echo $! > pid; kill -STOP $!; sleep 71",
    "an orphan": "(sleep 70 & echo $! > pid); sleep 71",
    "an orphan with a clean environment": "(setsid env -i sh -c 'echo $$ > pid; exec sleep 70' &); sleep 71",
}


def pid_in(path: Path) -> int:
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") or (text and path.name == "daemon.pid") else 0


async def stopped(context: ToolContext, command: str, pid_file: str = "pid") -> tuple[int, ToolError]:
    """Run the command and cancel it once the child has reported its pid; returns that pid and the tool's error."""
    cancel, file = CancelSignal(), context.workspace / pid_file
    running = asyncio.create_task(run(tool_of(context, "shell"), {"command": command}, cancel))
    await until(lambda: pid_in(file) > 0)
    cancel.set()
    with pytest.raises(ToolError) as caught:
        await running
    return pid_in(file), caught.value


@pytest.mark.parametrize("command", STARTERS.values(), ids=STARTERS.keys())
async def test_stop_ends_processes_of(tmp_path: Path, command: str) -> None:
    pid, error = await stopped(make_tool_context(tmp_path), command)
    assert not is_running(pid)
    assert f"(pid {pid})" in str(error)


async def test_a_stop_ends_a_daemon(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    (context.workspace / "daemon.py").write_text(DAEMON)
    pid, error = await stopped(context, f"{sys.executable} daemon.py; sleep 71", "daemon.pid")
    assert not is_running(pid)
    assert f"sleep 70 (pid {pid})" in str(error) or f"(pid {pid})" in str(error)


async def test_end_of_a_task_ends_leftover_processes_of_its_commands(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    result = await run(tool_of(context, "shell"), {"command": "sleep 72 & setsid sleep 73 & (sleep 74 &) ; true"})
    pids = [int(pid) for pid in re.findall(r"pid (\d+)", text_of(result))]
    assert termination.alive(context.task_id) == len(pids) == 3
    counts: list[int] = []
    ended = await termination.ProcessSweep(context.task_id, counts.append).end()
    assert sorted(process.name for process in ended) == ["sleep 72", "sleep 73", "sleep 74"]
    assert not any(map(is_running, pids))
    assert (counts[0], counts[-1]) == (3, 0)
    assert marks_of(context.task_id) == ()


async def test_ending_one_task_leaves_the_others_alone(tmp_path: Path) -> None:
    async with (
        task_of(make_tool_context(tmp_path, "task_a")) as context_a,
        task_of(make_tool_context(tmp_path, "task_b")) as context_b,
    ):
        for context in (context_a, context_b):
            await run(tool_of(context, "shell"), {"command": "setsid sleep 75 & (env -i sleep 76 &)"})
        await context_a.processes.end()
        assert (termination.alive(context_a.task_id), termination.alive(context_b.task_id)) == (0, 2)


async def test_a_timeout_ends_its_own_call_only(tmp_path: Path) -> None:
    async with task_of(make_tool_context(tmp_path)) as context:
        shell = tool_of(context, "shell")
        await run(shell, {"command": "sleep 77 &"})
        with pytest.raises(ToolError, match="Timed out"):
            await run(shell, {"command": "sleep 78", "timeout_secs": 0.1})
        assert termination.alive(context.task_id) == 1


async def test_a_call_that_ends_with_its_task_reports_its_own_processes_only(tmp_path: Path) -> None:
    context, cancel = make_tool_context(tmp_path), CancelSignal()
    shell = tool_of(context, "shell")
    await run(shell, {"command": "sleep 81 &"})
    running = asyncio.create_task(run(shell, {"command": "sleep 8217 & wait"}, cancel))
    await until(lambda: processes.running("sleep\08217") != [])  # not the copy of bash that becomes it
    stopping = asyncio.create_task(context.processes.end())
    await asyncio.sleep(0)
    cancel.set()
    with pytest.raises(ToolError) as caught:
        await running
    assert "sleep 8217 (pid" in str(caught.value) and "sleep 81" not in str(caught.value)
    names = [process.name for process in await stopping]
    assert names == [process.name for process in context.processes.ended.values()]
    assert {"sleep 81", "sleep 8217"} <= set(names) and len(names) == 3


async def test_a_call_ends_its_processes_itself_if_the_end_of_its_task_is_cancelled(tmp_path: Path) -> None:
    context, cancel = make_tool_context(tmp_path), CancelSignal()
    running = asyncio.create_task(
        run(tool_of(context, "shell"), {"command": "trap '' TERM; echo $$ > pid; sleep 83; sleep 84"}, cancel)
    )
    await until(lambda: pid_in(context.workspace / "pid") > 0)
    stopping = asyncio.create_task(context.processes.end())
    await asyncio.sleep(0)
    cancel.set()
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(ToolError):
        await running
    assert stopping.cancelled() and context.processes.ended == {}
    assert not is_running(pid_in(context.workspace / "pid"))


async def test_a_task_that_ran_nothing_ends_at_once() -> None:
    assert await termination.ProcessSweep("unknown").end() == ()
    assert termination.alive("unknown") == 0


async def test_an_ended_orphan_is_reaped_and_a_child_of_others_is_not(tmp_path: Path) -> None:
    stop = reap_orphans(asyncio.get_running_loop())
    child = await asyncio.create_subprocess_exec("sh", "-c", "exit 7")
    async with task_of(make_tool_context(tmp_path)) as context:
        command = "(setsid sh -c 'echo $$ > pid; exec sleep 0.05' &)"
        await run(tool_of(context, "shell"), {"command": command})
        file = context.workspace / "pid"
        await until(lambda: pid_in(file) > 0)
        await until(lambda: not is_running(pid_in(file)))
    assert await child.wait() == 7
    stop()
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL


async def test_cancelled_asyncio_task_leaves_no_process(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    running = asyncio.create_task(run(tool_of(context, "shell"), {"command": "echo $$ > pid; sleep 79"}))
    await until(lambda: pid_in(context.workspace / "pid") > 0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_running(pid_in(context.workspace / "pid"))


async def test_processes_left_by_a_dead_engine_are_found_by_task() -> None:
    environment = {"ERRAND_TASK": "task_of_dead_engine"}
    left = await asyncio.create_subprocess_exec("/bin/sleep", "80", env=environment, start_new_session=True)
    await until(lambda: bool(Path(f"/proc/{left.pid}/environ").read_bytes()))  # its exec has not finished before
    ended = await termination.end_abandoned(frozenset({"task_of_dead_engine"}))
    assert await left.wait() == -15
    assert [(process.pid, process.name) for process in ended] == [(left.pid, "/bin/sleep 80")]


async def test_processes_left_by_a_dead_engine_are_found_by_its_data_directory(tmp_path: Path) -> None:
    own, other = (marks.name_data_directory(tmp_path / name) for name in ("own", "other"))
    assert own != other and marks.name_data_directory(tmp_path / "own") == own
    name, _, value = own.partition("=")
    left = await asyncio.create_subprocess_exec("/bin/sleep", "80", env={name: value}, start_new_session=True)
    await until(lambda: bool(Path(f"/proc/{left.pid}/environ").read_bytes()))
    assert await termination.end_marked(frozenset({other})) == ()
    assert len(await termination.end_marked(frozenset({own}))) == 1
    assert await left.wait() == -15


async def test_portable_table_finds_the_same_processes_without_proc(tmp_path: Path) -> None:
    async with task_of(make_tool_context(tmp_path)) as context:
        result = await run(tool_of(context, "shell"), {"command": "sleep 81 & setsid sleep 82 & (sleep 83 &)"})
        table = PortableTable()
        pids = [entry.pid for entry in table.find(marks_of(context.task_id), Search())]
        assert sorted(pids) == sorted(int(pid) for pid in re.findall(r"pid (\d+)", text_of(result)))
        assert sorted(table.name(pid) for pid in pids) == ["sleep 81", "sleep 82", "sleep 83"]


async def test_many_commands_at_once_keep_their_outputs_apart(tmp_path: Path) -> None:
    shell = tool_of(make_tool_context(tmp_path), "shell")
    results: list[ToolResult] = await asyncio.gather(
        *(run(shell, {"command": f"echo {number}; sleep 0.01"}) for number in range(40))
    )
    assert [text_of(result) for result in results] == [str(number) for number in range(40)]


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    shell = tool_of(make_tool_context(tmp_path), "shell")
    await run(shell, {"command": "true"})
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        await run(shell, {"command": "seq 1 10000; echo error >&2"})
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_long_command_is_named_by_as_much_of_it_as_fits_a_line() -> None:
    assert display_name(["x" * 120]) == "x" * 120
    assert display_name(["x" * 121]) == "x" * 119 + "…"
