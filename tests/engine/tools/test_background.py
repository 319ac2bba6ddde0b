"""Commands in the background of a conversation: output, input, stop, and what ends them."""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal, stopped_by
from errand.engine.sandbox.detection import find_sandbox
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import SandboxProfile
from errand.engine.tools.context import ShellContext, ToolContext
from errand.engine.tools.shell.background import MAX_RUNNING_COMMANDS, BackgroundCommands
from errand.protocol.background import BackgroundCommand
from errand.protocol.base import JsonObject
from tests.support.loop_parts import failure, make_tool_context, run, text_of, tool_of
from tests.support.processes import PYTHON, running, until

_SANDBOXES = [
    pytest.param(False, id="bare"),
    pytest.param(
        True, id="sandbox", marks=pytest.mark.skipif(find_sandbox().form != "bubblewrap", reason="needs bubblewrap")
    ),
]


@pytest.fixture(params=_SANDBOXES)
async def context(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[ToolContext]:
    tool_context = make_tool_context(tmp_path)
    if request.param:
        profile = SandboxProfile(
            tool_context.workspace, (), tmp_path / "data", tool_context.output_dir, tmp_path / "cache"
        )
        tool_context = replace(tool_context, sandbox=CommandSandbox(profile))
    yield tool_context
    await tool_context.processes.end()
    await tool_context.sessions.all.close()


async def shell(context: ToolContext, cancel: CancelSignal | None = None, **arguments: object) -> str:
    json_arguments: JsonObject = {name: value for name, value in arguments.items()}  # type: ignore[misc] -- tests give JSON
    return text_of(await run(tool_of(context, "shell"), json_arguments, cancel))


async def test_it_starts_is_read_and_is_stopped(context: ToolContext) -> None:
    line = "echo ready; until [ -e go ]; do sleep 0.02; done; echo gone; exec sleep 4711.4711"
    output = await shell(context, command=line, background=True)
    assert output.startswith(f"ready\n[background 1 runs in {context.workspace}. Read what is new with action output")
    assert await shell(context, action="output", id="1") == "(no new output)\n[background 1 is running]"
    (context.workspace / "go").touch()
    assert await shell(context, action="output", id="1", wait_secs=10) == "gone\n[background 1 is running]"
    assert "is running in" in await shell(context, action="list")
    assert "was stopped by the agent]" in await shell(context, action="stop", id="1")
    assert not running("4711.4711")
    assert "was stopped by the agent] before" in await shell(context, action="stop", id="1")


async def test_it_outlives_its_task_and_ends_with_the_conversation(context: ToolContext) -> None:
    await shell(context, command="(setsid sleep 4712 &) ; sleep 4712", background=True)
    await context.processes.end()
    assert running("4712")
    await context.sessions.all.close_conversation(context.sessions.conversation_id)
    assert not running("4712")


async def test_a_person_who_stops_the_task_stops_it(context: ToolContext) -> None:
    cancel = CancelSignal()
    await shell(context, cancel, command="sleep 4713", background=True)
    cancel.set(stopped_by("a person"))
    await until(lambda: not running("4713"))
    await until(lambda: context.sessions.get(BackgroundCommands, _none).commands()[0].ended_at is not None)
    assert "was stopped by a person" in await shell(context, command="true")


async def test_the_next_result_says_that_one_ended(context: ToolContext) -> None:
    await shell(context, command="until [ -e go ]; do sleep 0.02; done; exit 3", background=True)
    (context.workspace / "go").touch()
    await until(lambda: context.sessions.get(BackgroundCommands, _none).commands()[0].ended_at is not None)
    line = "[background 1 `until [ -e go ]; do sleep 0.02; done; exit 3` ended with exit code 3]"
    assert await shell(context, command="echo next") == f"next\n{line}"
    assert await shell(context, command="echo next") == "next"


async def test_a_command_that_ends_at_once_says_how(context: ToolContext) -> None:
    assert await shell(context, command="echo no; exit 7", background=True) == (
        "no\n[background 1 `echo no; exit 7` ended with exit code 7]"
    )


async def test_much_output_is_cut_and_kept_in_a_file(context: ToolContext) -> None:
    await shell(context, command="seq 100000; echo done; sleep 4714", background=True)
    commands = context.sessions.get(BackgroundCommands, _none)
    await until(lambda: commands.commands()[0].last_lines.endswith("done"))
    output = await shell(context, action="output", id="1")
    assert len(output) < 70_000
    assert re.search(r"\[([\d,]+) bytes left out; the full output is in (.*)\]", output) or "done" not in output
    text, size, next_offset = commands.piece(commands.get("1"), 0)
    assert text.startswith("1\n2\n") and next_offset < size


async def test_there_are_at_most_so_many(context: ToolContext) -> None:
    for _ in range(MAX_RUNNING_COMMANDS):
        await shell(context, command="sleep 4715", background=True)
    failed = await failure(tool_of(context, "shell"), {"command": "true", "background": True})
    assert str(failed) == f"{MAX_RUNNING_COMMANDS} background commands run in this conversation. Stop one first."


async def test_keys_of_the_app_are_not_in_the_output(context: ToolContext) -> None:
    context.redactor.add("sk-secret-0123456789")
    output = await shell(context, command="echo sk-secret-0123456789; sleep 4716", background=True)
    assert "sk-secret" not in output


async def test_an_unknown_one_says_which_there_are(context: ToolContext) -> None:
    failed = await failure(tool_of(context, "shell"), {"action": "output", "id": "9"})
    assert str(failed) == "There is no background command '9' in this conversation; there are: none."


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "echo \0", "background": True},
        {"command": "  ", "background": True},
        {"action": "output", "id": "9" * 1_000_000},
        {"action": "input", "id": "1", "text": "x" * 1_000_000},
        {"action": "input", "id": "1", "keys": ["no such key"]},
        {"action": "input", "id": "1", "text": "y"},
        {"action": "stop"},
    ],
    ids=["nul", "empty", "long id", "long text", "unknown key", "no terminal", "no id"],
)
async def test_hostile_arguments_give_a_short_error(context: ToolContext, arguments: JsonObject) -> None:
    if arguments.get("id") == "1":
        await shell(context, command="sleep 4720", background=True)
    failed = await failure(tool_of(context, "shell"), arguments)
    assert 0 < len(str(failed)) < 500


async def test_a_program_in_a_terminal_reads_what_is_typed(context: ToolContext) -> None:
    line = "tty -s && stty size; read -p 'Name? ' name; echo \"Hello $name\"; exec sleep 4717"
    output = await shell(context, command=line, background=True, pty=True)
    assert output.startswith("40 120\nName?")
    assert "waits for input" in await shell(context, action="output", id="1")
    output = await shell(context, action="input", id="1", text="Ada", keys=["enter"])
    assert "Hello Ada" in output
    await shell(context, action="input", id="1", keys=["ctrl-c"])
    await until(lambda: not running("4717"))


async def test_a_terminal_without_the_background_waits_for_the_end(context: ToolContext) -> None:
    assert await shell(context, command="tty -s && echo $TERM; exit 0", pty=True) == "xterm-256color"
    failed = await failure(tool_of(context, "shell"), {"command": "read x", "pty": True, "timeout_secs": 0.5})
    assert "Timed out after 0.5 s; it waited for input" in str(failed)
    assert await shell(context, action="list") == "No background commands."


async def test_people_can_type_into_a_terminal_for_which_a_call_waits(context: ToolContext) -> None:
    seen: list[tuple[BackgroundCommand, ...]] = []
    watched = replace(context, shell=ShellContext(background_changed=seen.append))
    line = "read -p 'Name? ' name; echo \"Hello $name\""
    call = asyncio.create_task(shell(watched, command=line, pty=True))
    await until(lambda: bool(seen) and bool(seen[-1]))
    assert (seen[-1][0].waits_for_input, seen[-1][0].last_lines) == (True, "Name? ")
    commands = context.sessions.get(BackgroundCommands, _none)
    commands.type(commands.get("1"), b"Ada\r")
    assert await call == "Name? Ada\nHello Ada"
    assert seen[-1] == () and await shell(context, action="list") == "No background commands."


async def test_a_terminal_into_which_nobody_types_goes_on_in_the_background(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errand.engine.tools.shell.background_results._PATIENCE_S", 0.2)
    output = await shell(context, command="read -p 'Name? ' name; exit 3", pty=True)
    head = "[it waits for input, and goes on as background 1: type with action input, or stop it]"
    assert output == f"Name? \n{head}"
    output = await shell(context, action="input", id="1", text="Ada", keys=["enter"], wait_secs=5)
    assert output.endswith("ended with exit code 3]")


async def test_a_program_that_reads_single_keys_waits_for_input(context: ToolContext) -> None:
    keys = "import sys, termios, tty, select; tty.setraw(0); print('key?', flush=True); select.select([0], [], [])"
    await shell(context, command=f'{PYTHON} -c "{keys}"', background=True, pty=True)
    commands = context.sessions.get(BackgroundCommands, _none)
    await until(lambda: commands.waits_for_input(commands.get("1")))
    await shell(context, action="output", id="1")  # the next wait ends with what comes after this
    assert "ended with exit code 0" in await shell(context, action="input", id="1", text="q", wait_secs=10)


async def test_a_terminal_says_which_signal_killed_its_program(context: ToolContext) -> None:
    output = await shell(context, command="bash -c 'kill -SEGV $$'", pty=True)
    assert "[exit code 139: a program was killed by SIGSEGV (11)]" in output


async def test_what_is_typed_is_judged_as_code_and_an_interrupt_is_free(context: ToolContext) -> None:
    tool = tool_of(context, "shell")
    access = tool.access({"action": "input", "id": "1", "text": "rm -rf x", "keys": ["enter"]})
    assert (access.tier, access.code) == ("run", "rm -rf x<enter>")
    assert tool.access({"action": "input", "id": "1", "keys": ["ctrl-c"]}).tier == "free"


async def test_clients_learn_of_the_start_and_the_end(context: ToolContext) -> None:
    seen: list[tuple[BackgroundCommand, ...]] = []
    watched = replace(context, shell=ShellContext(background_changed=seen.append))
    await shell(watched, command="sleep 4718", background=True)
    assert [command.ended_at for command in seen[-1]] == [None]
    await shell(watched, action="stop", id="1")
    assert seen[-1][0].ended_at is not None and seen[-1][0].stopped_by == "the agent"


async def test_a_server_in_the_background_is_reached_by_the_next_command(context: ToolContext) -> None:
    (context.workspace / "index.html").write_text("mine")
    server = "python3 -m http.server -b 127.0.0.1 8127"
    await shell(context, command=server, background=True)
    ask = "for i in $(seq 100); do curl -s http://127.0.0.1:8127/ && break; sleep 0.05; done"
    assert await shell(context, command=ask) == "mine"
    if context.sandbox is not None:
        (await context.sandbox.loopback.connect(8127)).close()
    await shell(context, action="stop", id="1")
    if context.sandbox is not None:
        assert not context.sandbox.loopback.is_open


def _none() -> BackgroundCommands:
    raise AssertionError("there is no session yet")


async def test_waiting_for_output_ends_when_the_task_is_stopped(context: ToolContext) -> None:
    await shell(context, command="sleep 4719", background=True)
    cancel = CancelSignal()
    reading = asyncio.create_task(
        failure(tool_of(context, "shell"), {"action": "output", "id": "1", "wait_secs": 60}, cancel)
    )
    await asyncio.sleep(0)
    cancel.set()
    assert str(await reading) == "Operation aborted"
