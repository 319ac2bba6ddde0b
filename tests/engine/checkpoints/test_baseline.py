"""What real commands change without naming it: recorded, undone and redone by the baseline of the workspace."""

import asyncio
import errno
import os
import socket
import stat
import subprocess
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.checkpoints import baseline, folder_walk
from errand.engine.checkpoints.recorder import TaskCheckpoints
from errand.engine.checkpoints.watch import FolderWatch
from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.checkpoints import CommandFiles, FileChange, keep_before
from errand.protocol.changes import Change
from errand.protocol.tasks.task import replace_fields
from tests.engine.checkpoints.parts import Work, work_in
from tests.engine.checkpoints.test_commands import tree

# Programs that say nothing of the files which they change.
SCRIPTS = {
    "changes": "for path in sorted(Path().rglob('*.txt')): path.write_text(path.read_text().replace('one', 'two'))",
    "makes": "Path('made/deep').mkdir(parents=True); Path('made/deep/x').write_text('x'); Path('y').write_text('y')",
    "deletes": "Path('a.txt').unlink(); Path('folder/inner.txt').unlink()",
    "deletes a folder": "import shutil; shutil.rmtree('folder'); Path('empty').rmdir()",
    "renames": "os.rename('a.txt', 'folder/b.txt'); os.rename('empty', 'renamed')",
    "renames a folder and changes it": "os.rename('folder', 'other'); Path('other/inner.txt').write_text('other')",
    "exchanges two files": "os.rename('a.txt', 't'); os.rename('c.txt', 'a.txt'); os.rename('t', 'c.txt')",
    "replaces a file": "Path('t').write_text('new'); os.replace('t', 'a.txt')",
    "truncates by path": "os.truncate('a.txt', 1)",
    "appends": "open('a.txt', 'a').write('more')",
    "maps": "import mmap; f = open('a.txt', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'X'; m.close(); f.close()",
    "keeps size and time": (
        "s = os.stat('a.txt'); Path('a.txt').write_text('eno\\n'); os.utime('a.txt', ns=(s.st_atime_ns, s.st_mtime_ns))"
    ),
    "replaces a folder by a file": "import shutil; shutil.rmtree('folder'); Path('folder').write_text('file')",
    "replaces a file by a folder": "Path('a.txt').unlink(); Path('a.txt').mkdir(); Path('a.txt/x').write_text('x')",
    "makes and deletes": "Path('t').write_text('t'); Path('t').unlink(); Path('a.txt').write_text('changed')",
    "makes hidden files": "Path('.env').write_text('KEY=1'); Path('.config').mkdir(); Path('.config/x').write_text('')",
    "writes bytes": "Path('folder/deep/x.bin').write_bytes(bytes(range(256)) * 100)",
    "changes another name of a file": "open('hard.txt', 'r+').write('ONE')",
}


QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
MAX_EVENTS = int(QUEUE.read_text()) if QUEUE.exists() else 0


@pytest.fixture
async def work(tmp_path: Path) -> AsyncGenerator[Work]:
    async with work_in(tmp_path) as opened_work:
        yield opened_work


def script(work: Work, code: str) -> str:
    """Return a command line that names nothing of the workspace."""
    file = work.folder.parent / "script.py"
    file.write_text(f"import os\nfrom pathlib import Path\n{code}\n")
    return f"python3 {file}"


def fill(work: Work) -> None:
    work.put("a.txt", "one\n", mode=0o644)
    work.put("c.txt", "one and three\n", mode=0o600)
    work.put("folder/inner.txt", "one\n")
    work.put("folder/deep/x.bin", b"\0\1\2")
    (work.folder / "empty").mkdir()


def at_step(work: Work, step: int) -> TaskCheckpoints:
    return work.tool_checkpoints(replace_fields(work.task, step_count=step))


async def begun(checkpoints: TaskCheckpoints, work: Work, line: str = "") -> CommandFiles:
    """Begin a command, which the test does in its place."""
    await checkpoints.prepare()
    command = await checkpoints.command_begins("call", line, work.folder)
    assert command is not None
    return command


def git(work: Work, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    subprocess.run(("git", *identity, *arguments), cwd=work.folder, check=True, capture_output=True)


@pytest.mark.parametrize("in_git", [False, True], ids=["without git", "with git"])
@pytest.mark.parametrize("name", SCRIPTS)
async def test_what_a_command_changes_without_naming_it_is_undone_and_redone(
    work: Work, name: str, *, in_git: bool
) -> None:
    fill(work)
    work.put("d.txt", "one and four\n")
    os.link(work.folder / "d.txt", work.folder / "hard.txt")
    if in_git:
        git(work, "init", "-q")
        git(work, "add", "-A")
        git(work, "commit", "-qm", "First")
    before = tree(work)
    await work.shell(1, script(work, SCRIPTS[name]))
    after = tree(work)
    assert after != before
    assert {file.command_steps for file in (await work.changes()).files} == {(1,)}
    result = await work.undo()
    assert (result.conflicts, tree(work)) == ((), before)
    await work.redo()
    assert tree(work) == after


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
async def test_a_deleted_folder_has_its_permissions_again(work: Work) -> None:
    fill(work)
    work.put("private/key", "secret", mode=0o600)
    folders = {"private": 0o700, "folder/deep": 0o500, "empty": 0o2750}
    await work.shell(1, script(work, "pass"))
    for name, mode in folders.items():
        (work.folder / name).chmod(mode)  # by the person, after the first look
    await work.shell(2, script(work, "import shutil\nfor name in ('private', 'folder', 'empty'): shutil.rmtree(name)"))
    assert (await work.undo()).conflicts == ()
    assert {name: stat.S_IMODE((work.folder / name).stat().st_mode) for name in folders} == folders
    assert (work.read("private/key"), work.read("folder/inner.txt")) == ("secret", "one\n")


async def test_a_deleted_workspace_is_undone(work: Work) -> None:
    fill(work)
    before = tree(work)
    await work.shell(1, script(work, "import shutil; shutil.rmtree(os.getcwd())"))
    assert not work.folder.exists()
    await work.undo()
    assert tree(work) == before
    await work.shell(2, script(work, "Path('a.txt').write_text('changed')"))
    assert (await work.files())["a.txt"].steps == (2,)


async def test_what_a_person_changes_between_commands_is_no_change_of_one(work: Work) -> None:
    fill(work)
    await work.shell(1, script(work, "Path('a.txt').write_text('by the first')"))
    work.put("c.txt", "by the person\n")
    work.put("new/file.txt", "by the person\n")
    await work.shell(2, script(work, "Path('c.txt').write_text('by the second'); Path('new/file.txt').unlink()"))
    files = await work.files()
    assert {name: file.steps for name, file in files.items()} == {"a.txt": (1,), "c.txt": (2,), "new/file.txt": (2,)}
    await work.undo()
    assert [work.read(name) for name in ("a.txt", "c.txt", "new/file.txt")] == ["one\n", *["by the person\n"] * 2]


async def test_what_the_tool_code_changes_while_a_command_runs_is_its_own(work: Work) -> None:
    fill(work)
    command = await begun(at_step(work, 9), work)
    await work.write(1, "a.txt", "by the tool\n")
    work.put("c.txt", "by the command\n")
    await work.write(2, "c.txt", "by the tool\n")
    work.put("folder/inner.txt", "by the command\n")
    command.record_changes()
    await work.services.log.flush()
    changes = [(file.name, file.steps) for file in (await work.changes()).files]
    assert changes == [("a.txt", (1,)), ("c.txt", (2, 9)), ("folder/inner.txt", (9,))]
    await work.undo()
    assert [work.read(name) for name in ("a.txt", "c.txt", "folder/inner.txt")] == ["one\n", "one and three\n", "one\n"]


async def test_what_the_tool_code_changes_in_a_folder_that_is_left_out_is_its_own(work: Work) -> None:
    work.put("node_modules/x/index.js", "old\n")
    work.put("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    work.put("target/out", "old\n")
    command = await begun(at_step(work, 9), work)
    await work.write(1, "node_modules/x/index.js", "new\n")
    await work.write(2, "target/out", "new\n")
    command.record_changes()
    await work.services.log.flush()
    files = await work.files()
    assert {name: file.steps for name, file in files.items()} == {"node_modules/x/index.js": (1,), "target/out": (2,)}
    await work.undo()
    assert (work.read("node_modules/x/index.js"), work.read("target/out")) == ("old\n", "old\n")


async def test_after_a_write_that_could_not_be_noted_the_file_belongs_to_the_command_again(work: Work) -> None:
    fill(work)
    command = await begun(at_step(work, 9), work)
    store = work.services.checkpoints.contents
    pages = store.use(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    store.use(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    change = FileChange(work.folder.resolve() / "a.txt", b"one\n", os.urandom(1_000_000))
    with pytest.raises(OSError, match="full"):
        await asyncio.to_thread(at_step(work, 1).note, "call", change)
    store.use(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone())
    work.put("a.txt", "by the command\n")
    command.record_changes()
    await work.services.log.flush()
    assert {name: file.steps for name, file in (await work.files()).items()} == {"a.txt": (9,)}


async def test_an_undo_while_a_command_runs_is_no_change_of_it(work: Work) -> None:
    fill(work)
    await work.shell(1, script(work, "Path('a.txt').write_text('changed')"))
    command = await begun(at_step(work, 2), work)
    await work.undo()
    work.put("c.txt", "by the command\n")
    command.record_changes()
    await work.services.log.flush()
    assert {name: file.steps for name, file in (await work.files()).items()} == {"a.txt": (), "c.txt": (2,)}


async def test_of_two_commands_the_one_that_names_a_file_changed_it_or_the_one_that_ends_first(work: Work) -> None:
    fill(work)
    first = at_step(work, 1)
    second = at_step(work, 2)
    long_one = await begun(first, work, "make c.txt")
    short_one = await begun(second, work, "make")
    work.put("a.txt", "x")
    work.put("c.txt", "x")
    short_one.record_changes()
    work.put("folder/inner.txt", "x")
    long_one.record_changes()
    await work.services.log.flush()
    files = await work.files()
    assert {name: file.steps for name, file in files.items()} == {
        "a.txt": (2,),
        "c.txt": (1,),
        "folder/inner.txt": (1,),
    }


async def test_code_of_the_python_tool_has_its_changes(work: Work) -> None:
    fill(work)
    tool = work.tool(replace_fields(work.task, step_count=3), "python")
    await work.use(tool, code="open('a.txt', 'w').write('changed')")
    assert (await work.files())["a.txt"].steps == (3,)
    await work.undo()
    assert work.read("a.txt") == "one\n"


async def test_folders_that_programs_make_again_are_left_out_unless_git_has_files_in_them(work: Work) -> None:
    work.put("node_modules/x/index.js", "old")
    work.put("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    work.put("target/out", "old")
    work.put("env/pyvenv.cfg", "")
    work.put("vendor/node_modules/kept.js", "old")
    git(work, "init", "-q")
    git(work, "add", "-f", "vendor")
    git(work, "commit", "-qm", "First")
    code = "for path in ('node_modules/x/index.js', 'target/out', 'env/new', 'vendor/node_modules/kept.js', 'x'):"
    await work.shell(1, script(work, f"{code} Path(path).write_text('new')"))
    assert set(await work.files()) == {"vendor/node_modules/kept.js", "x"}


async def test_a_folder_that_is_left_out_is_not_changed_by_its_times_and_permissions(work: Work) -> None:
    work.put("a.txt", "old")
    work.put("node_modules/x/index.js", "old")
    work.put("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    code = "os.utime('node_modules'); os.chmod('target', 0o700); Path('a.txt').write_text('new')"
    await work.shell(1, script(work, code))
    assert set(await work.files()) == {"a.txt"}


async def test_what_a_command_names_in_such_a_folder_is_kept(work: Work) -> None:
    work.put("node_modules/x/index.js", "old")
    work.put("a.txt", "old")
    await work.shell(1, "echo new > node_modules/x/index.js; echo new > a.txt")
    assert set(await work.files()) == {"node_modules/x/index.js", "a.txt"}
    await work.undo()
    assert (work.read("node_modules/x/index.js"), work.read("a.txt")) == ("old", "old")


async def test_links_and_other_things_are_not_followed(work: Work) -> None:
    fill(work)
    outside = work.put("../outside/secret.txt", "mine\n")
    (work.folder / "link").symlink_to(outside)
    (work.folder / "linked").symlink_to(outside.parent)
    os.mkfifo(work.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(work.folder / "socket"))
        code = "Path('link').write_text('x'); Path('linked/new').write_text('x'); Path('a.txt').unlink()"
        await work.shell(1, script(work, f"{code}; os.symlink('c.txt', 'a.txt')"))
    (file,) = (await work.changes()).files
    assert file.name == "a.txt"
    assert (await work.services.checkpoints.baselines.prepare(work.folder)).covered
    assert "symbolic link" in (await work.undo()).conflicts[0].text


async def reason(work: Work) -> str:
    """Why not all that commands change in the workspace can be undone; empty if it can."""
    coverage = await work.services.checkpoints.baselines.prepare(work.folder)
    assert work.services.checkpoints.baselines.coverage_of(work.folder) == coverage
    assert coverage.covered == (not coverage.reason)
    return coverage.reason


async def test_a_folder_is_covered_after_a_first_look(work: Work) -> None:
    fill(work)
    assert work.services.checkpoints.baselines.coverage_of(work.folder).reason == "its files have not been read yet"
    assert await reason(work) == ""


async def test_a_folder_whose_baseline_was_deleted_is_not_covered_until_the_next_look(work: Work) -> None:
    fill(work)
    assert await reason(work) == ""
    baselines = work.services.checkpoints.baselines
    await asyncio.to_thread(baselines.forget)
    assert not baselines.coverage_of(work.folder).covered
    assert await reason(work) == ""


async def test_what_cannot_be_kept_is_said_and_leaves_the_rest_covered(work: Work) -> None:
    fill(work)
    large = work.put("large.bin", bytes(100_000_000))
    assert await reason(work) == "large.bin is too large (100 MB)"
    await work.shell(1, script(work, "Path('a.txt').write_text('changed')"))
    await work.undo()
    assert work.read("a.txt") == "one\n"
    large.unlink()
    await work.shell(2, script(work, "pass"))
    assert await reason(work) == ""


async def test_a_name_that_is_not_utf_8_is_said(work: Work) -> None:
    fill(work)
    work.put(os.fsdecode(b"\xff.txt"), "x")
    assert (await reason(work)).endswith("is not UTF-8")
    code = "os.rename(b'\\xff.txt', b'\\xfe.txt'); Path('a.txt').unlink()"
    await work.shell(1, script(work, code))
    assert set(await work.files()) == {"a.txt"}


async def test_a_name_that_is_not_utf_8_and_that_a_command_makes_is_said(work: Work) -> None:
    fill(work)
    await work.shell(1, script(work, "open(b'folder/\\xff', 'w').close(); Path('a.txt').write_text('changed')"))
    assert (await reason(work)).endswith("is not UTF-8")
    await work.shell(2, script(work, "os.unlink(b'folder/\\xff')"))
    assert await reason(work) == ""
    assert set(await work.files()) == {"a.txt"}


async def test_a_folder_that_became_a_link_leaves_nothing_that_is_too_large(work: Work) -> None:
    fill(work)
    await work.shell(1, script(work, "os.rename('folder', '../other'); os.symlink('../other', 'folder')"))
    assert await reason(work) == ""
    assert (work.folder / "../other/inner.txt").read_text() == "one\n"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
async def test_a_file_that_may_not_be_read_is_said(work: Work) -> None:
    work.put("a.txt", "one\n", mode=0)
    assert await reason(work) == "a.txt cannot be read: Permission denied"


async def test_a_folder_with_too_many_files_is_not_covered_and_named_files_are_kept(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_walk, "MAX_COPIED_FILES", 3)
    fill(work)
    assert await reason(work) == "it holds more than 3 files that git does not have"
    await work.shell(1, "echo named > a.txt")
    await work.shell(2, script(work, "Path('c.txt').write_text('not named')"))
    assert set(await work.files()) == {"a.txt"}


async def test_a_folder_with_too_many_bytes_is_not_covered(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_walk, "MAX_COPIED_BYTES", 3_000_000)
    work.put("a", bytes(3_000_001))
    assert await reason(work) == "it holds more than 3 MB that git does not have"


async def test_a_folder_that_a_command_fills_is_not_covered_any_more(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_walk, "MAX_COPIED_FILES", 10)
    fill(work)
    await work.shell(1, script(work, "for n in range(20): Path(f'{n}.txt').write_text('x')"))
    assert len(await work.files()) == 20
    assert await reason(work) == "it holds more than 10 files that git does not have"
    await work.undo()
    assert len(tree(work)) == 5


async def test_files_that_git_has_do_not_count(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_walk, "MAX_COPIED_FILES", 3)
    fill(work)
    git(work, "init", "-q")
    git(work, "add", "-A")
    assert await reason(work) == ""


@pytest.mark.skipif(not MAX_EVENTS, reason="needs inotify")
async def test_lost_events_lead_to_a_look_at_everything(work: Work) -> None:
    fill(work)
    code = f"for n in range({MAX_EVENTS}): Path('t').touch(); os.utime('t', (n, n))\nPath('t').unlink()"
    await work.shell(1, script(work, f"{code}\nPath('c.txt').write_text('after the flood')"), timeout_secs=600)
    assert set(await work.files()) == {"c.txt"}


@pytest.mark.parametrize("in_git", [False, True], ids=["without git", "with git"])
async def test_the_next_engine_records_what_a_command_changed_before_the_end(tmp_path: Path, *, in_git: bool) -> None:
    async with work_in(tmp_path) as work:
        fill(work)
        if in_git:
            work.put(".cache/kept.txt", "tracked\n")
            git(work, "init", "-q")
            git(work, "add", "-A")
        task = work.task
        await begun(at_step(work, 4), work)
        work.put("a.txt", "by the command\n")
        work.put("new.txt", "by the command\n")
        (work.folder / "c.txt").unlink()
    async with work_in(tmp_path) as later:
        work = replace(later, task=task)
        files = await work.files()
        assert {name: file.steps for name, file in files.items()} == dict.fromkeys(("a.txt", "c.txt", "new.txt"), (4,))
        assert work.services.checkpoints.contents.running_commands() == {}
        await work.undo()
        assert set(tree(work)) - {".cache/kept.txt"} == {
            "a.txt",
            "c.txt",
            "empty",
            "folder/deep/x.bin",
            "folder/inner.txt",
        }
        assert (work.read("a.txt"), work.read("c.txt")) == ("one\n", "one and three\n")


async def test_a_workspace_that_is_gone_and_made_again_is_looked_at_anew(work: Work) -> None:
    fill(work)
    await work.shell(1, script(work, "pass"))
    work.folder.rename(work.folder.with_name("moved"))
    work.folder.mkdir()
    fill(work)
    await work.shell(2, script(work, "pass"))
    await work.shell(3, script(work, "Path('a.txt').write_text('changed')"))
    await work.undo()
    assert work.read("a.txt") == "one\n"


@pytest.mark.parametrize("name", ["changes", "renames a folder and changes it", "keeps size and time"])
async def test_where_nothing_can_be_watched_all_files_are_compared(
    work: Work, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def no_watch(root: str) -> FolderWatch:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(baseline, "FolderWatch", no_watch)
    fill(work)
    before = tree(work)
    work.put("c.txt", "by the person\n")
    await work.shell(1, script(work, SCRIPTS[name]))
    assert await reason(work) == ""
    await work.undo()
    assert tree(work) == before | {"c.txt": "by the person\n"}


class _NeverPrepared:
    """Checkpoints of a workspace that takes long to be read."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def prepare(self) -> None:
        self.begun.set()
        await asyncio.Event().wait()

    async def command_begins(self, call_id: str, line: str, folder: Path) -> CommandFiles | None:
        raise AssertionError

    def note(self, call_id: str, change: FileChange) -> Change:
        raise AssertionError

    def made(self, change: Change) -> None: ...

    def failed(self, change: Change) -> None: ...


async def test_a_stop_does_not_wait_for_the_first_look(tmp_path: Path) -> None:
    checkpoints, cancel = _NeverPrepared(), CancelSignal()
    keeping = asyncio.create_task(keep_before(checkpoints, "call", "make", tmp_path, cancel))
    await checkpoints.begun.wait()
    cancel.set()
    assert await keeping is None


def test_a_workspace_around_the_data_of_errand_has_no_part_of_it(tmp_path: Path) -> None:
    for name in ("a.txt", "data/replaced/contents.db", "other/data/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    walk = folder_walk.FolderWalk(str(tmp_path), lambda: False, str(tmp_path / "data"))
    paths = {path for path, _ in walk.below([""], lambda _: True)}
    assert paths == {"a.txt", "other", "other/data", "other/data/b.txt"}
