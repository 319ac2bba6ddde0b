"""Patches: git and the program `patch` apply what is copied."""

import subprocess
from pathlib import Path

import pytest

from errand.client.patch import patch_of, patch_of_diff
from errand.engine.tools.code.edits import text_hunks
from errand.protocol.changes import DiffHunk, FileDiff

BEFORE = "".join(f"line {number}\n" for number in range(1, 31))
NAMES = ["a.txt", "with blanks/b c.txt", 'quote"d.txt', "grüße\t€.txt", "line\nbreak"]


def diff(folder: Path, name: str, before: str, after: str) -> FileDiff:
    hunks = [
        DiffHunk(id="h", header=hunk.header, text=hunk.text, added=hunk.added, removed=hunk.removed)
        for hunk in text_hunks(before, after)
    ]
    return FileDiff(path=str(folder / name), name=name, hunks=tuple(hunks), added=0, removed=0)


def git_apply(folder: Path, patch: str) -> None:
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=folder, input=patch.encode(), check=True)


@pytest.mark.parametrize("name", NAMES)
def test_git_applies_a_patch_of_a_change_a_new_and_a_deleted_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    changed = BEFORE.replace("line 3\n", "third\n").replace("line 30\n", "last\f without newline")
    git_apply(tmp_path, patch_of([diff(tmp_path, name, "", BEFORE)]))
    assert path.read_text() == BEFORE
    git_apply(tmp_path, patch_of([diff(tmp_path, name, BEFORE, changed)]))
    assert path.read_text() == changed
    git_apply(tmp_path, patch_of([diff(tmp_path, name, changed, "")]))
    assert not path.exists()


def test_one_patch_has_several_files_and_leaves_out_those_without_lines(tmp_path: Path) -> None:
    binary = FileDiff(path=str(tmp_path / "b"), name="b", hunks=(), added=0, removed=0, note="It is binary.")
    git_apply(tmp_path, patch_of([diff(tmp_path, "a", "", "1\n"), binary, diff(tmp_path, "c", "", "2\n")]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]


def test_the_patch_of_a_shown_diff_has_its_names() -> None:
    file_diff = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-old\n+new\n"
    assert patch_of_diff(file_diff) == ("diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n")
    assert patch_of_diff("Too large to be compared: 9 characters.\n+z\n") == ""
