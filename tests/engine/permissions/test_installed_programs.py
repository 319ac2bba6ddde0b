"""Where programs are found that run without asking: the system, and folders of the user that nobody else can change."""

import os
import sys
from pathlib import Path
from tempfile import gettempdir

import pytest

from errand.engine.permissions.files.folder_layout import FolderLayout
from errand.engine.permissions.programs.installed import find_program

# A folder outside the system that is the user's own: that of the Python that runs the tests.
OWN = Path(sys.executable).parent


def layout(workspace: Path) -> FolderLayout:
    return FolderLayout(str(workspace), "/nonexistent/home", ())


def test_a_program_of_the_system_comes_first(tmp_path: Path) -> None:
    assert find_program("ls", layout(tmp_path), str(OWN)) in ("/bin/ls", "/usr/bin/ls")


@pytest.mark.skipif(OWN.is_relative_to(gettempdir()), reason="programs below /tmp could be replaced by anybody")
def test_a_program_in_a_folder_of_the_user_is_found_by_its_path(tmp_path: Path) -> None:
    assert find_program("pytest", layout(tmp_path), f"relative:{OWN}") == str(OWN / "pytest")


def test_a_program_that_tools_or_others_could_replace_is_not_found(tmp_path: Path) -> None:
    program = tmp_path / "rg-of-the-workspace"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_program(program.name, layout(tmp_path), str(tmp_path)) is None
    assert find_program(program.name, layout(Path("/nonexistent/workspace")), str(tmp_path)) is None
    assert find_program("pytest", layout(OWN), str(OWN)) is None
    assert find_program("pytest", layout(tmp_path), os.curdir) is None
