import resource
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.results import ToolResult
from errand.engine.tools.shell.tool import Shell
from errand.protocol.base import JsonObject
from errand.system.environment import SYSTEM_PATH
from tests.support.loop_parts import detail, failure, make_tool_context, run, task_of, text_of, tool_of


async def test_result_of_a_command_has_its_streams_exit_code_and_time(tmp_path: Path) -> None:
    result = await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": "echo out; echo err >&2; exit 3"})
    assert text_of(result) == "out\n[stderr]\nerr\n[exit code 3]"
    assert result.is_error
    assert [detail(result, name) for name in ("stdout", "stderr", "exit_code")] == ["out\n", "err\n", 3]
    assert isinstance(detail(result, "duration_ms"), int)


async def test_the_end_of_what_a_failed_command_wrote_is_kept_without_our_own_remarks(tmp_path: Path) -> None:
    shell = tool_of(make_tool_context(tmp_path), "shell")
    failed = await run(shell, {"command": "printf 'a\\nb\\n\\n[ERROR] c\\n'; echo d >&2; exit 1"})
    assert detail(failed, "last_lines") == ["b", "[ERROR] c", "d"]
    assert detail(await run(shell, {"command": "exit 1"}), "last_lines") == ["(no output)"]
    late = await failure(shell, {"command": "echo before; trap '' TERM; sleep 61", "timeout_secs": 0.2})
    lines = detail(late, "last_lines")
    assert isinstance(lines, list) and lines[-2:] == ["Output so far:", "before"]


async def test_a_command_without_output_says_so(tmp_path: Path) -> None:
    result = await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": "true"})
    assert (text_of(result), result.is_error) == ("(no output)", False)


async def test_a_command_runs_in_the_workspace_unless_told_otherwise(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    (context.workspace / "sub").mkdir()
    shell = tool_of(context, "shell")
    assert text_of(await run(shell, {"command": "pwd"})) == str(context.workspace)
    assert text_of(await run(shell, {"command": "pwd", "working_dir": "sub"})) == str(context.workspace / "sub")


async def test_a_command_gets_no_input_and_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    result = await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": "cat; env"})
    assert "secret" not in text_of(result)
    assert "ERRAND_TASK=task_1" in text_of(result)


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    error = await failure(tool_of(make_tool_context(tmp_path), "shell"), {"command": "pwd", "working_dir": "nowhere"})
    assert "There is no folder" in str(error) and "nowhere" in str(error)


@pytest.mark.parametrize("command", ["echo a\0b", "echo " + "x" * 3_000_000], ids=["NUL", "too long"])
async def test_a_command_the_system_refuses_is_a_clear_error(tmp_path: Path, command: str) -> None:
    error = await failure(tool_of(make_tool_context(tmp_path), "shell"), {"command": command})
    assert "could not be started" in str(error)


async def test_a_timeout_ends_the_command_and_keeps_its_output(tmp_path: Path) -> None:
    shell = tool_of(make_tool_context(tmp_path), "shell")
    error = await failure(shell, {"command": "echo before; sleep 61; echo after", "timeout_secs": 0.2})
    assert str(error).startswith("Timed out after 0.2 s.\nStopped ")
    assert "sleep 61 (pid " in str(error) and str(error).endswith("Output so far:\nbefore")
    assert detail(error, "exit_code") is None


async def test_a_cancel_ends_the_command_and_keeps_its_output(tmp_path: Path) -> None:
    shell, cancel = tool_of(make_tool_context(tmp_path), "shell"), CancelSignal()

    def stop(result: ToolResult) -> None:
        cancel.set()

    with pytest.raises(Exception, match="Operation aborted") as caught:
        await run(shell, {"command": "echo before; sleep 62"}, cancel, stop)
    assert "sleep 62 (pid " in str(caught.value) and "before" in str(caught.value)


async def test_a_cancelled_task_starts_nothing(tmp_path: Path) -> None:
    context, cancel = make_tool_context(tmp_path), CancelSignal()
    cancel.set()
    assert str(await failure(tool_of(context, "shell"), {"command": "touch made"}, cancel)) == "Operation aborted"
    assert not (context.workspace / "made").exists()


async def test_background_process_does_not_delay_the_result(tmp_path: Path) -> None:
    async with task_of(make_tool_context(tmp_path)) as context:
        shell = tool_of(context, "shell")
        result = await run(shell, {"command": "sleep 63 & nohup sleep 64 >/dev/null 2>&1 & echo started"})
        assert text_of(result).startswith("started\n[2 still running in the background, until the task ends: ")
        assert "sleep 63 (pid " in text_of(result) and "sleep 64 (pid " in text_of(result)


async def test_a_background_process_outlives_the_pipe_of_its_command(tmp_path: Path) -> None:
    async with task_of(make_tool_context(tmp_path)) as context:
        shell = tool_of(context, "shell")
        chatty = "(while [ ! -e stop ]; do echo noise; done; echo unharmed > end) & echo started"
        await run(shell, {"command": chatty})
        result = await run(shell, {"command": "touch stop; while [ ! -s end ]; do sleep 0.01; done; cat end"})
        assert text_of(result) == "unharmed"


async def test_last_output_of_a_process_substitution_is_not_lost(tmp_path: Path) -> None:
    result = await run(tool_of(make_tool_context(tmp_path), "shell"), {"command": "echo text > >(cat)"})
    assert result.details is not None
    # Only the output: the text may also say that `cat`, which has closed its pipe, still runs for a moment.
    assert result.details["stdout"] == "text\n"


async def test_access_names_the_command_and_its_folder(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    access = tool_of(context, "shell").access({"command": "ls", "working_dir": ".."})
    assert (access.command, access.reads) == ("ls", (context.workspace.parent,))
    assert access.text == f"Run `ls` in {context.workspace.parent}"


async def test_command_without_free_descriptors_is_a_clear_error_and_leaks_none(tmp_path: Path) -> None:
    shell = tool_of(make_tool_context(tmp_path), "shell")
    assert text_of(await run(shell, {"command": "echo warm"})) == "warm"
    before = psutil.Process().num_fds()
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for left in range(5):
        resource.setrlimit(resource.RLIMIT_NOFILE, (before + left, most))
        try:
            error = await failure(shell, {"command": "true"})
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
        assert "Too many open files" in str(error)
        assert psutil.Process().num_fds() == before


async def test_a_command_that_only_looks_finds_its_programs_and_patterns_in_a_fixed_way(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    variables = {"PATH": "/elsewhere", "BASHOPTS": "dotglob", "SHELLOPTS": "noglob", "GLOBIGNORE": "a.txt"}
    context = replace(context, environment={**context.environment, **variables})
    for name in ("a.txt", ".b.txt"):
        (context.workspace / name).touch()
    shell = Shell(context)
    line: JsonObject = {"command": 'echo *; echo "$PATH"; echo x | cat'}
    allowed = replace(shell.access(line), only_looks=True, program_folders=("/usr/bin", "/opt/tools/bin"))
    shell.allow("call_1", allowed)
    result = await shell.execute("call_1", line, CancelSignal(), lambda _: None)
    assert text_of(result) == f"a.txt\n{SYSTEM_PATH}:/opt/tools/bin\nx"
