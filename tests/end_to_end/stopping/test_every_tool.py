"""A stop ends what every tool has started, in the sandbox and without it, and says what that was."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from errand.engine.tools.registry import TOOLS
from errand.protocol.blocks import NoticeBlock
from errand.protocol.notices import TaskStopped
from errand.text.notice_text import notice_text
from tests.support.command_line import Errand, rest
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import results
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import running, running_programs, until
from tests.support.sandboxes import SANDBOXES, set_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans can be adopted on Linux only")

# A child in its own session, and a grandchild whose parent has ended and whose environment is empty.
_TREE = (
    "{trap} setsid bash -c 'echo >> ready; exec -a {marker}-session sleep 60' & "
    "(setsid env -i bash -c 'cd $0; echo >> ready; exec -a {marker}-orphan sleep 60' $PWD &); "
)
_FOREGROUND = _TREE + "echo >> ready; exec -a {marker}-command sleep 60"
_BACKGROUND = "(" + _TREE + "echo >> ready; exec -a {marker}-command sleep 60) & sleep 0.01"
_NAMES = ("session", "orphan", "command")
TRAPS = {"that die on TERM": "", "that ignore TERM": "trap '' TERM HUP INT;"}
_SLOW = "(?:a|aa)+$"  # takes minutes for 40 letters, in one match that nothing interrupts
_SEARCHING_S = 0.2  # of CPU: nothing else in this process takes as much


@dataclass(frozen=True, slots=True)
class Work:
    """A call that takes long. `names` are the processes that it starts."""

    call: Call
    names: tuple[str, ...] = ()


def works(marker: str, trap: str) -> dict[str, Work]:
    """Return the work for every tool that runs something, by tool and mode."""
    foreground, background = (
        Work(Call("shell", {"command": line.format(marker=marker, trap=trap)}), _NAMES)
        for line in (_FOREGROUND, _BACKGROUND)
    )
    slow = Work(Call("code", {"action": "search", "path": ".", "pattern": _SLOW}))
    line = _FOREGROUND.format(marker=marker, trap=trap)
    python = Work(Call("python", {"code": f"import subprocess\nsubprocess.run(['bash', '-c', {line!r}])"}), _NAMES)
    background_command = Work(Call("shell", {"command": line, "background": True}), _NAMES)
    return {
        "shell": foreground,
        "shell in the background": background,
        "shell as a background command": background_command,
        "code": slow,
        "python": python,
    }


# What it starts is not a process of the task: its own tests stop it.
_ELSEWHERE = {"browser"}


def test_every_tool_that_runs_something_is_stopped_here() -> None:
    covered = {name.split()[0] for name in works("", "")}
    missing = {tool.name for tool in TOOLS if tool.tier in ("write", "run")} - covered - _ELSEWHERE
    assert not missing, "add a call that takes long of each to works()"


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS.keys())
@pytest.mark.parametrize("is_sandboxed", SANDBOXES)
@pytest.mark.parametrize("name", works("", ""))
async def test_a_stop_leaves_no_process_of(tmp_path: Path, name: str, is_sandboxed: bool, trap: str) -> None:
    marker = uuid4().hex
    work = works(marker, trap)[name]
    turns = [Reply(calls=(work.call,)), Reply(text="I wait.", stall_after=1)]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        set_sandbox(engine.services.settings, is_sandboxed)
        (engine.workspace / "long.txt").write_text("a" * 40 + "b")
        started = await engine.start()
        await _is_busy(engine, started.id, work)
        await until(lambda: {f"{marker}-{name}" for name in work.names} <= running_programs(marker))
        await engine.services.runner.stop(started.id, "me")
        ended = await engine.watcher.end(started.id)
        assert running(marker) == []
        assert (ended.activity.status, ended.outcome.stop_reason) == ("cancelled", "manual_stop")
        _says_what_was_ended(engine, marker, work)


async def _is_busy(engine: EngineParts, task_id: str, work: Work) -> None:
    if work.names:
        ready = engine.workspace / "ready"
        await until(lambda: ready.exists() and ready.read_text().count("\n") == len(work.names))
    else:
        await engine.watcher.task(task_id, lambda task: task.activity.status == "tool_executing")
        before = time.process_time()
        await until(lambda: time.process_time() - before > _SEARCHING_S)


def _says_what_was_ended(engine: EngineParts, marker: str, work: Work) -> None:
    (notice,) = engine.watcher.nodes()[-1].blocks
    assert isinstance(notice, NoticeBlock) and isinstance(notice.data, TaskStopped)
    names = [process.name for process in notice.data.ended]
    assert all(any(f"{marker}-{name}" in command for command in names) for name in work.names), names
    assert not any(process.still_there for process in notice.data.ended)
    assert all(f"(pid {process.pid})" in notice_text(notice) for process in notice.data.ended)
    if not work.names:
        (result,) = results(engine.watcher.nodes())
        assert result.text == "Operation aborted", "the search was not waited for"


async def test_a_search_that_was_stopped_is_not_waited_for_and_one_that_was_not_is(tmp_path: Path) -> None:
    turns = [Reply(calls=(works("", "")["code"].call,)), Reply(text="Done.")]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        (engine.workspace / "long.txt").write_text("a" * 20 + "b")
        started = await engine.start()
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        (result,) = results(engine.watcher.nodes())
        assert "Operation aborted" not in result.text


@pytest.mark.parametrize("is_sandboxed", SANDBOXES)
async def test_the_command_line_shows_what_a_stop_has_ended(
    own_errand: Errand, workspace: Path, is_sandboxed: bool
) -> None:
    marker = uuid4().hex
    work = works(marker, "")["shell"]
    async with ModelServer(replies=[Reply(calls=(work.call,))]) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        process = await own_errand.start("run", "--approve", "all", *model, "wait")
        ready = workspace / "ready"
        await until(lambda: ready.exists() and ready.read_text().count("\n") == len(work.names))
        stopped = await own_errand.run("stop", (await own_errand.task("tool_executing")).id)
        done = await rest(process)
    assert stopped.code == 0, stopped.err
    assert running(marker) == []
    assert all(f"{marker}-{name}" in done.out for name in work.names), done.out
    assert "Stopped " in done.out
