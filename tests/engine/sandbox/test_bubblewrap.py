"""Real commands in bubblewrap: what they must not be able to do, and what they must."""

import asyncio
import os
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import DeniedFolders
from errand.engine.tools.context import ToolContext
from errand.engine.tools.processes import termination
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject
from tests.engine.sandbox.conftest import PLANTED, profile_of, run_shell, shell_result
from tests.support.loop_parts import task_of, text_of, tool_of
from tests.support.processes import until


async def test_a_command_works_in_its_workspace(sandboxed: ToolContext) -> None:
    (sandboxed.workspace / "a.txt").write_text("one\n")
    output = await run_shell(sandboxed, "cat a.txt && echo two > b.txt && pwd && git --version >/dev/null && echo ok")
    assert output.split() == ["one", str(sandboxed.workspace), "ok"]
    assert (sandboxed.workspace / "b.txt").read_text() == "two\n"


async def test_what_the_person_denied_is_hidden_or_unchanged_also_inside_the_workspace(
    sandboxed: ToolContext, tmp_path: Path
) -> None:
    keys, read_only, home = sandboxed.workspace / "keys", sandboxed.workspace / "kept", tmp_path / "home"
    for folder in (keys, read_only / ".git"):
        folder.mkdir(parents=True)
        (folder / "a").write_text(PLANTED)
    (read_only / "a").write_text("one")
    denied = DeniedFolders((str(keys), str(home / "notes.txt")), (str(read_only),))
    context = replace(sandboxed, sandbox=CommandSandbox(replace(profile_of(sandboxed), denied=lambda: denied)))
    output = await run_shell(context, f"cat ke*/a; cp -r keys /tmp/x; cat /tmp/x/a {home}/notes.txt; echo x > keys/b")
    assert PLANTED not in output and "notes\n" not in output
    output = await run_shell(
        context, "cat kept/a; echo two > kept/a; echo two > kept/.git/a; mv kept gone; echo three > b"
    )
    assert "one" in output
    assert contents(sandboxed.workspace) == {
        keys / "a": PLANTED,
        read_only / "a": "one",
        read_only / ".git" / "a": PLANTED,
        sandboxed.workspace / "b": "three\n",
    }


@pytest.mark.parametrize("above", ["", ".."])
async def test_a_workspace_that_the_person_closed_to_changes_can_be_read(sandboxed: ToolContext, above: str) -> None:
    (sandboxed.workspace / "a").write_text("one")
    denied = DeniedFolders(unchanged=(str((sandboxed.workspace / above).resolve()),))
    context = replace(sandboxed, sandbox=CommandSandbox(replace(profile_of(sandboxed), denied=lambda: denied)))
    assert "one" in await run_shell(context, "cat a; echo two > a; echo two > b")
    assert contents(sandboxed.workspace) == {sandboxed.workspace / "a": "one"}


def contents(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("path", ["outside.txt", "home/notes.txt", "home/.bashrc"])
async def test_nothing_outside_the_workspace_is_written(sandboxed: ToolContext, tmp_path: Path, path: str) -> None:
    before = contents(tmp_path / "home")
    await run_shell(sandboxed, f"echo changed > {tmp_path / path}; rm -rf {tmp_path / 'home'}; true")
    assert contents(tmp_path / "home") == before
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.parametrize("path", ["home/.ssh/id_rsa", "home/.netrc", "data/errand.db"])
async def test_planted_keys_are_not_there(sandboxed: ToolContext, tmp_path: Path, path: str) -> None:
    output = await run_shell(
        sandboxed, f"cat {tmp_path / path} || ls -A {(tmp_path / path).parent}; grep -rs sk- /proc/*/environ"
    )
    assert PLANTED not in output


async def test_a_link_out_of_the_workspace_leads_to_nothing_more(sandboxed: ToolContext, tmp_path: Path) -> None:
    (sandboxed.workspace / "door").symlink_to(tmp_path / "home")
    output = await run_shell(sandboxed, "cat door/.ssh/id_rsa; echo x > door/notes.txt; cat door/notes.txt")
    assert PLANTED not in output
    assert (tmp_path / "home" / "notes.txt").read_text() == "notes"


@pytest.mark.parametrize("name", [".envrc", ".vscode", ".git"])
async def test_a_link_with_a_protected_name_opens_nothing(sandboxed: ToolContext, tmp_path: Path, name: str) -> None:
    """Mounting what such a link leads to would bring back what is hidden."""
    keys = tmp_path / "home" / ".ssh"
    target = keys / "id_rsa" if name == ".envrc" else keys
    (keys / "hooks").mkdir()
    (keys / "hooks" / "id_rsa").write_text(PLANTED)
    await run_shell(sandboxed, f"ln -s {target} {name}")
    output = await run_shell(sandboxed, f"cat {name} {name}/id_rsa {name}/hooks/id_rsa; cat {keys}/id_rsa")
    assert PLANTED not in output


async def test_a_workspace_that_holds_closed_folders_does_not_open_them(sandboxed: ToolContext, tmp_path: Path) -> None:
    home = tmp_path / "home"
    profile = replace(profile_of(sandboxed), workspace=home)
    of_home = replace(sandboxed, workspace=home, sandbox=CommandSandbox(profile))
    output = await run_shell(
        of_home, "cat .ssh/id_rsa .netrc; echo x > .ssh/authorized_keys; echo new > notes.txt; true"
    )
    assert PLANTED not in output
    assert (home / "notes.txt").read_text() == "new\n"
    assert not (home / ".ssh" / "authorized_keys").exists()


async def test_files_that_run_something_later_cannot_be_changed(sandboxed: ToolContext) -> None:
    await run_shell(replace(sandboxed, sandbox=None), "git init -q . && git config user.name A && echo a > .envrc")
    before = (sandboxed.workspace / ".git" / "config").read_text()
    await run_shell(
        sandboxed,
        "echo evil > .git/hooks/pre-commit; echo '[core] fsmonitor = evil' >> .git/config; echo evil > .envrc; "
        "mv .git/hooks .git/old; rm -f .envrc .git/config; true",
    )
    assert not (sandboxed.workspace / ".git" / "hooks" / "pre-commit").exists()
    assert (sandboxed.workspace / ".git" / "config").read_text() == before
    assert (sandboxed.workspace / ".envrc").read_text() == "a\n"
    output = await run_shell(
        sandboxed, "git add -A . && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline | wc -l"
    )
    assert output.strip() == "1", "committing works"


async def test_the_temporary_folder_is_the_tasks_own_and_lasts(sandboxed: ToolContext) -> None:
    await run_shell(sandboxed, "echo kept > /tmp/note; echo kept > $TMPDIR/other")
    assert await run_shell(sandboxed, "cat /tmp/note /tmp/other") == "kept\nkept"
    assert (sandboxed.output_dir / "tmp" / "note").read_text() == "kept\n", "not in the folder that all share"


async def test_the_processes_of_others_cannot_be_seen_or_ended(sandboxed: ToolContext) -> None:
    output = await run_shell(sandboxed, f"kill -9 {os.getpid()}; ls /proc | grep -c '^[0-9]*$'")
    assert int(output.split()[0]) < 10, output
    assert "No such process" in output


async def test_the_root_cannot_be_made_writable_again(sandboxed: ToolContext, tmp_path: Path) -> None:
    output = await run_shell(
        sandboxed,
        f"mount -o remount,rw / 2>&1; umount {tmp_path / 'home' / '.ssh'} 2>&1; grep CapEff /proc/self/status",
    )
    assert output.split()[-1].strip("0") == ""


async def test_a_user_namespace_inside_reveals_nothing(sandboxed: ToolContext, tmp_path: Path) -> None:
    keys, notes = tmp_path / "home" / ".ssh", tmp_path / "home" / "notes.txt"
    inside = f"umount {keys}; umount -l {keys}; mount -o remount,rw,bind / /; cat {keys}/id_rsa; echo x > {notes}"
    output = await run_shell(sandboxed, f"unshare --user --map-root-user --mount sh -c '{inside}'")
    assert PLANTED not in output
    assert notes.read_text() == "notes"


async def test_a_socket_of_a_service_is_not_there(sandboxed: ToolContext) -> None:
    output = await run_shell(
        sandboxed, "ls -A /run/user /run/dbus 2>/dev/null | wc -l; test -S /run/docker.sock || echo none"
    )
    assert "none" in output


async def test_a_stop_leaves_no_process_that_hides(sandboxed: ToolContext) -> None:
    """It leaves the session, drops the marks of its environment, ignores TERM and forks twice."""
    hiding = "(setsid env -i bash -c 'trap \"\" TERM; (sleep 600 & sleep 601)' &) ; sleep 602"
    async with task_of(sandboxed):
        cancel = CancelSignal()
        running = asyncio.create_task(shell_result(sandboxed, hiding, cancel))
        await until(lambda: sleepers() == 3)
        cancel.set()
        with pytest.raises(ToolError):
            await running
        assert sleepers() == 0


def sleepers() -> int:
    """The processes of the test above on the whole machine."""
    count = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended
            count += (entry / "cmdline").read_bytes() in (b"sleep\x00600\x00", b"sleep\x00601\x00", b"sleep\x00602\x00")
    return count


async def test_a_background_process_lasts_until_the_task_ends(sandboxed: ToolContext) -> None:
    async with task_of(sandboxed):
        await run_shell(sandboxed, "(while :; do date > beat; sleep 0.05; done) > /dev/null 2>&1 & echo started")
        beat = sandboxed.workspace / "beat"
        await until(beat.exists)
        beat.unlink()
        await until(beat.exists)
    assert termination.alive(sandboxed.task_id) == 0


async def test_the_exit_code_and_both_outputs_pass_through(sandboxed: ToolContext) -> None:
    assert await run_shell(sandboxed, "echo out; echo err >&2; exit 7") == "out\n[stderr]\nerr\n[exit code 7]"


async def looks_outside(context: ToolContext) -> bool:
    """Run a command that is allowed because it only looks; tell whether it ran outside the sandbox."""
    shell = tool_of(context, "shell")
    arguments: JsonObject = {"command": "readlink /proc/self/ns/pid"}
    shell.allow("look", replace(shell.access(arguments), only_looks=True))
    result = await shell.execute("look", arguments, CancelSignal(), lambda result: None)
    return text_of(result) == os.readlink("/proc/self/ns/pid")


async def test_what_only_looks_runs_outside_unless_something_could_exchange_what_it_reads(
    sandboxed: ToolContext,
) -> None:
    automatic = replace(profile_of(sandboxed), mode="auto")
    own, other = (replace(sandboxed, sandbox=CommandSandbox(automatic)) for _ in range(2))
    assert await looks_outside(own)
    assert not await looks_outside(sandboxed), "required"
    async with task_of(own):
        await run_shell(own, "sleep 60 > /dev/null 2>&1 &")
        assert not await looks_outside(own)
        assert not await looks_outside(other), "another task is at work"
    assert own.sandbox is not None and other.sandbox is not None
    await own.sandbox.after(has_background=False)
    assert await looks_outside(other)


async def test_sockets_of_services_cannot_be_reached(sandboxed: ToolContext, tmp_path: Path) -> None:
    path = tmp_path / "home" / ".docker" / "run"
    path.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(path / "s"))
        service.listen()
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}/s')"
        output = await run_shell(sandboxed, f'python3 -c "{connect}" && echo reached')
    assert "reached" not in output and "FileNotFoundError" in output


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("echo x > /usr/x", "writable_folders"),
        ("git init -q . && git config user.name a", "git -c NAME=VALUE"),
        ("curl -sS https://example.org | head -1", "--network on"),
    ],
)
async def test_the_model_learns_why_the_sandbox_refuses_and_how_to_go_on(
    sandboxed: ToolContext, line: str, remark: str
) -> None:
    async with task_of(sandboxed):
        await run_shell(sandboxed, "git init -q .")
        assert remark in await run_shell(sandboxed, line)
        assert remark not in await run_shell(sandboxed, "cat /nowhere; false")
