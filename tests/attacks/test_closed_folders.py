"""Folders without read permission are skipped, and everything else is found."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from errand.engine.agent.prompt.environment import read_environment
from errand.engine.agent.prompt.system_prompt import read_parts
from errand.engine.agent.prompt.workspace import PromptContext
from errand.engine.tools.code.search import list_files, search
from errand.engine.tools.files.file_walk import keep_all

_NOBODY = 65_534


@contextmanager
def no_superuser() -> Generator[None]:
    """The superuser may read everything, so another user runs this block."""
    if os.getuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Generator[Path]:
    """A folder with closed folders, one that only lists names, and a file that cannot be read."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name in ("closed", "names", ".agents/skills/closed", ".agents/skills/good", ".git"):
            (root / name).mkdir(parents=True)
        for name in ("open", "secret", "closed/file", "names/file"):
            (root / name).write_text("needle")
        for name in ("closed", "good"):
            (root / ".agents" / "skills" / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: x\n---\n")
        closed = ("secret", "closed", ".agents/skills/closed", ".git")
        root.chmod(0o755)
        (root / "names").chmod(0o444)
        for name in closed:
            (root / name).chmod(0)
        yield root
        for name in (*closed, "names"):
            (root / name).chmod(0o700)


def test_what_may_not_be_looked_at_is_left_out_and_the_rest_is_found(folder: Path) -> None:
    occasion = PromptContext("", folder, "auto", folder / "home")
    read_parts(occasion)  # its texts are loaded
    with no_superuser():
        parts = {part.name: part for part in read_parts(occasion)}
        listed = list_files(folder, "", "", lambda: False, keep_all).lines
        below = list_files(folder, "", "**", lambda: False, keep_all).lines
        environment = read_environment(folder, folder / "home", datetime.now(UTC))
        matches = search(folder, "", "needle", True, "", lambda: False, keep_all).lines
    assert listed == [".agents/", ".git/", "closed/", "names/", "open", "secret"]
    assert "names/file" in below and "closed/file" not in below
    assert matches == ["open:1: needle"]
    assert environment.git_branch is None and set(listed) <= set(environment.entries or ())
    assert list(parts) == ["role", "rules", "skills"]
    assert parts["skills"].sources == (str(folder / ".agents" / "skills" / "good" / "SKILL.md"),)
