"""Behaviours 111 to 119 and 132: a full disk, a locked or damaged database: reported clearly, and nothing is lost."""

import asyncio
import resource
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import psutil

from errand.client.launch import connect
from errand.protocol.engine import HealthUpdate
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from errand.system.paths import Paths
from tests.support.command_line import Errand, rest
from tests.support.disks import filled, read_only, small_disk
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until

MODEL = ("--model", "openai_compatible/test-model", "--approve", "all", "--api-base")
COMMAND = Call("shell", {"command": "echo once >> made.txt"})


async def test_on_a_full_disk_a_task_waits_new_ones_are_refused_reading_goes_on_and_with_room_it_ends(
    tmp_path: Path, workspace: Path
) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(COMMAND,), gate=gate), Reply(text="All is saved.")]
    with small_disk(tmp_path / "disk") as disk:
        errand = Errand(disk / "home", workspace)
        async with ModelServer(replies=replies) as server:
            task = await errand.start("run", *MODEL, server.url, "go on when you can")
            await server.request(0)
            with filled(disk):
                gate.set()
                error = await said_on_stderr(task)
                refused = await errand.run("run", *MODEL, server.url, "another")
                listed = await errand.run("tasks")
                looked = await errand.run("doctor")
                assert not (workspace / "made.txt").exists()
            done = await rest(task)
            asked = len(server.requests)
        await errand.close()
    assert "The disk is full" in error and "Make at least 100 MB free" in error
    assert refused.code == 1
    assert "Not saved: The disk is full" in refused.err
    assert listed.code == 0 and "go on when you can" in listed.out
    assert looked.code == 1 and "Errand saves nothing with less than 0.1 GB" in " ".join(looked.out.split())
    assert done.code == 0, done.err
    assert "All is saved." in done.out
    assert "the tasks continue" in done.err
    assert asked == 2
    assert (workspace / "made.txt").read_text() == "once\n"


async def test_while_another_program_holds_the_database_a_task_waits_and_goes_on_by_itself(
    own_errand: Errand, workspace: Path
) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(COMMAND,), gate=gate), Reply(text="All is saved.")]
    async with ModelServer(replies=replies) as server:
        task = await own_errand.start("run", *MODEL, server.url, "go on when you can")
        await server.request(0)
        with closing(sqlite3.connect(own_errand.home / "errand.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            gate.set()
            error = await said_on_stderr(task)
            assert not (workspace / "made.txt").exists()
            other.execute("ROLLBACK")
        done = await rest(task)
    assert "Another program holds the database" in error
    assert done.code == 0, done.err
    assert (workspace / "made.txt").read_text() == "once\n"


async def test_a_disk_that_refuses_to_write_is_waited_for_and_the_task_goes_on(
    own_errand: Errand, workspace: Path
) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(COMMAND,), gate=gate), Reply(text="All is saved.")]
    async with ModelServer(replies=replies) as server:
        task = await own_errand.start("run", *MODEL, server.url, "go on when you can")
        await server.request(0)
        engine = own_errand.engine_pid()
        _, most = resource.prlimit(engine, resource.RLIMIT_FSIZE)
        resource.prlimit(engine, resource.RLIMIT_FSIZE, (0, most))
        gate.set()
        error = await said_on_stderr(task)
        resource.prlimit(engine, resource.RLIMIT_FSIZE, (most, most))
        done = await rest(task)
    assert "The disk refuses to write" in error
    assert done.code == 0, done.err
    assert (workspace / "made.txt").read_text() == "once\n"


async def test_a_backup_is_made_while_a_task_runs_and_never_over_a_file(own_errand: Errand, workspace: Path) -> None:
    gate = asyncio.Event()
    async with ModelServer(replies=[Reply(text="Done.", gate=gate)]) as server:
        task = await own_errand.start("run", *MODEL, server.url, "remember seven")
        await server.request(0)
        backup = await own_errand.run("backup", "--to", "mine.db")
        again = await own_errand.run("backup", "--to", "mine.db")
        inside = await own_errand.run("backup")
        gate.set()
        done = await rest(task)
    assert done.code == 0
    assert backup.code == 0, backup.err
    assert "mine.db: 1 conversation, 0 pictures, " in backup.out and "complete" in backup.out
    assert again.code == 2 and "already exists" in again.err
    assert inside.code == 0 and len(list((own_errand.home / "copies").glob("errand-backup-*.tar"))) == 1
    assert names_in(workspace) == ["mine.db"]


async def test_a_restore_waits_for_no_task_keeps_what_was_there_and_clients_start_anew(
    own_errand: Errand, workspace: Path
) -> None:
    gate = asyncio.Event()
    replies = [Reply(text="Done."), Reply(text="Never said.", gate=gate)]
    async with ModelServer(replies=replies) as server:
        assert (await own_errand.run("run", *MODEL, server.url, "remember seven")).code == 0
        assert (await own_errand.run("backup", "--to", "mine.db")).code == 0
        before = epoch(own_errand.home / "errand.db")
        task = await own_errand.start("run", *MODEL, server.url, "forget it")
        await server.request(1)
        refused = await own_errand.run("restore", "mine.db")
        forced = await own_errand.run("restore", "--force", "mine.db")
        interrupted = await rest(task)
    listed = await own_errand.run("tasks")
    (damaged,) = (own_errand.home / "copies").glob("errand-replaced-*.db")
    assert refused.code == 2 and "1 task runs. Stop them first" in refused.err
    assert forced.code == 0, forced.err
    assert f"The previous database is kept: {damaged}" in forced.out
    assert interrupted.code == 1
    assert "remember seven" in listed.out and "forget it" not in listed.out
    assert epoch(own_errand.home / "errand.db") != before
    assert epoch(damaged) == before
    back = await own_errand.run("restore", str(damaged))
    assert back.code == 0, back.err
    again = await own_errand.run("tasks")
    assert "forget it" in again.out and "interrupted" in again.out


async def test_what_is_no_whole_database_of_errand_is_never_restored(own_errand: Errand, workspace: Path) -> None:
    assert (await own_errand.run("tasks")).code == 0
    await own_errand.close()
    database = own_errand.home / "errand.db"
    before = database.read_bytes(), database.stat().st_mtime_ns
    (workspace / "text.db").write_text("no database")
    (workspace / "broken.db").write_bytes(before[0][:40960] + b"\xee" * (len(before[0]) - 40960))
    with closing(sqlite3.connect(workspace / "other.db")) as other:
        other.execute("CREATE TABLE things (name TEXT)")
    (workspace / "newer.db").write_bytes(before[0])
    with closing(sqlite3.connect(workspace / "newer.db")) as newer, newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
    for name, inside in (("other.tar", "x.db"), ("broken.tar", "errand.db")):
        with tarfile.open(workspace / name, "w") as archive:
            archive.add(workspace / "broken.db", inside)
    for name, errors in {
        "nowhere.db": "There is no file",
        "text.db": "is damaged",
        "broken.db": "is damaged",
        "other.db": "is not an Errand database",
        "newer.db": "was written by a newer version of Errand (schema 9999",
        "other.tar": "is not an Errand backup",
        "broken.tar": "is damaged",
    }.items():
        refused = await own_errand.run("restore", name)
        assert refused.code == 2, name
        assert errors in refused.err, refused.err
    assert (database.read_bytes(), database.stat().st_mtime_ns) == before


async def test_without_descriptors_the_engine_waits_quietly_says_so_and_serves_again_when_it_may(
    own_errand: Errand,
) -> None:
    assert (await own_errand.run("tasks")).code == 0
    engine = psutil.Process(own_errand.engine_pid())
    refusals: list[tuple[str, ...]] = []
    connection = await connect(Paths(own_errand.home), "test", start=False)
    connection.subscribe(lambda message: refusals.append(kinds(message)) if isinstance(message, HealthUpdate) else None)
    soft, most = resource.prlimit(engine.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(engine.pid, resource.RLIMIT_NOFILE, (engine.num_fds(), most))
    waiting = await own_errand.start("tasks")
    await until(lambda: refusals == [("no_descriptors",)])
    before = engine.cpu_times().user
    assert (await connection.call(TASK_LIST, TaskListParams(limit=1))).tasks == ()
    resource.prlimit(engine.pid, resource.RLIMIT_NOFILE, (soft, most))
    done = await rest(waiting)
    await until(lambda: refusals == [("no_descriptors",), ()])
    await connection.close()
    assert done.code == 0, done.err
    assert engine.cpu_times().user - before < 1.0


async def test_a_tool_goes_before_the_engine_when_memory_runs_out(own_errand: Errand) -> None:
    command = Call("shell", {"command": "sleep 0.3; cat /proc/$$/oom_score_adj"})
    async with ModelServer(replies=[Reply(calls=(command,)), Reply(text="Done.")]) as server:
        done = await own_errand.run("run", *MODEL, server.url, "look")
        result = str(server.requests[1].messages[-1]["content"])
    assert done.code == 0
    assert result.strip() == "500"
    assert oom_score(own_errand.engine_pid()) < 500


def oom_score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def kinds(update: HealthUpdate) -> tuple[str, ...]:
    return tuple(condition.kind for condition in update.conditions)


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def epoch(database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection:
        (value,) = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
        return str(value)


async def said_on_stderr(task: asyncio.subprocess.Process) -> str:
    """The first line that the task's command writes there."""
    assert task.stderr is not None
    async with asyncio.timeout(WAIT_LIMIT_S):
        return (await task.stderr.readline()).decode()


async def test_an_engine_starts_on_a_full_disk_and_what_is_stored_is_read(tmp_path: Path, workspace: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        errand = Errand(disk / "home", workspace)
        async with ModelServer(replies=[Reply(text="It is here."), Reply(text="And on.")]) as server:
            await errand.run("run", *MODEL, server.url, "remember this")
            await errand.close()
            with filled(disk):
                listed = await errand.run("tasks")
                results = await errand.run("search", "here")
            again = await errand.run("run", *MODEL, server.url, "go on")
        await errand.close()
    assert listed.code == 0, listed.err
    assert "remember this" in listed.out
    assert "It is here." in results.out
    assert again.code == 0, again.err


async def test_a_disk_that_became_read_only_is_named_and_its_database_is_not_taken_for_damaged(
    tmp_path: Path, workspace: Path
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        errand = Errand(disk / "home", workspace)
        async with ModelServer(replies=[Reply(text="It is here.")]) as server:
            await errand.run("run", *MODEL, server.url, "remember this")
        await errand.close()
        with read_only(disk):
            listed = await errand.run("tasks")
            looked = await errand.run("doctor")
            saved = await errand.run("backup", "--to", str(workspace))
        mended = await errand.run("tasks")
        await errand.close()
    assert listed.code == 1
    assert "Read-only file system" in listed.err and "Make it writable" in listed.err
    assert "damaged" not in looked.out and "intact: 1 conversation" in looked.out
    assert saved.code == 0, saved.err
    assert "remember this" in mended.out
