"""What commands must not be able to do, tried for real in each form of the sandbox."""

import asyncio
import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.sandbox.detection import find_sandbox
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.context import ToolContext
from errand.engine.tools.results import ToolError
from errand.protocol.engine import SandboxForm
from tests.engine.sandbox.conftest import PLANTED, profile_of, run_shell, shell_result
from tests.support.loop_parts import task_of
from tests.support.processes import PYTHON, running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are of Linux")


@pytest.mark.parametrize("target", ["outside.txt", "home/notes.txt", "home/.bashrc", "data/errand.db"])
async def test_nothing_outside_is_written(boxed: ToolContext, tmp_path: Path, target: str) -> None:
    before = {path: path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file()}
    output = await run_shell(
        boxed, f"echo changed > {tmp_path / target}; rm -rf {tmp_path / 'home'} 2>&1; echo ok > in"
    )
    assert {path: path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file()} == before
    assert not (tmp_path / "outside.txt").exists()
    assert (tmp_path / "data" / "errand.db").read_text() == PLANTED
    assert (boxed.workspace / "in").read_text() == "ok\n", output


@pytest.mark.parametrize("path", ["home/.ssh/id_rsa", "home/.netrc", "data/errand.db"])
async def test_a_planted_key_is_not_read(boxed: ToolContext, tmp_path: Path, path: str) -> None:
    output = await run_shell(
        boxed, f"cat {tmp_path / path} 2>&1; ln -s {tmp_path / path} l; cat l 2>&1; ln {tmp_path / path} h; cat h 2>&1"
    )
    assert PLANTED not in output


async def test_a_folder_that_the_person_opened_is_writable(boxed: ToolContext, tmp_path: Path) -> None:
    opened, link = tmp_path / "opened", tmp_path / "link"
    opened.mkdir()
    link.symlink_to(tmp_path / "home" / ".ssh")
    granted = (opened, link, tmp_path / "home", tmp_path / "missing")
    context = replace(boxed, sandbox=CommandSandbox(replace(profile_of(boxed), granted=granted)))
    await run_shell(context, f"echo x > {opened}/a; echo x > {link}/a; echo x > {tmp_path}/home/a; true")
    assert (opened / "a").read_text() == "x\n"
    assert not (tmp_path / "home" / "a").exists() and not (tmp_path / "home" / ".ssh" / "a").exists()


async def test_the_temporary_folder_is_writable(boxed: ToolContext) -> None:
    assert await run_shell(boxed, 'f=$(mktemp) && echo kept > "$f" && cat "$f"') == "kept"
    assert list((boxed.output_dir / "tmp").iterdir())


async def test_pipes_and_devices_work(boxed: ToolContext) -> None:
    output = await run_shell(boxed, "echo a | cat > /dev/null; cat <(echo b) <<< c; head -c3 /dev/zero | wc -c; exit 3")
    assert output == "b\n3\n[exit code 3]"


async def test_git_works(boxed: ToolContext) -> None:
    who = "git -c user.name=a -c user.email=a@b"
    output = await run_shell(
        boxed, f"git init -q .; echo a > a; git add a; {who} commit -qm one; git log --oneline | wc -l"
    )
    assert output == "1"
    (boxed.workspace / ".envrc").write_text("mine\n")
    output = await run_shell(
        boxed, "echo evil >> .git/config; echo evil > .git/hooks/pre-commit; echo evil > .envrc; echo x > CLAUDE.md"
    )
    git = boxed.workspace / ".git"
    assert "evil" not in (git / "config").read_text()
    assert not (git / "hooks" / "pre-commit").exists()
    assert (boxed.workspace / ".envrc").read_text() == "mine\n"
    assert not (boxed.workspace / "CLAUDE.md").exists()
    assert await run_shell(boxed, "git status --short") == "?? .envrc"


@pytest.mark.parametrize("how", ["/dev/tcp", "python"])
async def test_without_the_network_nothing_is_reached(boxed: ToolContext, how: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.01)
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        line = f"echo > /dev/tcp/127.0.0.1/{port}" if how == "/dev/tcp" else f'{PYTHON} -c "{code}"'
        output = await run_shell(boxed, f"{{ {line}; }} 2>&1 || echo refused")
        with pytest.raises(TimeoutError):
            server.accept()
    assert output.endswith("refused")


async def test_the_engine_can_be_neither_ended_nor_traced(boxed: ToolContext) -> None:
    pid = os.getpid()
    output = await run_shell(
        boxed,
        f"cat /proc/{pid}/environ /proc/{pid}/mem 2>/dev/null | wc -c; kill -9 {pid} 2>&1 || echo refused; "
        f"ls /proc/{pid}/root/ /proc/{pid}/cwd/ 2>/dev/null | wc -l",
    )
    assert output.split()[0] == output.split()[-1] == "0", output
    # In the weaker form it is visible.
    assert "No such process" in output or "Operation not permitted" in output
    assert "refused" in output


async def test_a_sibling_in_the_same_sandbox_cannot_reach_another_task(boxed: ToolContext, tmp_path: Path) -> None:
    """The commands of two tasks do not see the processes of each other."""
    async with task_of(boxed):
        marker = uuid4().hex
        await run_shell(boxed, f"sh -c 'sleep 60; : {marker}' > /dev/null 2>&1 &")
        await until(lambda: bool(running(marker)))
        (pid, *_) = running(marker)
        output = await run_shell(boxed, f"kill -0 {pid} 2>&1 || echo refused")
        assert "refused" in output
        assert running(marker)


def _abstract_server(name: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"\0{name}")
    server.listen()
    server.settimeout(0.01)
    return server


async def test_an_abstract_socket_of_a_service_is_not_reached_without_the_network(boxed: ToolContext) -> None:
    """Such names belong to the network: they are as open as that in bubblewrap, and closed by Landlock."""
    name = uuid4().hex
    with _abstract_server(name) as server:
        code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + '{name}')"
        output = await run_shell(boxed, f'{PYTHON} -c "{code}" 2>&1 || echo refused')
        with pytest.raises(TimeoutError):
            server.accept()
    assert output.endswith("refused")


async def test_no_input_is_put_into_a_terminal(boxed: ToolContext) -> None:
    """Commands have no terminal of their own or of the engine: they lead a session."""
    code = "import fcntl, os, termios; fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x')"
    output = await run_shell(boxed, f'{PYTHON} -c "{code}" 2>&1 || echo refused')
    assert output.endswith("refused")


# Lists what could be written of that which belongs to no process. Nothing is opened. /proc/keys is hidden.
_WRITABLE_SETTINGS = """
import os
for top in ("/proc", "/sys"):
    for folder, folders, files in os.walk(top):
        if folder == "/proc":
            folders[:] = [name for name in folders if not name.isdecimal()]
        for path in (os.path.join(folder, name) for name in files):
            if not os.path.islink(path) and os.access(path, os.W_OK) and path != "/proc/keys":
                print(path)
"""


async def test_no_setting_of_the_machine_can_be_changed(sandboxed: ToolContext) -> None:
    (sandboxed.workspace / "list.py").write_text(_WRITABLE_SETTINGS)
    assert await run_shell(sandboxed, f"{PYTHON} list.py") == "(no output)"


async def test_a_setting_of_the_kernel_is_not_opened_to_be_written(boxed: ToolContext) -> None:
    """It would be written by `write` alone: this opens and closes it."""
    code = "import os; os.close(os.open('/proc/sys/kernel/printk_ratelimit_burst', os.O_WRONLY))"
    assert (await run_shell(boxed, f'{PYTHON} -c "{code}" 2>&1 || echo refused')).endswith("refused")


@pytest.mark.parametrize(
    "line",
    [
        "mount -t tmpfs none {home} 2>&1",
        "mount -o remount,rw / 2>&1",
        "umount {home}/.ssh 2>&1",
        "unshare -Um sh -c 'umount {home}/.ssh; mount --bind / /mnt; cat /mnt{home}/.ssh/id_rsa' 2>&1",
        "unshare -Umr sh -c 'umount -l {home}/.ssh; mount -o remount,rw,bind /; cat {home}/.ssh/id_rsa' 2>&1",
        "unshare -Umr sh -c 'mount -o remount,rw,bind /; echo x > {home}/n' 2>&1",
        "chroot / cat {home}/.ssh/id_rsa 2>&1",
        "nsenter -t 1 -m cat {home}/.ssh/id_rsa 2>&1",
        "bwrap --bind / / cat {home}/.ssh/id_rsa 2>&1",
    ],
)
async def test_mounts_are_not_changed(boxed: ToolContext, tmp_path: Path, line: str) -> None:
    home = tmp_path / "home"
    output = await run_shell(boxed, line.format(home=home))
    assert PLANTED not in output
    assert (home / ".ssh" / "id_rsa").read_text() == PLANTED
    assert not (home / "n").exists()


@pytest.mark.parametrize(
    "hide",
    ["setsid {sleep} &", "(setsid {sleep} &)", "env -i setsid sh -c '{sleep} & {sleep}' &", "trap '' TERM; {sleep} &"],
    ids=["setsid", "double fork", "no environment", "ignores TERM"],
)
async def test_nothing_outlives_the_stop(boxed: ToolContext, hide: str) -> None:
    marker = uuid4().hex
    sleep = f"{PYTHON} -c 'import time; time.sleep(60)' {marker}".replace("'", '"')
    async with task_of(boxed):
        cancel = CancelSignal()
        command = asyncio.create_task(shell_result(boxed, f"{hide.format(sleep=sleep)}\n{sleep}", cancel))
        await until(lambda: len(running(marker)) >= 2)
        cancel.set()
        with pytest.raises(ToolError):
            await command
        assert running(marker) == []


async def test_large_environments_pass(boxed: ToolContext) -> None:
    context = replace(boxed, environment={**boxed.environment, **{f"V{n}": "x" * 3_000 for n in range(40)}})
    assert await run_shell(context, "echo ${#V39}; env | wc -c | cut -c1-2") == "3000\n12"


async def test_the_exit_of_a_killed_command_is_reported(boxed: ToolContext) -> None:
    result = await shell_result(boxed, "kill -9 $$")
    assert result.details is not None
    assert result.details["exit_code"] in (-signal.SIGKILL, 128 + signal.SIGKILL)


def test_the_forms_are_those_of_the_protocol() -> None:
    form: SandboxForm = find_sandbox().form
    assert form == "bubblewrap"
