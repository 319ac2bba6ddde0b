"""How many processes a task may have, and that those of a Python session end with the tasks that used it."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.context import ToolContext
from errand.engine.tools.processes.termination import ProcessSweep
from errand.engine.tools.python.session import PythonSession
from errand.engine.tools.results import ToolError
from errand.engine.tools.shell.background import BackgroundCommands
from tests.engine.sandbox.conftest import sandboxed
from tests.support.limits import WAIT_LIMIT_S
from tests.support.loop_parts import make_tool_context, run, task_of, text_of, tool_of
from tests.support.processes import running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are counted through /proc")

__all__ = ("sandboxed",)

_LIMIT, _STARTED = 8, 20
_REMARK = "ended, the youngest first: at most 8 may run at once"
_FORKS = (
    "import subprocess\nfor _ in range({count}):\n    subprocess.Popen(['bash', '-c', 'exec -a {marker} sleep 60'])\n"
)


@pytest.fixture(params=["bare", "bubblewrap"])
async def limited(
    request: pytest.FixtureRequest, tmp_path: Path, sandboxed: ToolContext
) -> AsyncGenerator[ToolContext]:
    """A task that may have eight processes."""
    context = sandboxed if request.param == "bubblewrap" else make_tool_context(tmp_path / "bare")
    async with task_of(with_limit(context, context.task_id)) as task:
        yield task
    await context.sessions.close(PythonSession)
    await context.sessions.close(BackgroundCommands)


def with_limit(context: ToolContext, task_id: str) -> ToolContext:
    return replace(context, task_id=task_id, processes=ProcessSweep(task_id, max_processes=_LIMIT))


def starts(marker: str) -> str:
    """A line that starts more processes than the limit, none of which lasts beyond a minute."""
    return f"for n in $(seq {_STARTED}); do (exec -a {marker} sleep 60) >/dev/null 2>&1 & done"


async def test_the_youngest_of_a_running_command_are_ended(limited: ToolContext) -> None:
    marker = uuid4().hex
    line = (
        f"sleep 60.25 & echo $! > oldest; {starts(marker)}; until [ -e go ]; do sleep 0.02; done; kill -0 %1 && echo up"
    )
    command = asyncio.create_task(run(tool_of(limited, "shell"), {"command": line}))
    await until(lambda: (limited.workspace / "oldest").exists() and 0 < len(running(marker)) <= _LIMIT)
    (limited.workspace / "go").touch()
    printed = text_of(await command)
    assert _REMARK in printed and "max_processes" in printed
    assert printed.startswith("up")


async def test_those_that_a_command_leaves_are_ended(limited: ToolContext) -> None:
    marker = uuid4().hex
    printed = text_of(await run(tool_of(limited, "shell"), {"command": starts(marker)}))
    assert _REMARK in printed
    await until(lambda: len(running(marker)) <= _LIMIT)
    await run(tool_of(limited, "shell"), {"command": "true"})  # says what was ended after the first result
    await limited.processes.end()
    assert _REMARK not in text_of(await run(tool_of(limited, "shell"), {"command": "true"}))


async def test_what_code_forks_is_ended_and_the_session_goes_on(limited: ToolContext) -> None:
    marker = uuid4().hex
    code = "a = 5\n" + _FORKS.format(marker=marker, count=_STARTED)
    printed = text_of(await run(tool_of(limited, "python"), {"code": code}))
    # Processes are counted now and then, and what was ended after a result is said with the next.
    async with asyncio.timeout(WAIT_LIMIT_S):
        while _REMARK not in printed:
            printed = text_of(await run(tool_of(limited, "python"), {"code": "b = 6"}))
    await until(lambda: len(running(marker)) <= _LIMIT)
    await run(tool_of(limited, "python"), {"code": "b = 6"})
    assert text_of(await run(tool_of(limited, "python"), {"code": "a"})) == "5"


async def test_a_background_command_has_the_limit(limited: ToolContext) -> None:
    marker = uuid4().hex
    line = f"{starts(marker)}; wait"
    printed = text_of(await run(tool_of(limited, "shell"), {"command": line, "background": True}))
    async with asyncio.timeout(WAIT_LIMIT_S):
        while _REMARK not in printed:
            printed = text_of(await run(tool_of(limited, "shell"), {"action": "output", "id": "1", "wait_secs": 1}))
    assert "of background commands" in printed
    await until(lambda: len(running(marker)) <= _LIMIT)


async def test_a_few_processes_are_left_alone(limited: ToolContext) -> None:
    printed = text_of(await run(tool_of(limited, "shell"), {"command": "sleep 60 & sleep 60 & true"}))
    assert "may run at once" not in printed


async def test_what_code_started_ends_with_the_task_and_its_variables_stay(limited: ToolContext) -> None:
    marker = uuid4().hex
    python = tool_of(limited, "python")
    await run(python, {"code": "a = 5\n" + _FORKS.format(marker=marker, count=3)})
    await until(lambda: len(running(marker)) == 3)
    ended = await limited.processes.end()
    assert running(marker) == [] and len(ended) == 3
    assert text_of(await run(tool_of(with_limit(limited, "task_2"), "python"), {"code": "a"})) == "5"


@pytest.mark.parametrize("hide", ["os.setsid()", "os.fork() and os._exit(0)", "os.execve('/bin/sleep', [m, '60'], {})"])
async def test_no_trick_takes_code_beyond_the_task(limited: ToolContext, hide: str) -> None:
    marker = uuid4().hex
    code = (
        f"import os, time\nm = {marker!r}\nif os.fork() == 0:\n    {hide}\n"
        "    os.execve('/bin/sleep', [m, '60'], dict(os.environ))\n"
    )
    await run(tool_of(limited, "python"), {"code": code})
    await until(lambda: len(running(marker)) == 1)
    await limited.processes.end()
    assert running(marker) == []


async def test_what_code_started_ends_with_the_last_task_that_used_the_session(limited: ToolContext) -> None:
    marker, other = uuid4().hex, with_limit(limited, "task_2")
    await run(tool_of(limited, "python"), {"code": _FORKS.format(marker=marker, count=1)})
    await run(tool_of(other, "python"), {"code": "1"})
    await until(lambda: len(running(marker)) == 1)
    await limited.processes.end()
    assert len(running(marker)) == 1
    await other.processes.end()
    assert running(marker) == []


async def test_a_process_that_ended_by_itself_is_not_named(limited: ToolContext) -> None:
    """Searches meet processes that are ending, and have no name any more."""
    for _ in range(5):
        with pytest.raises(ToolError) as raised:
            await run(
                tool_of(limited, "shell"),
                {"command": "while :; do /bin/true; done", "timeout_secs": 0.1},
                CancelSignal(),
            )
        assert "process (pid" not in str(raised.value)
