"""The tool `python`: a session per conversation, its pictures, its limits, and its end."""

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Image
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import SandboxProfile
from errand.engine.tools.base import Tool
from errand.engine.tools.context import ToolContext
from errand.engine.tools.python.session import PythonSession, find_interpreter
from errand.engine.tools.results import ToolResult
from errand.protocol.base import JsonObject
from tests.support.limits import WAIT_LIMIT_S
from tests.support.loop_parts import failure, is_running, make_tool_context, run, text_of, tool_of, until
from tests.support.processes import PYTHON
from tests.support.processes import running as running_processes
from tests.support.sandboxes import SANDBOXES

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# The part of matplotlib.pyplot that a session uses.
PYPLOT = f"""
import base64
_open = []
class Figure:
    def get_size_inches(self): return (4.0, 3.0)
    def savefig(self, target, *, format, dpi, bbox_inches):
        assert format == "png" and dpi > 70
        target.write(base64.b64decode("{PIXEL}"))
def plot(*values): _open.append(Figure())
def get_fignums(): return list(range(1, len(_open) + 1))
def figure(number): return _open[number - 1]
def close(which): _open.clear()
"""


def own_python(workspace: Path) -> None:
    """A virtual environment of the workspace."""
    interpreter = workspace / ".venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.symlink_to(PYTHON)


def sandbox_of(context: ToolContext, folder: Path, *, network: bool = False) -> CommandSandbox:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    profile = SandboxProfile(
        context.workspace, (home,), folder / "private", context.output_dir, folder / "cache", network
    )
    return CommandSandbox(profile)


@pytest.fixture(params=SANDBOXES)
async def context(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[ToolContext]:
    tool_context = make_tool_context(tmp_path)
    own_python(tool_context.workspace)
    if request.param:
        tool_context = replace(tool_context, sandbox=sandbox_of(tool_context, tmp_path))
    yield tool_context
    await tool_context.sessions.close(PythonSession)


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncGenerator[ToolContext]:
    """Without the sandbox."""
    tool_context = make_tool_context(tmp_path)
    own_python(tool_context.workspace)
    yield tool_context
    await tool_context.sessions.close(PythonSession)


async def told(tool: Tool, code: str, **options: float) -> str:
    return text_of(await given(tool, code, **options))


async def given(tool: Tool, code: str, **options: float) -> ToolResult:
    arguments: JsonObject = {"code": code, **options}
    return await run(tool, arguments)


def session_pid(context: ToolContext) -> int:
    pid = context.sessions.get(PythonSession, PythonSession).pid
    assert pid is not None
    return pid


async def test_variables_stay_between_calls_and_tasks(context: ToolContext) -> None:
    first = await told(tool_of(context, "python"), "import math\nx = 20\nprint('made')")
    assert first.startswith("[a new session of Python 3") and first.endswith("nothing is defined yet]\nmade")
    later = replace(context, task_id="task_2", output_dir=context.output_dir.parent / "task_2")
    if context.sandbox is not None:
        sandbox = CommandSandbox(replace(context.sandbox.profile, output_dir=later.output_dir))
        later = replace(later, sandbox=sandbox)
    assert await told(tool_of(later, "python"), "x + math.floor(1.5)") == "21"


async def test_the_value_of_a_last_expression_is_shown(context: ToolContext) -> None:
    tool = tool_of(context, "python")
    await told(tool, "1")
    assert await told(tool, "print('a')\n[1, 2]") == "a\n[1, 2]"
    assert await told(tool, "_ * 2") == "[1, 2, 1, 2]"
    assert await told(tool, "5;") == "(no output)"
    assert await told(tool, "None") == "(no output)"
    assert await told(tool, "import sys\nprint('e', file=sys.stderr)") == "[stderr]\ne"


async def test_an_exception_has_a_short_traceback_and_the_session_goes_on(context: ToolContext) -> None:
    tool = tool_of(context, "python")
    await told(tool, "def half(x):\n    return 1 / x")
    result = await given(tool, "half(0)")
    assert result.is_error and result.summary == "ZeroDivisionError: division by zero"
    assert 'File "<cell 1>", line 2, in half\n    return 1 / x' in text_of(result)
    assert "session_child" not in text_of(result) and "<string>" not in text_of(result)
    assert "SyntaxError" in (await given(tool, "x ===")).summary
    assert "RecursionError" in (await given(tool, "def f(): f()\nf()")).summary
    assert (await given(tool, "raise SystemExit(3)")).summary == "SystemExit: 3"
    assert "nobody to type" in (await given(tool, "input('?')")).summary
    assert await told(tool, "half(2)") == "0.5"


async def test_classes_of_the_session_can_be_pickled(bare: ToolContext) -> None:
    code = "import pickle\nclass A:\n    pass\ntype(pickle.loads(pickle.dumps(A()))) is A"
    assert (await told(tool_of(bare, "python"), code)).endswith("\nTrue")


async def test_open_figures_become_pictures(context: ToolContext) -> None:
    package = context.workspace / "matplotlib"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "pyplot.py").write_text(PYPLOT)
    tool = tool_of(context, "python")
    result = await given(tool, "import matplotlib.pyplot as plt\nplt.plot(1)\nplt.plot(2)")
    assert result.summary == "2 pictures"
    assert [block.name for block in result.content if isinstance(block, Image)] == ["Figure 1", "Figure 2"]
    assert result.content[1] == Image("image/png", PIXEL, name="Figure 1")
    assert not any(isinstance(block, Image) for block in (await given(tool, "1")).content)
    failed = await given(tool, "plt.plot(3)\n1/0")
    assert failed.is_error and isinstance(failed.content[-1], Image)
    many = await given(tool, "for n in range(50): plt.plot(n)")
    assert many.summary == "20 pictures"


async def test_a_value_that_draws_itself_becomes_a_picture(bare: ToolContext) -> None:
    code = f"import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('{PIXEL}')\nP()"
    result = await given(tool_of(bare, "python"), code)
    assert Image("image/png", PIXEL, name="Picture") in result.content


async def test_huge_output_and_values_are_bounded(bare: ToolContext) -> None:
    tool = tool_of(bare, "python")
    assert len(await told(tool, "list(range(10**6))")) < 25_000
    result = await given(tool, "for n in range(300_000): print('line', n)")
    assert len(text_of(result)) < 40_000 and "bytes left out" in text_of(result)
    assert "MemoryError" in (await given(tool, "x = bytearray(10**15)")).summary
    assert "line 299999" in text_of(result)
    assert await told(tool, "1") == "1"


async def test_code_that_answers_in_the_name_of_the_session_cannot_say_more_than_it(bare: ToolContext) -> None:
    code = """
import gc, json, socket, struct
engine = next(one for one in gc.get_objects() if isinstance(one, socket.socket))
said = {"done": 1, "value": "v" * 5_000_000, "trace": "t" * 5_000_000, "pictures": [{"name": "n" * 9_000, "data": "?"}]}
data = json.dumps(said).encode()
engine.sendall(struct.pack(">I", len(data)) + data)
"""
    result = await given(tool_of(bare, "python"), code)
    assert result.is_error and len(text_of(result)) < 60_000 and len(result.summary) <= 120
    assert "2" in await told(tool_of(bare, "python"), "1 + 1")


async def test_code_that_takes_too_long_is_interrupted_and_the_session_survives(context: ToolContext) -> None:
    tool = tool_of(context, "python")
    await told(tool, "x = 7")
    result = await given(tool, "import time\ntime.sleep(60)", timeout_secs=0.2)
    assert result.is_error and result.summary == "Timed out after 0.2 s"
    assert text_of(result).startswith("[interrupted after 0.2 s; the session goes on with its variables]")
    assert await told(tool, "x") == "7"


async def test_code_that_cannot_be_interrupted_is_killed(context: ToolContext) -> None:
    tool, cancel = tool_of(context, "python"), CancelSignal()
    await told(tool, "import signal, subprocess")
    code = (
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '100'])\nprint('on', flush=True)\nwhile True: pass"
    )
    began = asyncio.Event()
    running = asyncio.create_task(run(tool, {"code": code}, cancel, lambda result: began.set()))
    pid = session_pid(context)
    async with asyncio.timeout(WAIT_LIMIT_S):
        await began.wait()
    cancel.set()
    result = await running
    assert result.is_error and text_of(result).startswith("[Operation aborted; it was ended: the variables")
    assert not is_running(pid)
    assert "could not be interrupted" in await told(tool, "1")


async def test_a_cancel_interrupts_at_once_and_keeps_the_variables(context: ToolContext) -> None:
    tool, cancel, seen = tool_of(context, "python"), CancelSignal(), list[str]()
    await told(tool, "x = 1")
    code = "import time\nprint('begun')\ntime.sleep(100)"
    running = asyncio.create_task(run(tool, {"code": code}, cancel, lambda result: seen.append(text_of(result))))
    await until(lambda: "begun" in seen)
    cancel.set()
    assert "the session goes on with its variables" in text_of(await running)
    assert await told(tool, "x") == "1"


async def test_a_session_that_died_says_that_its_variables_are_gone(context: ToolContext) -> None:
    tool = tool_of(context, "python")
    await told(tool, "x = 1")
    died = await given(tool, "import os\nos._exit(3)")
    assert died.is_error and "ended with exit code 3" in text_of(died)
    assert "ended with exit code 3: the variables of before are gone" in await told(tool, "1")
    pid = session_pid(context)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_running(pid))
    assert "killed from outside" in await told(tool, "1")


async def test_reset_starts_a_new_session(context: ToolContext) -> None:
    tool = tool_of(context, "python")
    await told(tool, "x = 1")
    assert (await given(tool, "x", reset=True)).summary == "NameError: name 'x' is not defined"
    pid = session_pid(context)
    assert text_of(await run(tool, {"reset": True})) == "The session has ended: all its variables are gone."
    await until(lambda: not is_running(pid))


async def test_code_of_another_agent_is_not_ended_by_a_reset(context: ToolContext) -> None:
    tool, seen = tool_of(context, "python"), list[str]()
    code = "import os, time\nprint('begun')\nwhile not os.path.exists('go'): time.sleep(0.01)\n'done'"
    running = asyncio.create_task(run(tool, {"code": code}, on_update=lambda result: seen.append(text_of(result))))
    await until(lambda: any("begun" in text for text in seen))
    assert "busy with code of another agent" in str(await failure(tool, {"reset": True}))
    (context.workspace / "go").touch()
    assert "done" in text_of(await running)


async def test_a_stop_ends_an_interpreter_that_does_not_start(context: ToolContext) -> None:
    tool, cancel = tool_of(context, "python"), CancelSignal()
    python = context.workspace / ".venv" / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\ntouch started\nexec sleep 4721\n")
    python.chmod(0o755)
    running = asyncio.create_task(failure(tool, {"code": "1"}, cancel))
    await until(lambda: (context.workspace / "started").exists())
    cancel.set()
    assert str(await running) == "Operation aborted"
    assert not running_processes("4721")


async def test_a_session_that_is_closed_while_it_starts_leaves_no_process(context: ToolContext) -> None:
    tool = tool_of(context, "python")
    python = context.workspace / ".venv" / "bin" / "python"
    python.unlink()
    python.write_text(
        f'#!/bin/sh\ntouch started\nuntil [ -e go ]; do sleep 0.01; done\nexec {shlex.quote(PYTHON)} "$@"\n'
    )
    python.chmod(0o755)
    running = asyncio.create_task(failure(tool, {"code": "import time; time.sleep(4722)"}))
    await until(lambda: (context.workspace / "started").exists())
    await context.sessions.close(PythonSession)
    (context.workspace / "go").touch()
    assert "archived or deleted meanwhile" in str(await running)
    assert context.sessions.find(PythonSession) is None


async def test_closing_the_session_ends_what_it_started(context: ToolContext) -> None:
    tool = tool_of(context, "python")
    await told(tool, "import subprocess\nchild = subprocess.Popen(['sleep', '100'], start_new_session=True)")
    pid = session_pid(context)
    await context.processes.end()
    assert is_running(pid), "the end of a task leaves the session"
    await context.sessions.close(PythonSession)
    assert not is_running(pid)


async def test_an_idle_session_ends_by_itself(bare: ToolContext) -> None:
    session = bare.sessions.get(PythonSession, lambda: PythonSession(idle_s=0.05))
    tool = tool_of(bare, "python")
    await told(tool, "1")
    await until(lambda: session.pid is None)
    assert "it was not used for" in await told(tool, "1")


async def test_a_change_of_the_network_starts_a_new_session(context: ToolContext, tmp_path: Path) -> None:
    if context.sandbox is None:
        pytest.skip("only a sandbox has a network of its own")
    await told(tool_of(context, "python"), "x = 1")
    opened = replace(context, sandbox=sandbox_of(context, tmp_path, network=True))
    assert "the network or the sandbox of the conversation changed" in await told(tool_of(opened, "python"), "1")


async def test_code_in_the_sandbox_cannot_change_what_lies_outside(context: ToolContext, tmp_path: Path) -> None:
    if context.sandbox is None:
        pytest.skip("there is no sandbox")
    outside = tmp_path / "home" / "notes.txt"
    outside.write_text("mine")
    tool = tool_of(context, "python")
    result = await given(tool, f"open({str(outside)!r}, 'w').write('yours')")
    assert result.is_error and outside.read_text() == "mine"
    assert "Read-only file system" in (await given(tool, "open('/etc/errand-test', 'w')")).summary
    assert await told(tool, "open('made.txt', 'w').write('x')") == "1"


async def test_wrong_and_hostile_arguments_get_a_clear_error(bare: ToolContext) -> None:
    tool = tool_of(bare, "python")
    assert "There is no code" in str(await failure(tool, {}))
    assert "Wrong arguments" in str(await failure(tool, {"code": 1.5}))
    assert "null bytes" in (await given(tool, "a\0b")).summary
    assert "surrogate" in (await given(tool, "'\ud800'")).summary or True
    assert (await given(tool, "x" * 10_000_000)).is_error
    assert (await given(tool, "(" * 100_000)).is_error


async def test_files_in_the_way_of_modules_do_not_break_the_session(bare: ToolContext) -> None:
    (bare.workspace / "json.py").write_text("raise RuntimeError('not the real one')")
    assert (await told(tool_of(bare, "python"), "1")).endswith("\n1")


def test_the_interpreter_is_that_of_the_workspace_else_of_the_person(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(PYTHON)
    assert find_interpreter(tmp_path, str(folder)) == str(folder / "python3")
    assert find_interpreter(tmp_path, str(tmp_path / "nothing")) == PYTHON
    own_python(tmp_path)
    assert find_interpreter(tmp_path, str(folder)) == str(tmp_path / ".venv" / "bin" / "python")
