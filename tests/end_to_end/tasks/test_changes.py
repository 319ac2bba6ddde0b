"""Files that a task changed: shown, undone and redone by the command line, also after the engine was killed."""

import os
import signal
from pathlib import Path

from errand.system.paths import Paths
from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def write(name: str, content: str) -> Call:
    return Call("code", {"action": "write", "path": name, "content": content})


async def worked(errand: Errand, server: ModelServer) -> str:
    """The id of a task that has ended."""
    finished = await errand.run("run", "--approve", "all", "--json", *MODEL, server.url, "go")
    assert finished.code == 0, finished.err
    return str(finished.lines[-1]["id"])


async def test_changes_are_listed_compared_undone_and_redone(errand: Errand, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    replies = [Reply(calls=(write("a.txt", "one\n2\n"),)), Reply(calls=(write("b/c.txt", "c\n"),)), Reply(text="Done.")]
    async with ModelServer(turns=replies) as server:
        task = await worked(errand, server)
    output = (await errand.run("changes", task)).out
    assert output.splitlines()[:3] == ["2 files · +2 −1", "  +1 −1  a.txt", "  +1 −0  b/c.txt · new"]
    diff = (await errand.run("changes", task, "--diff", "--file", "a.txt")).out
    assert diff == "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (await errand.run("undo", task, "--step", "2")).out == "Undone in 1 file.\n"
    assert not (workspace / "b").exists()
    assert (await errand.run("undo", task)).out == "Undone in 1 file.\n"
    assert (workspace / "a.txt").read_text() == "one\ntwo\n"
    preview = await errand.run("changes", task, "--diff", "--file", "a.txt")
    assert (preview.out, "Redo brings them back as shown." in preview.err) == (diff, True)
    assert (await errand.run("undo", task, "--file", "a.txt", "--hunk", "1")).code == 2
    assert (await errand.run("redo", task)).out == "Redone in 2 files.\n"
    assert ((workspace / "a.txt").read_text(), (workspace / "b/c.txt").read_text()) == ("one\n2\n", "c\n")


async def test_what_a_command_changed_is_listed_as_such_and_undone(errand: Errand, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "b.txt").write_text("b\n")
    command = Call("shell", {"command": "sed -i s/one/two/ a.txt && rm b.txt && echo c > c.txt"})
    async with ModelServer(turns=[Reply(calls=(command,)), Reply(text="Done.")]) as server:
        task = await worked(errand, server)
    lines = (await errand.run("changes", task)).out.splitlines()
    assert lines[0] == "3 files · +2 −2"
    assert sorted(lines[1:4]) == [
        "  +0 −1  b.txt · deleted · by a command",
        "  +1 −0  c.txt · new · by a command",
        "  +1 −1  a.txt · by a command",
    ]
    assert (await errand.run("undo", task)).out == "Undone in 3 files.\n"
    assert sorted(os.listdir(workspace)) == ["a.txt", "b.txt"]
    assert (workspace / "a.txt").read_text() == "one\n"


async def test_link_that_a_command_made_is_named_and_the_rest_is_undone(errand: Errand, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "gone.txt").write_text("precious\n")
    command = Call("shell", {"command": "echo two > a.txt; rm gone.txt; ln -s a.txt link"})
    async with ModelServer(turns=[Reply(calls=(command,)), Reply(text="Done.")]) as server:
        task = await worked(errand, server)
    undone = await errand.run("undo", task)
    assert (undone.code, undone.out) == (1, "Undone in 2 files.\n")
    assert "link was left as it is: it is a symbolic link" in undone.err and "nothing was changed" not in undone.err
    assert (workspace / "a.txt").read_text() == "one\n" and (workspace / "gone.txt").read_text() == "precious\n"
    assert (await errand.run("undo", task)).code == 1


async def test_a_file_changed_since_is_overwritten_only_on_demand(errand: Errand, workspace: Path) -> None:
    async with ModelServer(turns=[Reply(calls=(write("a.txt", "new\n"),)), Reply(text="Done.")]) as server:
        task = await worked(errand, server)
    (workspace / "a.txt").write_text("mine\n")
    refused = await errand.run("undo", task)
    assert (refused.code, refused.out) == (1, "")
    assert "a.txt was changed since by somebody else." in refused.err and "--overwrite" in refused.err
    assert (await errand.run("undo", task, "--overwrite")).code == 0
    assert not (workspace / "a.txt").exists()
    assert (await errand.run("redo", task, "--file", "a.txt")).code == 0
    assert (workspace / "a.txt").read_text() == "mine\n"


async def test_changes_can_be_undone_after_the_engine_was_killed(own_errand: Errand, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    async with ModelServer(turns=[Reply(calls=(write("a.txt", "new\n"),)), Reply(text="Done.")]) as server:
        task = await worked(own_errand, server)
    os.kill(own_errand.engine_pid(), signal.SIGKILL)
    assert (Paths(own_errand.home).replaced / "contents.db").exists()
    assert (await own_errand.run("undo", task)).code == 0
    assert (workspace / "a.txt").read_text() == "old\n"


async def test_what_a_command_changed_until_the_engine_was_killed_is_undone(
    own_errand: Errand, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("old\n")
    write_all = "[path.write_text('new') for path in Path().glob('*.t?t')]; Path('done').mkdir()"
    code = f"import time; from pathlib import Path; {write_all}; time.sleep(600)"
    command = Call("shell", {"command": f'python3 -c "{code}"', "timeout_secs": 600})
    async with ModelServer(turns=[Reply(calls=(command,))]) as server:
        follower = await own_errand.start("run", "--approve", "all", "--json", *MODEL, server.url, "go")
        await until(lambda: (workspace / "done").is_dir())
        follower.kill()
        await follower.communicate()
        own_errand.kill_engine()
        (task,) = (await own_errand.run("tasks", "--json")).lines
    undone = await own_errand.run("undo", str(task["id"]))
    assert undone.out == "Undone in 2 files.\n", undone.err
    assert os.listdir(workspace) == ["a.txt"] and (workspace / "a.txt").read_text() == "old\n"


async def test_what_is_not_there_is_refused_in_words(errand: Errand) -> None:
    async with ModelServer(turns=[Reply(text="Done.")]) as server:
        task = await worked(errand, server)
    assert "This task has no recorded file changes." in (await errand.run("changes", task)).out
    refused = await errand.run("undo", task)
    assert (refused.code, refused.err) == (2, "errand: This task changed no files.\n")
