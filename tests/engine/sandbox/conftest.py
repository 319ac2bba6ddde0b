"""A task whose commands run in the sandbox, in a home directory with keys."""

from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import SandboxProfile
from errand.engine.tools.base import ToolContext, ToolResult
from tests.support.loop_parts import make_tool_context, run, text_of, tool_of

PLANTED = "sk-planted-key"


@pytest.fixture
def sandboxed(tmp_path: Path) -> ToolContext:
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
    return replace(context, sandbox=CommandSandbox(profile))


def profile_of(context: ToolContext) -> SandboxProfile:
    assert context.sandbox is not None
    return context.sandbox.profile


async def run_shell(context: ToolContext, line: str) -> str:
    return text_of(await shell_result(context, line))


async def shell_result(context: ToolContext, line: str, cancel: CancelSignal | None = None) -> ToolResult:
    return await run(tool_of(context, "shell"), {"command": line}, cancel)
