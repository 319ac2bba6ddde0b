"""Completion in the shells that are installed here, and the manual page."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from errand.cli.commands.installation.completion import script
from errand.cli.commands.installation.manual import page
from errand.cli.table import TABLE
from tests.support.command_line import Errand
from tests.support.limits import WAIT_LIMIT_S

_BASH = r"""source "$1"
complete_line() { COMP_LINE=$1; COMP_POINT=${#1}; COMPREPLY=(); _errand 2>/dev/null; echo "${COMPREPLY[*]}"; }
shift; for line in "$@"; do complete_line "$line"; done
"""


def _written(tmp_path: Path, shell: str) -> Path:
    file = tmp_path / f"errand.{shell}"
    file.write_text(script("bash" if shell == "bash" else "zsh" if shell == "zsh" else "fish"), encoding="utf-8")
    return file


def _bash(file: Path, *lines: str, environment: dict[str, str] | None = None) -> list[str]:
    done = subprocess.run(
        ["bash", "--norc", "-c", _BASH, "bash", str(file), *lines],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=WAIT_LIMIT_S,
    )
    return done.stdout.splitlines()


def test_bash_completes_commands_options_choices_and_actions(tmp_path: Path) -> None:
    lines = {
        "errand tas": "tasks",
        "errand run --app": "--approve",
        "errand run --approve e": "edits",
        "errand mcp s": "show set-key",
        "errand mcp --url x s": "show set-key",
        "errand completion ": "bash zsh fish",
        "errand mode abc ": "task chat",
        "errand help compl": "completion",
        "errand nonsense ": "",
    }
    assert _bash(_written(tmp_path, "bash"), *lines) == list(lines.values())


def test_zsh_finds_the_script_in_a_folder_of_functions(tmp_path: Path) -> None:
    assert script("zsh").startswith("#compdef errand\n")
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    (tmp_path / "_errand").write_text(script("zsh"), encoding="utf-8")
    asked = f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[errand]"
    done = subprocess.run(["zsh", "-f", "-c", asked], capture_output=True, text=True, check=True, timeout=WAIT_LIMIT_S)
    assert done.stdout == "_errand\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_that_is_here_reads_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n", str(_written(tmp_path, shell))], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_completes_with_descriptions(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    file, environment = _written(tmp_path, "fish"), _with_home(tmp_path)
    assert [*_fish(file, "errand mcp s", environment), *_fish(file, "errand tas", environment)] == [
        "set-key\tstore the value of a variable",
        "show\tshow the tools, resources and prompts of a server",
        "tasks\tlist tasks, newest first",
    ]


def _fish(file: Path, line: str, environment: dict[str, str]) -> list[str]:
    asked = ["fish", "--no-config", "-c", f"source {file}; complete -C '{line}'"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, env=environment, timeout=WAIT_LIMIT_S)
    return done.stdout.splitlines()


def _with_home(folder: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(folder)}


async def test_bash_completes_the_ids_of_tasks_and_the_names_of_settings_of_a_running_engine(
    own_errand: Errand, tmp_path: Path
) -> None:
    started = await own_errand.run("run", "--json", "--model", "scripted/note", "greet me")
    task_id = str(started.lines[-1]["id"])
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "errand").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m errand "$@"\n')
    (programs / "errand").chmod(0o700)
    environment = own_errand.environment | {"PATH": f"{programs}:{os.environ['PATH']}"}
    lines = ("errand stop ", f"errand changes {task_id[:7]}", "errand settings set max_tu")
    completed = _bash(_written(tmp_path, "bash"), *lines, environment=environment)
    assert completed == [task_id[-8:], task_id, "max_turns"]
    conversation_id = str(started.lines[-1]["conversationId"])
    other = str(
        (await own_errand.run("run", "--json", "--model", "scripted/note", "again")).lines[-1]["conversationId"]
    )
    nodes = (await own_errand.run("show", conversation_id, "--json")).lines
    message_ids = [str(node["id"])[-8:] for node in nodes if node["role"] in ("user", "assistant")]
    lines = (
        f"errand move {conversation_id[-8:]} ",
        f"errand fork --at {message_ids[0]} {conversation_id[-8:]} --at ",
        f"errand run --conversation {other} --agent ",
        "errand agents remove ",
        "errand memory forget ",
    )
    messages, again, names, agents, every = _bash(_written(tmp_path, "bash"), *lines, environment=environment)
    assert messages.split() == again.split() == message_ids[::-1]
    assert (names, len(agents.split()), set(message_ids) < set(every.split())) == ("Assistant", 2, True)
    if shutil.which("fish") is not None:
        shown_by_fish = _fish(
            _written(tmp_path, "fish"), f"errand move {conversation_id[-8:]} ", {**environment, "HOME": str(tmp_path)}
        )
        assert {line.partition("\t")[0] for line in shown_by_fish} == set(message_ids)


def test_the_package_is_built_with_no_more_than_the_build_requires() -> None:
    """pyproject.toml names what the table of commands imports: the manual page is made while the package is built."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from errand.cli.table import TABLE; [entry.load() for entry in TABLE.entries]\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT_LIMIT_S
    )
    allowed = {"errand", "msgspec", "typing_extensions"}
    assert set(done.stdout.split()) <= allowed


async def test_completion_without_an_engine_starts_none(own_errand: Errand) -> None:
    done = await own_errand.run("complete", "task")
    assert (done.code, done.out, done.err) == (1, "", "")
    assert not (own_errand.home / "run" / "engine.json").exists()


def test_the_manual_page_has_every_command_and_is_accepted_by_groff() -> None:
    source = page()
    assert [name for entry in TABLE.entries if (name := entry.name).replace("-", "\\-") not in source] == []
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-ww"], input=source, capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert done.stderr == ""


async def test_help_of_a_command_is_that_of_its_option(errand: Errand) -> None:
    by_command, by_option = await errand.run("help", "mcp"), await errand.run("mcp", "--help")
    assert (by_command.code, by_command.out) == (0, by_option.out)
    unknown = await errand.run("help", "mccp")
    assert (unknown.code, "Did you mean mcp?" in unknown.err) == (2, True)
