"""Changes by real commands in files that they name: listed, undone and redone."""

import os
import stat
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from errand.engine.checkpoints.notes import noted_changes
from errand.engine.core.errors import NotFound
from errand.engine.tools.results import ToolError
from tests.engine.checkpoints.parts import Work, work_in


@pytest.fixture
async def work(tmp_path: Path) -> AsyncGenerator[Work]:
    async with work_in(tmp_path) as opened_work:
        yield opened_work


def tree(work: Work) -> dict[str, str]:
    """The files of the workspace with their texts, and its empty folders."""
    paths = {str(path.relative_to(work.folder)): path for path in work.folder.rglob("*") if ".git" not in path.parts}
    return {
        name: "folder" if path.is_dir() else path.read_bytes().decode("latin-1")
        for name, path in sorted(paths.items())
        if path.is_file() or not any(path.iterdir())
    }


DIFF = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+changed\n"


@pytest.mark.parametrize(
    "command",
    [
        "echo more >> a.txt",
        "echo other > a.txt",
        "sed -i s/one/two/ a.txt",
        "sed -i s/one/two/ *.txt",
        'for f in *.txt; do sed -i s/one/two/ "$f"; done',
        "grep -l one *.txt | xargs sed -i s/one/two/",
        "rm a.txt",
        "rm -rf folder",
        "rm -r folder a.txt empty",
        "mv a.txt b.txt",
        "mv a.txt folder/",
        "mv a.txt sub/b.txt 2>/dev/null || mkdir sub && mv a.txt sub/b.txt",
        "mv folder other",
        "cp a.txt folder",
        "cp -r folder other",
        "cat a.txt | tee b.txt > c.txt",
        "cat > new.txt <<'END'\ntext\nEND",
        "touch x && mkdir -p y/z && echo deep > y/z/file",
        "cd folder && echo changed > inner.txt",
        "bash -c 'echo inner > folder/inner.txt'",
        f"patch -p1 <<'END'\n{DIFF}END",
        "patch -p1 < the.diff",
        "F=a.txt; echo variable > $F",
        "truncate -s 0 a.txt",
        "dd if=/dev/zero of=a.txt bs=10 count=1 status=none",
        "ln a.txt hard.txt",
        "chmod 600 a.txt && echo x >> a.txt",
        "echo x > a.txt; false",
    ],
)
async def test_what_a_command_changes_in_files_that_it_names_is_undone_and_redone(work: Work, command: str) -> None:
    work.put("a.txt", "one\n", mode=0o644)
    work.put("the.diff", DIFF)
    work.put("folder/inner.txt", "one\n")
    work.put("folder/deep/x.bin", b"\0\1\2")
    (work.folder / "empty").mkdir()
    before = tree(work)
    await work.shell(1, command)
    after = tree(work)
    assert after != before
    task_changes = await work.changes()
    assert {file.command_steps for file in task_changes.files} == {(1,)}
    result = await work.undo()
    assert (result.conflicts, tree(work)) == ((), before)
    assert {file.state for file in (await work.files()).values()} == {"undone"}
    await work.redo()
    assert tree(work) == after
    assert noted_changes(work.services.checkpoints.contents) != []


async def test_the_list_says_what_a_command_did(work: Work) -> None:
    work.put("a.txt", "one\ntwo\n")
    work.put("gone.txt", "1\n2\n3\n")
    await work.write(1, "a.txt", "one\n2\n")
    await work.shell(2, "sed -i s/one/1/ a.txt; rm gone.txt; echo new > new.txt")
    files = await work.files()
    assert {
        name: (file.added, file.removed, file.steps, file.command_steps, file.is_new, file.is_deleted)
        for name, file in files.items()
    } == {
        "a.txt": (2, 2, (1, 2), (2,), False, False),
        "gone.txt": (0, 3, (2,), (2,), False, True),
        "new.txt": (1, 0, (2,), (2,), True, False),
    }
    await work.undo(step=1)
    assert work.read("a.txt") == "1\ntwo\n"


async def test_permissions_come_back_with_the_content(work: Work) -> None:
    file = work.put("run.sh", "old\n", mode=0o755)
    await work.shell(1, "rm run.sh; echo new > run.sh")
    assert stat.S_IMODE(file.stat().st_mode) != 0o755
    await work.undo()
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("old\n", 0o755)


@pytest.mark.parametrize(
    "command",
    [
        "true",
        "cat a.txt",
        "grep one a.txt > /dev/null",
        "touch a.txt",
        "python3 -c 'print(1)'",
        "git status",
        "ls > /dev/null",
    ],
)
async def test_a_command_that_changes_no_content_has_no_changes(work: Work, command: str) -> None:
    work.put("a.txt", "one\n")
    await work.shell(1, command)
    with pytest.raises(NotFound, match="changed no files"):
        await work.undo()
    assert noted_changes(work.services.checkpoints.contents) == []


async def test_what_is_outside_of_the_workspace_or_belongs_to_git_is_not_kept(work: Work, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine\n")
    (work.folder / "link.txt").symlink_to(outside)
    work.put(".git/config", "[core]\n")
    await work.shell(1, f"echo x > {outside}; echo y > link.txt; echo z >> .git/config; echo a > a.txt")
    assert list(await work.files()) == ["a.txt"]


async def test_a_file_of_git_is_restored_and_the_index_stays_as_it_was(work: Work) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(("git", *arguments), cwd=work.folder, check=True, capture_output=True)

    work.put("a.txt", "committed\n")
    git("init", "-q")
    git("add", "a.txt")
    git("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "First")
    work.put("a.txt", "not committed\n")
    await work.shell(1, "git checkout -- a.txt")
    assert work.read("a.txt") == "committed\n"
    index = (work.folder / ".git/index").read_bytes()
    await work.undo()
    assert work.read("a.txt") == "not committed\n"
    assert (work.folder / ".git/index").read_bytes() == index


async def test_what_is_too_large_is_said_and_leaves_the_rest_to_be_undone(work: Work) -> None:
    for number in range(201):
        work.put(f"many/{number}", "x")
    work.put("large.bin", bytes(20_000_001))
    work.put("small.txt", "small\n")
    await work.shell(1, "rm -r many large.bin small.txt")
    files = await work.files()
    assert len(files) == 204
    assert {name: (file.state, file.can_undo) for name, file in files.items() if not name.startswith("many/")} == {
        "many": ("changed", True),
        "large.bin": ("not_kept", False),
        "small.txt": ("changed", True),
    }
    assert "could not be kept" in files["large.bin"].note
    assert "not kept" in (await work.undo("large.bin")).conflicts[0].text
    result = await work.undo()
    assert (result.conflicts, len(tree(work))) == ((), 202)
    await work.redo()
    assert tree(work) == {}


async def test_a_command_that_is_stopped_or_times_out_has_its_changes(work: Work) -> None:
    work.put("a.txt", "one\n")
    with pytest.raises(ToolError, match="Timed out"):
        await work.shell(1, "echo two > a.txt; sleep 60", timeout_secs=3)
    await work.undo()
    assert work.read("a.txt") == "one\n"


async def test_a_command_in_the_background_has_its_changes_when_it_has_ended(work: Work) -> None:
    work.put("a.txt", "one\n")
    shell = work.tool(name="shell")
    started = {"command": "read -r line < fifo; echo $line > a.txt", "background": True}
    os.mkfifo(work.folder / "fifo")
    await work.use(shell, **started)
    with pytest.raises(NotFound):
        await work.undo()
    (work.folder / "fifo").write_text("two\n")
    await work.use(shell, action="output", id="1", wait_secs=10)
    await work.use(shell, action="stop", id="1")
    assert work.read("a.txt") == "two\n"
    await work.undo()
    assert work.read("a.txt") == "one\n"


async def test_without_space_for_what_it_replaces_a_command_still_runs(work: Work) -> None:
    work.put("a.txt", "one\n")
    folder = work.services.paths.replaced
    folder.rmdir()
    folder.write_text("no folder")
    assert await work.shell(1, "echo two > a.txt; echo done") == "done"
    assert work.read("a.txt") == "two\n"
