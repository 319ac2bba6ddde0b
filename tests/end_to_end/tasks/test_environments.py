"""A task's commands run in the environment of the client that started the task, whoever started the engine."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from errand.client.connection import Connection
from errand.client.launch import read_endpoint
from errand.protocol.base import JsonObject
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.system.paths import Paths
from tests.support.command_line import Errand, Finished, ended
from tests.support.model_server import Call, ModelServer, Reply

_SHOW = (
    "echo $WHO; which-one; echo $VIRTUAL_ENV; echo $A_TOKEN$OPENAI_API_KEY$ALSO; echo $HOME; pwd; echo $PWD; "
    "env | grep -c -e key- -e token-"
)


def _terminal(folder: Path, name: str) -> Mapping[str, str]:
    """The variables of a terminal whose PATH has a separate program."""
    programs = folder / name
    programs.mkdir()
    program = programs / "which-one"
    program.write_text(f"#!/bin/sh\necho program of {name}\n")
    program.chmod(0o755)
    keys = {"OPENAI_API_KEY": f"key-{name}", "A_TOKEN": f"token-{name}", "ALSO": f"key-{name}"}
    own = {"WHO": name, "VIRTUAL_ENV": f"/venvs/{name}", "PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder)}
    return own | keys


def _replies(*commands: str) -> list[Reply]:
    return [*(Reply(calls=(Call("shell", {"command": command}),)) for command in commands), Reply(text="Done.")]


class _Block(msgspec.Struct, frozen=True):
    type: str
    details: JsonObject = {}


class _Node(msgspec.Struct, frozen=True):
    blocks: tuple[_Block, ...] = ()


class _Event(msgspec.Struct, frozen=True):
    node: _Node = _Node()


class _Params(msgspec.Struct, frozen=True):
    event: _Event = _Event()


class _Line(msgspec.Struct, frozen=True):
    params: _Params = _Params()


def _output(done: Finished) -> list[str]:
    """The lines written by the only command of a run."""
    assert done.code == 0, done.out + done.err
    nodes = [msgspec.json.decode(line, type=_Line).params.event.node for line in done.out.splitlines()]
    (result,) = [block for node in nodes for block in node.blocks if block.type == "toolResult"]
    return str(result.details["stdout"]).splitlines()


@pytest.mark.usefixtures("bare_commands")
async def test_each_task_has_the_environment_of_its_own_terminal_and_none_has_keys(
    own_errand: Errand, workspace: Path, tmp_path: Path
) -> None:
    async with ModelServer(replies=[*_replies(_SHOW), *_replies(_SHOW)]) as server:
        model = ("--model", "openai_compatible/m", "--api-base", server.url)
        outputs = {
            name: _output(
                await own_errand.run(
                    *("run", "--json", "--approve", "all", *model, "look"), variables=_terminal(tmp_path, name)
                )
            )
            for name in ("first", "second")
        }
    for name, lines in outputs.items():
        own = [name, f"program of {name}", f"/venvs/{name}", "", str(tmp_path), str(workspace), str(workspace), "0"]
        assert lines == own


async def test_an_interrupted_task_goes_on_in_the_environment_of_who_resumes_it(
    own_errand: Errand, tmp_path: Path
) -> None:
    first, second = _terminal(tmp_path, "first"), _terminal(tmp_path, "second")
    async with ModelServer(replies=[Reply(text="wait", stall_after=1), *_replies("echo $WHO")]) as server:
        model = ("--model", "openai_compatible/m", "--api-base", server.url)
        began = await own_errand.start("run", "--approve", "all", *model, "look", variables=first)
        await server.request(0)
        own_errand.kill_engine()
        began.kill()
        await began.communicate()
        (task,) = (await own_errand.run("tasks", "--json", variables=first)).lines
        done = await own_errand.run("resume", "--json", str(task["id"]), variables=second)
    assert _output(done) == ["second"]


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="there is no bash")
@pytest.mark.usefixtures("bare_commands")
async def test_commands_of_a_window_from_the_desktop_have_what_the_login_shell_sets(
    own_errand: Errand, workspace: Path, tmp_path: Path
) -> None:
    """Also of a task that is started while the start-up files still run."""
    home = tmp_path / "person"
    home.mkdir()
    (home / ".bash_profile").write_text("sleep 0.3; export WHO=shell PATH=$HOME/bin:$PATH A_TOKEN=token-1")
    show = "echo $WHO $A_TOKEN; echo $PATH > ~/path"
    own = {"HOME": str(home), "SHELL": "/bin/bash", "PATH": "/usr/bin:/bin"}
    paths = Paths(own_errand.home)
    async with ModelServer(replies=[*_replies(f"({show}) > ~/shown"), *_replies(f"({show}) > ~/shown")]) as server:
        for allowed, expected in ((True, "shell\n"), (False, "\n")):
            await own_errand.run("settings", "set", "login_environment", "yes" if allowed else "no")
            window = Connection(lambda: read_endpoint(paths), "window", environment=own, from_desktop=True)
            await window.open()
            try:
                params = TaskStartParams(
                    prompt="look",
                    model="openai_compatible/m",
                    api_base=server.url,
                    approve="all",
                    workspace=str(workspace),
                )
                await ended(window, (await window.call(TASK_START, params)).task)
            finally:
                await window.close()
            assert (home / "shown").read_text() == expected
            assert (home / "path").read_text().startswith(f"{home}/bin:") is allowed
