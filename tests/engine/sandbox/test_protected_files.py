"""What commands make in a workspace that they must not make, with real commands in bubblewrap."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.protected_files import note_own_write
from errand.engine.tools.context import ToolContext
from tests.engine.sandbox.conftest import profile_of, run_shell
from tests.support.loop_parts import run, task_of, tool_of
from tests.support.processes import until

_AS_ANYONE = "git -c user.name=a -c user.email=a@b"


def not_kept(context: ToolContext) -> list[str]:
    folder = context.output_dir / "not-kept"
    return sorted(os.listdir(folder)) if folder.exists() else []


@pytest.mark.parametrize("name", [".envrc", ".mcp.json", "CLAUDE.md", "AGENTS.md", ".github/workflows", ".vscode"])
async def test_a_protected_file_that_did_not_exist_is_moved_away(sandboxed: ToolContext, name: str) -> None:
    make = f"mkdir -p {name} && echo x > {name}/a" if "." not in name[1:] and name.islower() else f"echo x > {name}"
    output = await run_shell(sandboxed, f"mkdir -p .github; {make}; echo ok > normal.txt")
    assert f"[not kept: {name}." in output
    assert not (sandboxed.workspace / name).exists()
    assert (sandboxed.workspace / "normal.txt").read_text() == "ok\n"
    assert not_kept(sandboxed) == [Path(name).name]


async def test_the_end_of_a_task_without_a_command_moves_nothing_away(sandboxed: ToolContext) -> None:
    (sandboxed.workspace / ".mcp.json").write_text("mine\n")
    assert sandboxed.sandbox is not None
    assert await sandboxed.sandbox.after(has_background=False) == []
    assert (sandboxed.workspace / ".mcp.json").read_text() == "mine\n"


async def test_nothing_is_left_in_the_workspace_of_a_command_that_makes_nothing(sandboxed: ToolContext) -> None:
    await run_shell(sandboxed, "git init -q .")
    before = sorted(os.listdir(sandboxed.workspace)), sorted(os.listdir(sandboxed.workspace / ".git"))
    output = await run_shell(sandboxed, "ls -A; git status --short")
    assert output == ".git"
    assert (sorted(os.listdir(sandboxed.workspace)), sorted(os.listdir(sandboxed.workspace / ".git"))) == before


async def test_the_folder_above_a_protected_file_cannot_be_exchanged(sandboxed: ToolContext) -> None:
    await run_shell(sandboxed, "git init -q .; mkdir -p .github")
    (sandboxed.workspace / ".github" / "workflows").mkdir()
    output = await run_shell(
        sandboxed,
        "mv .git old 2>&1; mv .github old 2>&1; cp -r .git new; echo x > new/hooks/pre-commit; rm -rf .git 2>/dev/null;"
        "mv -T new .git 2>&1; echo x > .github/workflows/ci.yml; ls .git/hooks | grep -v sample; true",
    )
    assert output.count("Device or resource busy") >= 2
    assert not (sandboxed.workspace / ".git" / "hooks" / "pre-commit").exists()
    assert not (sandboxed.workspace / ".github" / "workflows" / "ci.yml").exists()


async def test_a_hard_link_to_a_protected_file_cannot_be_made(sandboxed: ToolContext) -> None:
    (sandboxed.workspace / ".envrc").write_text("mine\n")
    output = await run_shell(sandboxed, "ln .envrc other 2>&1; echo evil >> other; cat .envrc")
    assert "Invalid cross-device link" in output
    assert (sandboxed.workspace / ".envrc").read_text() == "mine\n"


async def test_a_link_with_a_protected_name_is_put_back(sandboxed: ToolContext) -> None:
    (sandboxed.workspace / "envs").mkdir()
    (sandboxed.workspace / "envs" / "dev").write_text("mine\n")
    link = sandboxed.workspace / ".envrc"
    link.symlink_to("envs/dev")
    output = await run_shell(sandboxed, "rm .envrc; echo evil > .envrc")
    assert "[not kept: .envrc." in output
    assert link.readlink() == Path("envs/dev")
    await run_shell(sandboxed, "ln -sf /etc/passwd .envrc")
    assert link.readlink() == Path("envs/dev")


async def test_git_works_inside(sandboxed: ToolContext) -> None:
    output = await run_shell(
        sandboxed,
        f"git init -q . && echo a > a && git add a && {_AS_ANYONE} commit -qm one && git branch two && "
        f"git switch -q two && git mv a b && {_AS_ANYONE} commit -qm two && git log --oneline | wc -l && git gc -q",
    )
    assert output.split()[0] == "2", output
    output = await run_shell(
        sandboxed, f"echo c > c; git add c && {_AS_ANYONE} commit -qm three && git tag t && git gc -q"
    )
    assert output == "(no output)"


async def test_a_repository_that_a_command_makes_names_no_program(sandboxed: ToolContext) -> None:
    output = await run_shell(
        sandboxed,
        "git init -q .; echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config core.fsmonitor x;"
        "git config core.hooksPath /tmp; git config user.name A; git config remote.origin.url https://x.example/y",
    )
    assert ".git/hooks/pre-commit" in output and ".git/config" in output
    git = sandboxed.workspace / ".git"
    config = (git / "config").read_text()
    assert "fsmonitor" not in config and "hooksPath" not in config
    assert "name = A" in config and "url = https://x.example/y" in config
    assert not (git / "hooks" / "pre-commit").exists()
    assert await run_shell(sandboxed, "git status --short") == "(no output)"


async def test_the_repository_of_a_linked_worktree_works_once_it_is_opened(
    sandboxed: ToolContext, tmp_path: Path
) -> None:
    """Its hooks and its configuration stay closed there too."""
    main, context = tmp_path / "main", sandboxed
    line = f"git init -q {main} && cd {main} && {_AS_ANYONE} commit -q --allow-empty -m one && git worktree add -q {{}}"
    sandboxed.workspace.rmdir()
    await run_shell(replace(context, sandbox=None, workspace=tmp_path), line.format(sandboxed.workspace))
    commit = f"echo a > a; git add a; {_AS_ANYONE} commit -qm two 2>&1; git log --oneline | wc -l"
    assert "fatal" in await run_shell(context, commit), "it lies outside the workspace"
    profile = replace(profile_of(context), granted=(main / ".git",))
    opened = replace(context, sandbox=CommandSandbox(profile))
    assert await run_shell(opened, commit) == "2"
    await run_shell(opened, f"echo x > {main}/.git/hooks/pre-commit; echo x >> {main}/.git/config; true")
    assert not (main / ".git" / "hooks" / "pre-commit").exists()
    assert not (main / ".git" / "config").read_text().endswith("x\n")


async def test_a_clone_inside_works(sandboxed: ToolContext, tmp_path: Path) -> None:
    output = await run_shell(
        sandboxed,
        f"git init -q src && cd src && echo a > a && git add a && {_AS_ANYONE} commit -qm one && cd .. && "
        "git clone -q src copy && cat copy/a && git -C copy log --oneline | wc -l",
    )
    assert output.split() == ["a", "1"]


async def test_what_a_process_in_the_background_makes_is_moved_when_the_next_command_starts(
    sandboxed: ToolContext,
) -> None:
    async with task_of(sandboxed):
        await run_shell(sandboxed, "(until [ -e go ]; do sleep 0.01; done; echo evil > .envrc; touch made; sleep 60) &")
        (sandboxed.workspace / "go").touch()
        await until((sandboxed.workspace / "made").exists)
        assert "[not kept: .envrc." in await run_shell(sandboxed, "true")
        assert not (sandboxed.workspace / ".envrc").exists()


async def test_what_a_process_in_the_background_makes_is_moved_at_the_end_of_the_task(sandboxed: ToolContext) -> None:
    async with task_of(sandboxed):
        await run_shell(sandboxed, "(until [ -e go ]; do sleep 0.01; done; echo evil > .envrc; touch made; sleep 60) &")
        (sandboxed.workspace / "go").touch()
        await until((sandboxed.workspace / "made").exists)
    assert sandboxed.sandbox is not None
    assert await sandboxed.sandbox.after(has_background=False) == [".envrc"]


async def test_what_the_file_tools_write_meanwhile_stays(sandboxed: ToolContext) -> None:
    running = asyncio.create_task(run_shell(sandboxed, "touch on; until [ -e go ]; do sleep 0.01; done"))
    await until((sandboxed.workspace / "on").exists)
    await run(tool_of(sandboxed, "code"), {"action": "write", "path": "AGENTS.md", "content": "mine"})
    note_own_write(sandboxed.workspace / ".vscode" / "settings.json")
    (sandboxed.workspace / ".vscode").mkdir()
    (sandboxed.workspace / "go").touch()
    assert await running == "(no output)"
    assert (sandboxed.workspace / "AGENTS.md").read_text() == "mine"
    assert (sandboxed.workspace / ".vscode").exists()


async def test_a_protected_file_exchanged_for_a_link_shows_nothing_hidden(
    sandboxed: ToolContext, tmp_path: Path
) -> None:
    """A process in the background swaps a file for a link to a key, while commands start."""
    key = tmp_path / "home" / ".ssh" / "id_rsa"
    swap = (
        "while [ ! -e end ]; do echo x > .envrc.new; mv -f .envrc.new .envrc; "
        f"ln -sf {key} .link; mv -fT .link .envrc; done 2>/dev/null &"
    )
    async with task_of(sandboxed):
        await run_shell(sandboxed, swap)
        output = [await run_shell(sandboxed, f"cat .envrc; cat {key}") for _ in range(15)]
        (sandboxed.workspace / "end").touch()
    assert "planted" not in "".join(output)


@pytest.mark.parametrize(("path", "name"), [(".jj/repo", "config.toml"), (".git/info", "attributes")])
async def test_a_file_behind_a_link_out_of_the_workspace_stays_where_it_is(
    sandboxed: ToolContext, tmp_path: Path, path: str, name: str
) -> None:
    """Moving it away would take it from the person, into a folder that commands can read."""
    mine = tmp_path / "home" / ".ssh" / name
    mine.write_text("mine\n")
    output = await run_shell(sandboxed, f"mkdir {Path(path).parent}; ln -s {mine.parent} {path}")
    assert mine.read_text() == "mine\n"
    assert f"[not kept: {path}." in output and not (sandboxed.workspace / path).is_symlink()


async def test_submodules_of_any_name_and_depth_stay_as_they_are(sandboxed: ToolContext) -> None:
    """`git submodule add` calls a submodule as its path."""
    bare = replace(sandboxed, sandbox=None)
    hooks = [sandboxed.workspace / ".git" / "modules" / name / "hooks" for name in ("libs/a", "libs/a/modules/b", "c")]
    await run_shell(bare, "git init -q . && " + " && ".join(f"git init -q --bare {folder.parent}" for folder in hooks))
    await run_shell(
        sandboxed, "; ".join(f"echo evil > {folder}/post-checkout; echo evil >> {folder}/../config" for folder in hooks)
    )
    assert not [
        folder
        for folder in hooks
        if (folder / "post-checkout").exists() or "evil" in (folder.parent / "config").read_text()
    ]


async def test_a_submodule_that_a_command_makes_works_and_names_no_program(sandboxed: ToolContext) -> None:
    await run_shell(sandboxed, "git init -q .")
    output = await run_shell(
        sandboxed,
        f"git init -q /tmp/other && (cd /tmp/other && {_AS_ANYONE} commit -q --allow-empty -m one) "
        "&& mkdir -p .git/modules/libs && git clone -q --separate-git-dir .git/modules/libs/other /tmp/other libs/other"
        " && git -C libs/other config core.fsmonitor evil && echo evil > .git/modules/libs/other/hooks/post-checkout",
    )
    repository = sandboxed.workspace / ".git" / "modules" / "libs" / "other"
    assert (
        "evil" not in (repository / "config").read_text() and not (repository / "hooks" / "post-checkout").exists()
    ), output
    assert await run_shell(sandboxed, "git -C libs/other log --format=%s") == "one"


async def test_a_linked_worktree_stays_with_its_repository(sandboxed: ToolContext) -> None:
    bare = replace(sandboxed, sandbox=None)
    await run_shell(
        bare, f"git init -q . && {_AS_ANYONE} commit -q --allow-empty -m one && git worktree add -q ../linked"
    )
    output = await run_shell(sandboxed, "echo ../../../evil > .git/worktrees/linked/commondir; git worktree add -q sub")
    assert (sandboxed.workspace / ".git" / "worktrees" / "linked" / "commondir").read_text() == "../..\n"
    assert "not kept" not in output and await run_shell(sandboxed, "git -C sub log --format=%s") == "one"


async def test_a_new_repository_is_checked_as_long_as_a_process_is_left(sandboxed: ToolContext) -> None:
    async with task_of(sandboxed):
        await run_shell(
            sandboxed,
            "git init -q .; (until [ -e go ]; do sleep 0.02; done; git config core.fsmonitor evil; "
            "echo evil > .git/hooks/post-checkout; touch done; sleep 60) >/dev/null 2>&1 &",
        )
        (sandboxed.workspace / "go").touch()
        await until((sandboxed.workspace / "done").exists)
        output = await run_shell(sandboxed, "true")
    assert "[not kept: .git/hooks/post-checkout, .git/config." in output
    assert "evil" not in (sandboxed.workspace / ".git" / "config").read_text()
