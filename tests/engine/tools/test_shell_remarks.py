"""What a command's end means, in words; and commands that wait for somebody who types."""

import shutil
from pathlib import Path

import pytest

from errand.engine.tools.context import ToolContext
from errand.engine.tools.shell.remarks import NOBODY_TYPES, exit_remark, input_remark, waits_for_keys
from tests.support.loop_parts import failure, make_tool_context, run, text_of, tool_of
from tests.support.processes import PYTHON


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


async def said(context: ToolContext, command: str) -> str:
    return text_of(await run(tool_of(context, "shell"), {"command": command}))


@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("kill -SEGV $$", "[killed by SIGSEGV (11)]"),
        ("kill -KILL $$", "[killed by SIGKILL (9): from outside; "),
        ("bash -c 'kill -ABRT $$'; exit $?", "[exit code 134: a program was killed by SIGABRT (6)]"),
        ("touch a; ./a", "[exit code 126: found, but it cannot be run: "),
        ("no-such-program", "[exit code 127: a program was not found: "),
        ("exit 3", "[exit code 3]"),
        ("exit 255", "[exit code 255]"),
        ("exit 128", "[exit code 128]"),
    ],
)
async def test_the_end_of_a_command_is_explained(context: ToolContext, command: str, end: str) -> None:
    assert end in await said(context, command)


def test_unknown_signals_have_their_number() -> None:
    assert exit_remark(-63) in ("[killed by signal 63]", "[killed by SIGRTMAX-1 (63)]")
    assert exit_remark(0) == ""


@pytest.mark.parametrize(
    "command", ["python3 -c 'input()'", "head -1 /dev/tty", "bash -c 'read x </dev/tty'", "stty size"]
)
async def test_a_command_that_asks_for_input_is_told_that_nobody_types(context: ToolContext, command: str) -> None:
    assert NOBODY_TYPES in await said(context, command)


async def test_an_interpreter_without_a_program_is_told_that_its_input_is_empty(context: ToolContext) -> None:
    assert "[it read its program from its input, which is empty" in await said(context, "python3")
    assert "empty" not in await said(context, "cat; true")


@pytest.mark.parametrize(
    "output",
    [
        "sudo: a terminal is required to read the password; either use the -S option or configure an askpass helper",
        "sudo: a password is required",
        "fatal: could not read Username for 'https://example.org': terminal prompts disabled",
        "Host key verification failed.",
        "me@example.org: Permission denied (publickey,password).",
    ],
)
def test_a_question_for_a_password_is_answered_with_what_to_do(output: str) -> None:
    assert "nobody types a password here" in input_remark("x", 1, output)


@pytest.mark.parametrize(
    ("output", "code"), [("3 tests failed", 1), ("not a terminal", 0), ("build aborted.", 2), ("Permission denied", 1)]
)
def test_other_failures_have_no_remark(output: str, code: int) -> None:
    assert input_remark("make", code, output) == ""


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
async def test_an_editor_is_ended_soon_with_advice(context: ToolContext) -> None:
    error = await failure(tool_of(context, "shell"), {"command": "echo a > f; vim f; echo never", "timeout_secs": 30})
    assert str(error).startswith("vim waited for keys, which nobody types: it was ended. To change a file use")
    assert error.summary == "waited for keys"
    assert "(no output)" in await said(context, "vim -es -c '%s/a/b/' -c wq f")
    assert (context.workspace / "f").read_text() == "b\n"


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
async def test_an_editor_to_which_a_script_gives_a_terminal_goes_on(context: ToolContext) -> None:
    script = "import pty, os, time; child, end = pty.fork()\nif not child: os.execlp('vim', 'vim', 'f')\n"
    typed = "time.sleep(2); os.write(end, b':wq\\r'); print(os.waitpid(child, 0)[1])"
    (context.workspace / "type.py").write_text(f"{script}{typed}\n")
    (context.workspace / "f").write_text("a\n")
    assert (await said(context, f"TERM=xterm {PYTHON} type.py")).strip() == "0"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("/usr/bin/vim x", "vim"),
        ("nano", "nano"),
        ("emacs --batch -f x", ""),
        ("nvim --headless -c q", ""),
        ("vim +wq x", ""),
        ("less x", ""),  # without a terminal it is cat
        ("bash vim x", ""),
    ],
)
def test_programs_for_the_whole_screen_are_known(line: str, name: str) -> None:
    assert waits_for_keys(line) == name
