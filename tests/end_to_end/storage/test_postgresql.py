"""Tasks on a real PostgreSQL server: from end to end, after a kill, and while the server is away."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.command_line import Errand, rest
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.postgres_server import PostgresServer

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
    name = url.partition("@/")[2].partition("?")[0]
    return int(postgres.execute(name, f"SELECT count(*) FROM {what}"))


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
