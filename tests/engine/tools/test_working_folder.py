"""The folder in which a shell ends is where the conversation's next command runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.tools.context import ShellContext, ToolContext
from errand.protocol.base import JsonObject
from tests.support.loop_parts import failure, make_tool_context, run, text_of, tool_of


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    tool_context = make_tool_context(tmp_path)
    (tool_context.workspace / "sub" / "inner").mkdir(parents=True)
    return tool_context


async def said(context: ToolContext, line: str, **others: str) -> str:
    arguments: JsonObject = {"command": line, **others}
    return text_of(await run(tool_of(context, "shell"), arguments))


async def test_the_next_command_runs_where_the_last_one_ended(context: ToolContext) -> None:
    assert await said(context, "cd sub && echo there") == f"there\n[the folder is now {context.workspace}/sub]"
    assert await said(context, "pwd") == str(context.workspace / "sub")
    assert await said(context, "cd inner; false") == (
        f"(no output)\n[exit code 1]\n[the folder is now {context.workspace}/sub/inner]"
    )
    assert await said(context, "pwd", working_dir=".") == str(context.workspace)
    assert await said(context, "pwd") == str(context.workspace / "sub" / "inner")
    assert await said(context, 'cd "$OLDPWD"/../..; cd ..; pwd') != ""


async def test_the_policy_sees_the_folder_in_which_it_will_run(context: ToolContext) -> None:
    await said(context, "cd sub")
    shell = tool_of(context, "shell")
    access = shell.access(shell.prepare_arguments({"command": "rm *"}))
    assert access.reads == (context.workspace / "sub",)
    assert shell.prepare_arguments({"command": "rm *"})["working_dir"] == str(context.workspace / "sub")


async def test_a_folder_outside_of_the_workspace_is_not_kept(context: ToolContext) -> None:
    await said(context, "cd sub")
    assert "is outside of the workspace: the next command runs in" in await said(context, "cd /usr")
    assert await said(context, "pwd") == str(context.workspace / "sub")


async def test_a_link_out_of_the_workspace_is_not_kept(context: ToolContext) -> None:
    (context.workspace / "out").symlink_to("/usr")
    assert "outside of the workspace" in await said(context, "cd out")
    assert await said(context, "pwd") == str(context.workspace)


async def test_a_folder_that_is_gone_is_said_and_the_workspace_is_used(context: ToolContext) -> None:
    await said(context, "cd sub/inner")
    (context.workspace / "sub" / "inner").rmdir()
    output = await said(context, "pwd")
    assert (
        output
        == f"{context.workspace}\n[the folder {context.workspace}/sub/inner is gone: this ran in {context.workspace}]"
    )
    assert await said(context, "pwd") == str(context.workspace)


async def test_what_a_command_prints_changes_nothing(context: ToolContext) -> None:
    assert await said(context, f"echo cd {context.workspace}/sub; pwd") != ""
    assert await said(context, "pwd") == str(context.workspace)


async def test_a_command_that_is_ended_keeps_the_folder(context: ToolContext) -> None:
    arguments: JsonObject = {"command": "cd sub; sleep 60", "timeout_secs": 0.3}
    assert "Stopped cd sub; sleep 60 (pid" in str(await failure(tool_of(context, "shell"), arguments))
    assert await said(context, "pwd") == str(context.workspace)


async def test_a_new_task_begins_in_the_stored_folder_and_stores_each_change(context: ToolContext) -> None:
    stored_folders: list[str] = []
    later = replace(context, shell=ShellContext(str(context.workspace / "sub"), stored_folders.append))
    assert await said(later, "pwd") == str(context.workspace / "sub")
    await said(later, "cd inner")
    await said(later, "cd ../..")
    assert stored_folders == [str(context.workspace / "sub" / "inner"), ""]


async def test_names_with_blanks_and_line_breaks_are_kept(context: ToolContext) -> None:
    (context.workspace / "a b\nc").mkdir()
    await said(context, "cd a*c")
    assert await said(context, "pwd") == f"{context.workspace}/a b\nc"
