"""A task whose commands run in the sandbox, in a home directory with keys."""

import os
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.sandbox.detection import find_sandbox, forget_sandbox
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import SandboxProfile
from errand.engine.tools.context import ToolContext
from errand.engine.tools.results import ToolResult
from tests.support.loop_parts import make_tool_context, run, text_of, tool_of

PLANTED = "sk-planted-key"
_PATH = os.environ["PATH"]


@pytest.fixture
async def sandboxed(tmp_path: Path) -> AsyncGenerator[ToolContext]:
    """A task's context in a home directory with keys, and with the app's data beside its workspace."""
    context = make_tool_context(tmp_path / "data")
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text(PLANTED)
    (home / ".netrc").write_text(PLANTED)
    (home / "notes.txt").write_text("notes")
    (tmp_path / "data" / "errand.db").write_text(PLANTED)
    profile = SandboxProfile(
        context.workspace, (home,), tmp_path / "data", context.output_dir, tmp_path / "data" / "cache"
    )
    sandbox = CommandSandbox(profile, stands=True)
    yield replace(context, sandbox=sandbox)
    await sandbox.close()


@pytest.fixture(params=["bubblewrap", "alone", "landlock"])
def boxed(
    request: pytest.FixtureRequest, sandboxed: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[ToolContext]:
    """A task in each form: a standing sandbox, one for each command, and Landlock, which gets bubblewrap hidden."""
    if request.param == "landlock":
        programs = tmp_path / "programs"
        programs.mkdir()
        monkeypatch.setenv("PATH", str(programs))
        forget_sandbox()
        assert find_sandbox().form == "landlock"
        monkeypatch.setenv("PATH", _PATH)
        yield sandboxed
        forget_sandbox()
    elif request.param == "alone":
        yield replace(sandboxed, sandbox=CommandSandbox(profile_of(sandboxed)))
    else:
        yield sandboxed


def profile_of(context: ToolContext) -> SandboxProfile:
    assert context.sandbox is not None
    return context.sandbox.profile


async def run_shell(context: ToolContext, line: str) -> str:
    return text_of(await shell_result(context, line))


async def shell_result(context: ToolContext, line: str, cancel: CancelSignal | None = None) -> ToolResult:
    return await run(tool_of(context, "shell"), {"command": line}, cancel)
