"""Commands that would wait for a person at a terminal: they fail at once with a reason, or continue without one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from errand.engine.tools.context import ToolContext
from errand.engine.tools.results import ToolResult
from tests.support.loop_parts import make_tool_context, run, text_of, tool_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

# A user's editor; this one never exits.
SETTINGS = {"user.name": "A", "user.email": "a@example.org", "core.editor": "sleep 1000; true"}


@pytest.fixture
def repository(tmp_path: Path) -> ToolContext:
    """Three commits; the settings name an editor that waits forever."""
    context = make_tool_context(tmp_path)

    def git(*arguments: str) -> None:
        subprocess.run(("git", *arguments), cwd=context.workspace, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    for name, value in SETTINGS.items():
        git("config", name, value)
    for name in ("one", "two", "three"):
        (context.workspace / name).write_text(name)
        git("add", name)
        git("commit", "-m", name)
    return context


async def shell(context: ToolContext, command: str) -> ToolResult:
    return await run(tool_of(context, "shell"), {"command": command, "timeout_secs": 20})


async def test_a_commit_without_a_message_fails_at_once_and_says_why(repository: ToolContext) -> None:
    result = await shell(repository, "echo more > one; git commit -a")
    assert result.is_error and "Aborting commit due to empty commit message." in text_of(result)


async def test_message_prepared_by_git_is_accepted(repository: ToolContext) -> None:
    result = await shell(
        repository, "git commit --amend && git revert HEAD && git merge --no-ff HEAD~1; git log --format=%s"
    )
    assert not result.is_error
    assert text_of(result).splitlines()[-4:] == ['Revert "three"', "three", "two", "one"]


async def test_interactive_rebase_fails_at_once_with_advice(repository: ToolContext) -> None:
    result = await shell(repository, "git rebase -i HEAD~2")
    assert result.is_error
    assert "There is no editor and nobody to type: set GIT_SEQUENCE_EDITOR" in text_of(result)
    output = await shell(
        repository, "GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -i HEAD~2 2>&1; git log --format=%s"
    )
    assert text_of(output).splitlines()[-2:] == ["two", "one"]


async def test_a_program_that_calls_an_editor_fails_at_once(repository: ToolContext) -> None:
    result = await shell(repository, 'sh -c "$EDITOR" || sh -c "$VISUAL some-file"')
    assert result.is_error and text_of(result).count("There is no editor and nobody to type") == 2


async def test_a_question_for_a_password_fails_at_once(repository: ToolContext) -> None:
    asked = r"printf 'protocol=https\nhost=example.org\n\n' | git -c credential.helper= credential fill"
    result = await shell(repository, asked)
    assert result.is_error and "terminal prompts disabled" in text_of(result)
