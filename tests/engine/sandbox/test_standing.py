"""Commands that run one after another in one standing sandbox: what they share, and what they must not."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

import errand
from errand.engine.core.cancel import CancelSignal
from errand.engine.sandbox import init_child
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import DeniedFolders
from errand.engine.tools.context import ToolContext
from errand.engine.tools.results import ToolError
from tests.engine.sandbox.conftest import PLANTED, profile_of, run_shell, shell_result
from tests.support.loop_parts import detail, failure, task_of, text_of, tool_of
from tests.support.processes import (
    below,
    file_appears,
    folder_of_nobody,
    is_alive,
    little_memory,
    nobody,
    running,
    until,
)

_WHICH = "readlink /proc/self/ns/mnt"


async def test_commands_share_a_sandbox(sandboxed: ToolContext) -> None:
    first = await run_shell(sandboxed, _WHICH)
    assert [await run_shell(sandboxed, _WHICH) for _ in range(3)] == [first] * 3
    assert first != os.readlink("/proc/self/ns/mnt")


async def test_a_command_is_what_it_would_be_alone(sandboxed: ToolContext) -> None:
    alone = replace(sandboxed, sandbox=CommandSandbox(profile_of(sandboxed)))
    line = (
        "pwd; ls /proc/self/fd | wc -l; umask; ulimit -n; id; trap; env | grep -v ERRAND_CALL | sort; "
        "grep -E 'Cap|NoNewPrivs|Seccomp:|SigBlk' /proc/self/status; cat /proc/self/oom_score_adj; "
        "ls /dev | grep -v mqueue; "
        "ps -o sid=,pgid= -p $$ | tr -s ' ' | cut -d' ' -f2,3 | tr ' ' '\\n' | uniq | wc -l; exit 7"
    )
    assert await run_shell(sandboxed, line) == await run_shell(alone, line)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("exit 3", 3),
        ("kill -9 $$", 137),
        ("no-such-program", 127),
        ("true", 0),
        ("echo x > /dev/shm/left", 0),
        ("renice -n 7 -p 1; exit 3", 3),
    ],
)
async def test_the_exit_code_is_that_of_the_command(sandboxed: ToolContext, line: str, code: int) -> None:
    for _ in range(2):
        assert detail(await shell_result(sandboxed, line), "exit_code") == code


async def test_the_folder_in_which_a_shell_ends_is_kept(sandboxed: ToolContext) -> None:
    shell = tool_of(sandboxed, "shell")
    (sandboxed.workspace / "sub").mkdir()
    for line, folder in (("cd sub", "sub"), ("cd ..", "."), ("cd sub && false", "sub")):
        await shell.execute("c", shell.prepare_arguments({"command": line}), CancelSignal(), lambda result: None)
        result = await shell.execute(
            "c", shell.prepare_arguments({"command": "pwd"}), CancelSignal(), lambda result: None
        )
        assert text_of(result) == str((sandboxed.workspace / folder).resolve())


@pytest.mark.parametrize("count", [1_000, 127_000])
async def test_long_lines_run(sandboxed: ToolContext, count: int) -> None:
    assert await run_shell(sandboxed, f": {'x' * count}; echo $?") == "0"


async def test_a_nul_in_a_line_is_refused_and_the_next_command_runs(sandboxed: ToolContext) -> None:
    assert await run_shell(sandboxed, "echo one") == "one"
    assert "null byte" in str(await failure(tool_of(sandboxed, "shell"), {"command": "echo \0"}))
    assert await run_shell(sandboxed, "echo two") == "two"


_SEGMENT = "python3 -c 'import multiprocessing.shared_memory as m, os; m.SharedMemory(\"left\", True, 99); os._exit(0)'"
_QUEUE = 'python3 -c \'import ctypes; ctypes.CDLL("librt.so.1").mq_open(b"/left", 0o102, 0o600, None)\''
_REST = (
    'python3 -c \'import socket as s; a = s.create_server(("127.0.0.1", 0)); b = s.create_connection(a.getsockname()); '
    "c = a.accept()[0]; c.close(); b.close()'"
)


@pytest.mark.parametrize(
    ("line", "look"),
    [
        ("echo x > /dev/shm/left", "ls /dev/shm"),
        (_SEGMENT, "ls /dev/shm"),
        ("echo x > /dev/left", "ls /dev"),
        ("ln -sf /tmp /dev/stdout", "readlink /dev/stdout"),
        ("ipcmk -M 4096", "ipcs -m"),
        ("ipcmk -Q", "ipcs -q"),
        ("ipcmk -S 1", "ipcs -s"),
        (_QUEUE, "ls -A /dev/mqueue"),
        (_REST, "grep -o 'tw [0-9]*' /proc/net/sockstat"),
        ("prlimit --pid 1 --nofile=50", "ulimit -n"),
        ("renice -n 7 -p 1", "nice"),
        ("taskset -p 1 1", "taskset -p $$ | cut -d: -f2"),
        ("echo 900 > /proc/1/oom_score_adj", "cat /proc/self/oom_score_adj"),
    ],
)
async def test_nothing_that_a_command_leaves_is_there_for_the_next(
    sandboxed: ToolContext, line: str, look: str
) -> None:
    before = await run_shell(sandboxed, look)
    await run_shell(sandboxed, line)
    assert await run_shell(sandboxed, look) == before


async def test_a_process_that_is_left_is_not_seen_by_the_next_command(sandboxed: ToolContext) -> None:
    async with task_of(sandboxed):
        first = await run_shell(sandboxed, f"{_WHICH}; exec -a left-behind sleep 600 > /dev/null 2>&1 & {_WHICH}")
        assert "1 still running in the background" in first and "left-behind" in first
        output = await run_shell(sandboxed, f"{_WHICH}; ps ax")
        assert "left-behind" not in output and output.split("\n")[0] not in first
        assert below("left-behind")
    await until(lambda: not below("left-behind"))


async def test_a_sandbox_is_used_again_when_the_last_process_in_it_has_ended(
    sandboxed: ToolContext, tmp_path: Path
) -> None:
    first = await run_shell(sandboxed, _WHICH)
    await run_shell(sandboxed, "until test -e go; do sleep 0.01; done > /dev/null 2>&1 &")
    (sandboxed.workspace / "go").touch()
    await until(lambda: not below("test -e go"))
    assert sandboxed.sandbox is not None
    await sandboxed.sandbox.after(has_background=False)
    outputs: list[str] = []
    while first not in outputs:  # the sandbox notes it a moment later
        outputs.append(await run_shell(sandboxed, _WHICH))
        assert len(outputs) < 100


@pytest.mark.parametrize("detached", ["sleep 600", "setsid sleep 600", "(trap '' TERM; sleep 600; sleep 600)"])
async def test_stop_ends_a_command_with_all_that_it_started(sandboxed: ToolContext, detached: str) -> None:
    await run_shell(sandboxed, "true")
    cancel, started = CancelSignal(), sandboxed.workspace / "started"
    line = f'env -i PATH=$PATH bash -c "{detached}" stop-marker > /dev/null 2>&1 & touch started; sleep 600'
    running_call = asyncio.ensure_future(shell_result(sandboxed, line, cancel))
    await file_appears(started)
    cancel.set()
    with pytest.raises(ToolError):
        await running_call
    assert not running("stop-marker") and not below("sleep 600")
    assert await run_shell(sandboxed, "echo next") == "next"


async def test_a_time_limit_ends_one_command_and_not_the_next(sandboxed: ToolContext) -> None:
    shell = tool_of(sandboxed, "shell")
    error = await failure(shell, {"command": "sleep 600", "timeout_secs": 0.2})
    assert "Timed out" in str(error)
    assert await run_shell(sandboxed, "echo next") == "next"


async def test_a_rule_that_denies_a_folder_holds_for_the_next_command(sandboxed: ToolContext) -> None:
    folder = sandboxed.workspace / "keys"
    folder.mkdir()
    (folder / "a").write_text(PLANTED)
    rules = _Rules()
    sandbox = CommandSandbox(replace(profile_of(sandboxed), denied=rules.now), stands=True)
    context = replace(sandboxed, sandbox=sandbox)
    try:
        assert PLANTED in await run_shell(context, "cat keys/a")
        rules.closed = (str(folder),)
        assert PLANTED not in await run_shell(context, "cat keys/a")
        rules.closed = ()
        assert PLANTED in await run_shell(context, "cat keys/a")
    finally:
        await sandbox.close()


@dataclass
class _Rules:
    closed: tuple[str, ...] = field(default=())

    def now(self) -> DeniedFolders:
        return DeniedFolders(self.closed)


async def test_a_secret_that_the_person_makes_is_hidden_from_the_next_command(
    sandboxed: ToolContext, tmp_path: Path
) -> None:
    secret = tmp_path / "home" / ".env"
    await run_shell(sandboxed, "true")
    secret.write_text(PLANTED)
    assert PLANTED not in await run_shell(sandboxed, f"cat {secret}")


@pytest.mark.parametrize("times", [1, 2])
async def test_a_protected_file_that_the_person_replaces_stays_protected(sandboxed: ToolContext, times: int) -> None:
    config = sandboxed.workspace / ".git" / "config"
    config.parent.mkdir()
    config.write_text("[core]\n")
    assert "Read-only" in await run_shell(sandboxed, "echo x >> .git/config")
    for _ in range(times):  # as `git config` does; the second new file may get the number of the first
        config.with_name("lock").write_text("[core]\n\tbare = false\n")
        config.with_name("lock").rename(config)
    assert "Read-only" in await run_shell(sandboxed, "echo x >> .git/config")


@pytest.mark.parametrize("name", [".ssh", ".netrc"])
async def test_a_hidden_path_that_the_person_makes_anew_stays_hidden(
    sandboxed: ToolContext, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "home" / name
    show = f"cat {path} {path}/*"
    assert PLANTED not in await run_shell(sandboxed, show)
    if path.is_dir():
        path.rename(path.with_name("moved"))
        path.mkdir()
        (path / "id_new").write_text(PLANTED)
    else:
        path.unlink()
        path.write_text(PLANTED)
    assert PLANTED not in await run_shell(sandboxed, show)


async def test_a_workspace_in_the_place_of_another_is_the_one_that_is_seen(sandboxed: ToolContext) -> None:
    (sandboxed.workspace / "old").touch()
    assert await run_shell(sandboxed, "ls") == "old"
    sandboxed.workspace.rename(sandboxed.workspace.with_name("moved"))
    sandboxed.workspace.mkdir()
    (sandboxed.workspace / "new").touch()
    assert await run_shell(sandboxed, "ls") == "new"


async def test_the_first_process_is_closed_to_commands(sandboxed: ToolContext) -> None:
    await run_shell(sandboxed, "true")
    line = (
        "cat /proc/1/environ /proc/1/maps /proc/1/mem; ls -l /proc/1/fd /proc/1/root /proc/1/cwd; "
        "for s in KILL STOP TERM INT HUP CHLD SEGV USR1; do kill -$s 1; done; "
        "python3 -c 'import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); "
        "print([libc.ptrace(request, 1, 0, 0) for request in (16, 0x4206)]); "
        "print(libc.syscall(438, os.pidfd_open(1), 3, 0))'; echo done"
    )
    output = await run_shell(sandboxed, line)
    assert "socket:" not in output and "ERRAND" not in output
    assert "[-1, -1]\n-1\ndone" in output and "Permission denied" in output
    assert await run_shell(sandboxed, "echo next") == "next"


async def test_a_command_that_takes_all_memory_leaves_the_next_alone(sandboxed: ToolContext) -> None:
    await run_shell(sandboxed, "true")
    with little_memory(60) as members:
        for process in below("The first process of a standing sandbox"):
            members.write_text(str(process.pid))
        result = await shell_result(sandboxed, "exec python3 -c 'x = bytearray(200 << 20)'")
        assert detail(result, "exit_code") == 137
        assert await run_shell(sandboxed, "echo next") == "next"
        assert sandboxed.sandbox is not None
        await sandboxed.sandbox.close()


async def test_when_its_first_process_is_killed_the_command_is_said_to_be_killed(sandboxed: ToolContext) -> None:
    await run_shell(sandboxed, "true")
    call = asyncio.ensure_future(shell_result(sandboxed, "touch started; exec -a in-killed sleep 600"))
    await file_appears(sandboxed.workspace / "started")
    await until(lambda: bool(below("in-killed")))
    (process,) = below("in-killed")
    os.kill(_first_above(process).pid, signal.SIGKILL)
    assert detail(await call, "exit_code") == 137
    await until(lambda: not is_alive(process.pid))
    assert await run_shell(sandboxed, "echo next") == "next"


def _first_above(process: psutil.Process) -> psutil.Process:
    parent = process.parent()
    assert parent is not None
    return parent


async def test_commands_at_the_same_time_do_not_see_each_other(sandboxed: ToolContext) -> None:
    lines = [
        f"touch started-{name}; until test -e started-{other}; do sleep 0.01; done; ps ax; {_WHICH}"
        for name, other in (("one", "two"), ("two", "one"))
    ]
    first, second = await asyncio.gather(*(run_shell(sandboxed, line) for line in lines))
    assert "touch started-two" not in first and "touch started-one" not in second
    assert first.split("\n")[-1] != second.split("\n")[-1]


async def test_nothing_is_left_when_it_is_closed(sandboxed: ToolContext) -> None:
    before = len(below("bwrap"))
    await run_shell(sandboxed, "true")
    assert len(below("bwrap")) > before
    assert sandboxed.sandbox is not None
    await sandboxed.sandbox.close()
    assert len(below("bwrap")) == before
    assert await run_shell(sandboxed, "echo again") == "again"


_KILLED = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import SandboxProfile
from tests.support.loop_parts import make_tool_context, run, tool_of


async def main(folder):
    context = make_tool_context(folder)
    profile = SandboxProfile(context.workspace, (), folder / "data", context.output_dir, folder / "cache")
    shell = tool_of(replace(context, sandbox=CommandSandbox(profile, stands=True)), "shell")
    await run(shell, {"command": "true"})
    await run(shell, {"command": "setsid sleep 601 & touch started; trap '' TERM; sleep 602"})


asyncio.run(main(Path(sys.argv[1])))
"""


async def test_nothing_runs_on_when_the_engine_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, tmp_path]
    with subprocess.Popen(command, cwd=Path(errand.__file__).parents[2]) as engine:  # noqa: ASYNC220 - it only starts
        await file_appears(tmp_path / "workspace" / "started")
        await until(lambda: len(below("sleep 60", of=engine.pid)) >= 2)
        left = below("sleep 60", of=engine.pid)
        engine.kill()
    await until(lambda: not any(is_alive(process.pid) for process in left))
    await until(lambda: not below("bwrap"))


_OF_NOBODY = """
import asyncio, ctypes, os, sys
sys.executable = "/usr/bin/python3"
from dataclasses import replace
from pathlib import Path
from errand.engine.core.cancel import CancelSignal
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import SandboxProfile
from errand.engine.tools.processes.termination import reap_orphans
from tests.support.loop_parts import make_tool_context, run, text_of, tool_of

libc = ctypes.CDLL(None)
libc.prctl(47, 4, 0, 0, 0)  # no capabilities for what it starts
libc.prctl(4, 0, 0, 0, 0)  # as the engine


async def main(folder):
    stop = reap_orphans(asyncio.get_running_loop())
    context = make_tool_context(folder)
    profile = SandboxProfile(context.workspace, (), folder / "data", context.output_dir, folder / "cache")
    sandbox = CommandSandbox(profile, stands=True)
    shell = tool_of(replace(context, sandbox=sandbox), "shell")
    lines = ["readlink /proc/self/ns/mnt", "cat /proc/1/environ /proc/1/mem; ls -l /proc/1/fd; id -u; kill -9 1"]
    for line in (lines[0], lines[0], lines[1]):
        print(text_of(await run(shell, {"command": line})))
    await run(shell, {"command": "sleep 600 > /dev/null 2>&1 &"})
    print("ended", *(process.name for process in await context.processes.end()))
    await sandbox.close()
    stop()


asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python that everybody may run")
def test_it_stands_for_a_user_without_rights_too() -> None:
    with folder_of_nobody() as folder:
        ended = subprocess.run(
            [*nobody(), sys.executable, "-c", _OF_NOBODY, folder],
            capture_output=True, text=True, check=False, cwd=Path(errand.__file__).parents[2],
        )  # fmt: skip
    first, second, *rest = ended.stdout.splitlines()
    assert first == second and first.startswith("mnt:"), ended.stderr
    assert "65534" in rest and not any("socket:" in line or "ERRAND" in line for line in rest)
    assert rest[-1] == "ended sleep 600"


def test_a_request_is_read_as_it_was_written() -> None:
    variables = [b"A=1", b"EMPTY=", b"B=x=y"]
    data = init_child.encoded(b"/bin/sh", b"/w \xff", 5, [0, 1, 2, 9], [b"sh", b"", b"-c\n"], variables)
    expected = init_child.Request(b"/bin/sh", b"/w \xff", 5, [0, 1, 2, 9], [b"sh", b"", b"-c\n"], variables)
    assert init_child.decoded(data) == expected
    with pytest.raises(ValueError, match="null byte"):
        init_child.encoded(b"/bin/sh", b"/", 5, [0], [b"a\0b"], [])
