"""What a login shell sets, with real shells and start-up files that misbehave."""

import asyncio
import os
import shutil
import signal
from collections.abc import Coroutine, Generator, Mapping
from pathlib import Path

import pytest

from errand.engine.tools.processes.termination import adopt_orphans
from errand.engine.tools.shell.login_environment import LoginEnvironment, login_shell

BASH = shutil.which("bash") or ""
SYSTEM = {"PATH": "/usr/bin:/bin", "DISPLAY": ":7"}

pytestmark = pytest.mark.skipif(not BASH, reason="there is no bash")


def write(folder: Path, **files: str) -> dict[str, str]:
    """Start-up files, `bashrc` for `.bashrc`; returns the environment that a desktop gives."""
    for name, text in files.items():
        (folder / f".{name}").write_text(text + "\n")
    return {**SYSTEM, "HOME": str(folder), "SHELL": BASH}


async def read(environment: Mapping[str, str], *, limit_s: float = 10.0, is_wanted: bool = True) -> Mapping[str, str]:
    tasks: list[asyncio.Task[None]] = []

    def start(work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(work, name=name))
        return tasks[-1]

    adopt_orphans()
    login = LoginEnvironment(lambda: is_wanted, start, (limit_s, 10.0))
    login.read(environment)
    await asyncio.gather(*tasks)
    return await login.added_to(environment, wait=True)


async def test_what_start_up_files_set_is_added(tmp_path: Path) -> None:
    environment = write(
        tmp_path,
        bash_profile='export OF_PROFILE="two\nlines"; . ~/.bashrc',
        bashrc='case $- in *i*) export PATH="$HOME/.nvm/bin:$PATH";; esac',
    )
    variables = await read(environment)
    assert variables == environment | {"OF_PROFILE": "two\nlines", "PATH": variables["PATH"]}
    assert variables["PATH"].startswith(f"{tmp_path}/.nvm/bin:")


async def test_what_the_shell_only_passes_on_stays_that_of_each_client(tmp_path: Path) -> None:
    environment = write(tmp_path, profile="export A=b")
    login = LoginEnvironment(lambda: True, lambda work, name: asyncio.create_task(work, name=name))
    login.read(environment)
    other = {"DISPLAY": ":8", "HOME": str(tmp_path)}
    assert {"A": "b", "DISPLAY": ":8"}.items() <= (await login.added_to(other, wait=True)).items()


async def test_secrets_are_left_out(tmp_path: Path) -> None:
    variables = await read(
        write(tmp_path, profile="export GITHUB_TOKEN=abcdefghijk COPY=abcdefghijk OPENAI_API_KEY=a A=b")
    )
    assert variables["A"] == "b" and not {"GITHUB_TOKEN", "COPY", "OPENAI_API_KEY"} & variables.keys()


@pytest.mark.parametrize(
    "bashrc",
    [
        "echo hello; printf 'no line end'; echo noise >&2; seq 20000",
        "read -p 'name? ' name; read key < /dev/tty",
        "exit 3",
        "exec false",
        "kill -9 $$",
        "sleep 1000",
        "while :; do :; done",
        "exec cat /dev/zero",
        "env() { echo no; }; echo() { command echo no; }",
    ],
)
async def test_start_up_files_that_misbehave_are_survived(tmp_path: Path, bashrc: str) -> None:
    """Only what a shell without a terminal reads is set in the worst case."""
    interactive = f"case $- in *i*) {bashrc};; esac"
    variables = await read(write(tmp_path, bash_profile=f"export A=b; {interactive}"), limit_s=1.0)
    assert variables["A"] == "b"


async def test_a_shell_that_never_shows_anything_changes_nothing(tmp_path: Path) -> None:
    environment = write(tmp_path, bash_profile="export A=b; exit")
    assert await read(environment) == environment


@pytest.fixture
def left(tmp_path: Path) -> Generator[Path]:
    """The file into which start-up files write the id of the process that they leave; it is ended."""
    file = tmp_path / "pid"
    yield file
    pid = int(file.read_text())
    os.kill(pid, signal.SIGKILL)  # fails if it is gone
    os.waitpid(pid, 0)  # it was adopted


async def test_an_agent_that_start_up_files_leave_goes_on_and_delays_nothing(tmp_path: Path, left: Path) -> None:
    variables = await read(write(tmp_path, bash_profile=f"export A=b; sleep 1000 & echo $! > {left}"))
    assert variables["A"] == "b"


async def test_without_the_setting_no_shell_runs(tmp_path: Path) -> None:
    environment = write(tmp_path, bash_profile="touch ~/ran")
    assert await read(environment, is_wanted=False) == environment
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("shell", [name for name in ("zsh", "fish", "dash", "tcsh") if shutil.which(name)])
async def test_other_shells_show_their_environment(tmp_path: Path, shell: str) -> None:
    environment = write(tmp_path, profile="export A=b", zprofile="export A=b", login="setenv A b")
    (tmp_path / ".config" / "fish").mkdir(parents=True)
    (tmp_path / ".config" / "fish" / "config.fish").write_text("set -x A b\n")
    assert (await read(environment | {"SHELL": shutil.which(shell) or ""}))["A"] == "b"


def test_a_shell_that_refuses_logins_is_none() -> None:
    assert login_shell({"SHELL": "/usr/sbin/nologin"}) != "/usr/sbin/nologin"
    assert login_shell({"SHELL": BASH}) == BASH
