"""Tasks on a real PostgreSQL server: from end to end, after a kill, and while the server is away."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.command_line import Errand, rest
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.postgres_server import PostgresServer
from tests.support.processes import until

MODEL = ("--model", "openai_compatible/test-model", "--approve", "all", "--api-base")
COMMAND = Call("shell", {"command": "echo once >> made.txt"})
_AWAY_S = 4.0


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
async def own_errand(url: str, tmp_path: Path, workspace: Path) -> AsyncGenerator[Errand]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "settings.json").write_text(json.dumps({"database_url": url}))
    command = Errand(home, workspace)
    yield command
    await command.close()


def count(postgres: PostgresServer, url: str, what: str) -> int:
    return int(postgres.execute(postgres.name_of(url), f"SELECT count(*) FROM {what}"))


async def test_the_tour_runs_and_is_found_by_its_words(own_errand: Errand) -> None:
    done = await own_errand.run("run", "--model", "scripted/note", "--approve", "all", "write the note")
    assert done.code == 0, done.err
    listed = await own_errand.run("tasks")
    assert "write the note" in listed.out
    assert not (own_errand.home / "errand.db").exists()


async def test_a_task_with_a_tool_call_is_killed_resumed_and_runs_its_command_once(
    own_errand: Errand, workspace: Path, postgres: PostgresServer, url: str
) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(COMMAND,)), Reply(text="Not yet.", gate=gate), Reply(text="All is saved.")]
    async with ModelServer(replies=replies) as server:
        task = await own_errand.start("run", *MODEL, server.url, "go on when you can")
        await server.request(1)
        own_errand.kill_engine()
        await rest(task)
        listed = await own_errand.run("tasks")
        task_id = (await own_errand.task("interrupted")).id
        done = await own_errand.run("resume", task_id)
        gate.set()
    assert "interrupted" in listed.out and "running" not in listed.out
    assert done.code == 0, done.err
    assert "All is saved." in done.out
    assert (workspace / "made.txt").read_text() == "once\n"
    assert count(postgres, url, "tool_executions") == 2


async def test_while_the_server_is_away_tasks_wait_reads_say_so_and_all_go_on(
    own_errand: Errand, workspace: Path, postgres: PostgresServer, url: str
) -> None:
    gate = asyncio.Event()
    text = "".join(f"Line {number} is saved. " for number in range(60))
    replies = [
        Reply(text=text, calls=(COMMAND,), gate=gate, piece_delay_s=0.01),
        Reply(text=f"{text}All.", piece_delay_s=0.01),
    ]
    async with ModelServer(turns=replies) as server:
        first = await own_errand.start("run", *MODEL, server.url, "the first")
        second = await own_errand.start("run", *MODEL, server.url, "the second")
        await until(lambda: len(server.requests) == 2)
        gate.set()  # both stream from here on
        postgres.stop()
        try:
            refused = await own_errand.run("run", *MODEL, server.url, "another")
            listed = await own_errand.run("tasks")
            assert not (workspace / "made.txt").exists()
        finally:
            postgres.start()
        done = [await rest(first), await rest(second)]
    assert [finished.code for finished in done] == [0, 0], done
    outputs = [" ".join(finished.out.split()) for finished in done]
    assert [output.count("Line 59 is saved.") for output in outputs] == [2, 2], outputs
    assert all("does not answer" in finished.err and "the tasks continue" in finished.err for finished in done)
    assert refused.code == 1 and "does not answer" in refused.err
    assert listed.code == 1 and "does not answer" in listed.err
    assert (workspace / "made.txt").read_text() == "once\nonce\n"
    assert count(postgres, url, "tool_executions") == 4
    assert count(postgres, url, "nodes WHERE role = 'assistant' AND body LIKE '%Line 0 %Line 59 is saved.%'") == 4
    assert count(postgres, url, "nodes WHERE role = 'assistant'") == 4
    assert count(postgres, url, "nodes WHERE role = 'user'") == 2


async def test_doctor_looks_at_the_server_and_backup_names_its_own_programs(
    own_errand: Errand, postgres: PostgresServer
) -> None:
    there = await own_errand.run("doctor")
    postgres.stop()
    try:
        away = await own_errand.run("doctor")
        refused = await own_errand.run("run", "--model", "scripted/note", "hello")
    finally:
        postgres.start()
    commands = (("backup",), ("restore", "x.tar"), ("doctor", "--repair"))
    backup, restore, repair = [await own_errand.run(*command) for command in commands]
    assert "postgresql://errand@/errand_" in there.out and "responds" in there.out
    assert " MB in the database errand_" in there.out
    assert away.code == 1 and "cannot be reached" in " ".join(away.out.split())
    assert refused.code != 0 and "cannot be reached" in refused.err
    assert backup.code == restore.code == repair.code == 2
    assert "pg_dump --format=custom --file=errand.dump postgresql://errand@/errand_" in backup.err
    assert "pg_restore" in restore.err and "pg_amcheck" in repair.err
