"""Files below the top of a workspace that configure git, editors or agents: no command changes or makes them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.sandbox import protected_files
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.tools.context import ToolContext
from errand.engine.tools.python.session import PythonSession
from tests.engine.sandbox.conftest import PLANTED, profile_of, run_shell
from tests.support.loop_parts import run, task_of, text_of, tool_of
from tests.support.processes import until

_AS_ANYONE = "git -c user.name=a -c user.email=a@b"
_FILES = (".envrc", "AGENTS.md", ".vscode/tasks.json", ".mcp.json", ".github/workflows/ci.yml", ".claude/settings.json")


def put(folder: Path, *names: str, text: str = "mine\n") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def make_repository(context: ToolContext, folder: str) -> Path:
    bare = replace(context, sandbox=None)
    await run_shell(
        bare, f"git init -q {folder} && cd {folder} && {_AS_ANYONE} commit -q --allow-empty -m one; cd $OLDPWD"
    )
    return context.workspace / folder / ".git"


@pytest.mark.parametrize("folder", ["sub", "packages/deep/er"])
async def test_those_that_exist_stay_as_they_are(boxed: ToolContext, folder: str) -> None:
    put(boxed.workspace / folder, *_FILES, "normal.txt")
    before = contents(boxed.workspace)
    await run_shell(
        boxed,
        f"cd {folder}; for f in {' '.join(_FILES)}; do echo evil >> $f; rm -f $f; echo evil > $f; mv $f x; done; "
        "rm -rf .vscode .claude .github; mkdir -p .vscode; echo evil > .vscode/tasks.json; "
        "echo evil > .vscode/new.json; true",
    )
    left = contents(boxed.workspace)
    assert {name: left.get(name) for name in before} == before
    assert not [name for name, text in left.items() if Path(name).name in before and "evil" in text]
    assert f"{folder}/.vscode/new.json" not in left


@pytest.mark.parametrize("folder", ["sub", "packages/deep/er"])
async def test_new_ones_are_moved_away(boxed: ToolContext, folder: str) -> None:
    put(boxed.workspace, "sub/normal.txt")
    names = [name for name in _FILES if name != ".github/workflows/ci.yml"]
    printed = await run_shell(
        boxed,
        f"mkdir -p {folder}/.vscode {folder}/.claude; cd {folder}; for f in {' '.join(names)}; do echo > $f; done",
    )
    assert f"{folder}/.envrc" in printed and "not kept" in printed
    assert [name for name in contents(boxed.workspace) if name != "sub/normal.txt"] == []


async def test_a_repository_stays_as_it_is(boxed: ToolContext) -> None:
    git = await make_repository(boxed, "libs/one")
    before = (git / "config").read_text()
    await run_shell(
        boxed,
        "cd libs/one; echo evil > .git/hooks/pre-commit; git config core.fsmonitor evil; rm -f .git/config; "
        "mv .git/hooks .git/old; cp -r .git new; echo evil > new/hooks/pre-commit; rm -rf .git; mv -T new .git; true",
    )
    assert (git / "config").read_text() == before
    assert not (git / "hooks" / "pre-commit").exists()


async def test_work_in_a_repository_goes_on(boxed: ToolContext) -> None:
    await make_repository(boxed, "libs/one")
    printed = await run_shell(
        boxed, f"(cd libs/one && echo a > a && git add a && {_AS_ANYONE} commit -qm two && git log --oneline | wc -l)"
    )
    assert printed == "2"


async def test_a_new_repository_names_no_program(boxed: ToolContext) -> None:
    await run_shell(
        boxed,
        "git init -q sub; echo evil > sub/.git/hooks/pre-commit; chmod +x sub/.git/hooks/pre-commit; "
        "git -C sub config core.fsmonitor evil; git -C sub config user.name A",
    )
    git = boxed.workspace / "sub" / ".git"
    assert not (git / "hooks" / "pre-commit").exists()
    assert "evil" not in (git / "config").read_text() and "name = A" in (git / "config").read_text()


async def test_a_clone_in_a_new_folder_has_its_files(sandboxed: ToolContext) -> None:
    await make_repository(sandboxed, "source")
    put(sandboxed.workspace / "source", "AGENTS.md", ".vscode/tasks.json", "src/.editorconfig")
    bare = replace(sandboxed, sandbox=None)
    await run_shell(bare, f"git -C source add -f . && cd source && {_AS_ANYONE} commit -qm two; cd $OLDPWD")
    printed = await run_shell(sandboxed, "git clone -q source new/copy && git -C new/copy status --short")
    assert printed == "(no output)"
    assert await run_shell(sandboxed, "git -C new/copy status --short") == "(no output)"


async def test_a_folder_is_not_made_a_repository_to_keep_its_files(boxed: ToolContext) -> None:
    put(boxed.workspace, "sub/normal.txt")
    assert "sub/.envrc" in await run_shell(boxed, "git init -q sub; echo evil > sub/.envrc")
    assert not (boxed.workspace / "sub" / ".envrc").exists()


async def test_a_file_that_leads_git_elsewhere_is_moved_away(boxed: ToolContext) -> None:
    put(boxed.workspace, "sub/normal.txt")
    printed = await run_shell(
        boxed,
        "git init -q --bare evil; git -C evil config core.fsmonitor evil; echo gitdir: ../evil > sub/.git; "
        "mkdir -p sub/deep; echo gitdir: /tmp/evil > sub/deep/.git",
    )
    assert "sub/.git" in printed and "sub/deep/.git" in printed
    assert not (boxed.workspace / "sub" / ".git").exists()


async def test_a_folder_put_in_the_place_of_another_brings_nothing(boxed: ToolContext) -> None:
    """A mount moves along with the folder above it."""
    put(boxed.workspace, "sub/.envrc", "sub/normal.txt")
    await run_shell(boxed, "mv sub old; mkdir sub; echo evil > sub/.envrc; echo new > sub/normal.txt; true")
    left = contents(boxed.workspace)
    assert "evil\n" not in left.values()
    assert left["sub/normal.txt"] == "new\n"
    assert "mine\n" in {left.get("old/.envrc"), left.get("sub/.envrc")}


async def test_a_folder_can_be_renamed_with_what_it_holds(boxed: ToolContext) -> None:
    put(boxed.workspace, "packages/a/AGENTS.md", "packages/a/deep/.vscode/tasks.json", "packages/a/main.py")
    before = contents(boxed.workspace / "packages" / "a")
    assert await run_shell(boxed, "mv packages/a packages/b; ls packages") == "b"
    assert contents(boxed.workspace / "packages" / "b") == before
    assert not (boxed.workspace / "packages" / "a").exists()


async def test_more_than_can_be_mounted_are_put_back(sandboxed: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_files, "MAX_PINNED_BELOW", 2)
    for number in range(6):
        put(sandboxed.workspace / f"p{number}", "AGENTS.md")
    before = contents(sandboxed.workspace)
    printed = await run_shell(sandboxed, "for f in */AGENTS.md; do echo evil > $f; done 2>/dev/null; rm p5/AGENTS.md")
    assert "p2/AGENTS.md" in printed and "p5/AGENTS.md" in printed and "p1/AGENTS.md" not in printed
    assert contents(sandboxed.workspace) == before


async def test_a_session_does_not_change_them(sandboxed: ToolContext) -> None:
    put(sandboxed.workspace, "sub/.envrc")
    code = "open('sub/.envrc', 'w').write('evil')"
    try:
        assert "Read-only file system" in text_of(await run(tool_of(sandboxed, "python"), {"code": code}))
    finally:
        await sandboxed.sessions.close(PythonSession)
    assert (sandboxed.workspace / "sub" / ".envrc").read_text() == "mine\n"


async def test_what_a_process_in_the_background_makes_is_moved_away(sandboxed: ToolContext) -> None:
    async with task_of(sandboxed):
        await run_shell(
            sandboxed, "(until [ -e go ]; do sleep 0.01; done; mkdir -p s; echo > s/.envrc; touch done; sleep 60) &"
        )
        (sandboxed.workspace / "go").touch()
        await until((sandboxed.workspace / "done").exists)
        assert "[not kept: s/.envrc." in await run_shell(sandboxed, "true")


async def test_what_package_managers_install_stays(boxed: ToolContext) -> None:
    await run_shell(
        boxed,
        "mkdir -p node_modules/a .venv/lib/python3/site-packages target/debug; echo > node_modules/a/.npmrc; "
        "echo > .venv/lib/python3/site-packages/a.pth; echo > target/CACHEDIR.TAG; echo > target/debug/.editorconfig",
    )
    assert {Path(name).name for name in contents(boxed.workspace)} == {
        ".npmrc",
        "a.pth",
        "CACHEDIR.TAG",
        ".editorconfig",
    }


async def test_a_file_in_a_hidden_folder_of_the_workspace_is_not_shown(sandboxed: ToolContext, tmp_path: Path) -> None:
    home = tmp_path / "home"
    put(home / ".ssh" / "deep", "AGENTS.md", text=PLANTED)
    put(home / "project", "AGENTS.md")
    context = replace(sandboxed, workspace=home, sandbox=CommandSandbox(replace(profile_of(sandboxed), workspace=home)))
    printed = await run_shell(context, "find .ssh; cat .ssh/deep/AGENTS.md; cat project/AGENTS.md")
    assert PLANTED not in printed and "mine" in printed


async def test_a_large_workspace_is_searched_from_the_top_down(
    sandboxed: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protected_files, "MAX_FOLDERS", 20)
    put(sandboxed.workspace, "b/.envrc", *(f"a/d{number}/file" for number in range(40)))
    printed = await run_shell(
        sandboxed, "echo evil > b/.envrc; for n in $(seq 60); do mkdir a/n$n; done; echo evil > b/AGENTS.md"
    )
    assert "[not kept: b/AGENTS.md." in printed
    assert (sandboxed.workspace / "b" / ".envrc").read_text() == "mine\n"
    assert sorted(os.listdir(sandboxed.workspace / "b")) == [".envrc"]
