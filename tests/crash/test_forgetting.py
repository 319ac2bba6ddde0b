"""Engines that are killed while they forget: the next one completes it, or it had not begun."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from errand.client.errors import ConnectionLost
from errand.protocol.memory import MEMORY_FORGET, MemoryForgetParams
from tests.support.command_line import Errand, connected
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until

pytestmark = pytest.mark.usefixtures("bare_commands")

MODEL = ("--model", "openai_compatible/test-model", "--approve", "all", "--api-base")
NAMES = ("Wilhelmina", "Ethelbert", "Griselda")


def replies(name: str) -> list[Reply]:
    """Several turns, so that forgetting them takes a while."""
    turns = [Reply(calls=(Call("shell", {"command": f"echo {name} {number}"}),)) for number in range(10)]
    return [*turns, Reply(text=f"Noted, {name}.")]


def places(home: Path, name: str) -> list[str]:
    return [str(file) for file in home.rglob("*") if file.is_file() and name.encode() in file.read_bytes()]


def is_pending(home: Path) -> bool:
    with closing(sqlite3.connect(f"file:{home}/errand.db?mode=ro", uri=True)) as connection:
        return bool(connection.execute("SELECT count(*) FROM forgets").fetchone()[0])


async def found(errand: Errand, name: str) -> tuple[str, ...]:
    lines = (await errand.run("search", name, "--json", "--limit", "100")).lines
    return tuple(str(line["nodeId"]) for line in lines)


async def test_what_a_killed_engine_was_forgetting_is_forgotten_by_the_next(own_errand: Errand) -> None:
    async with ModelServer([reply for name in NAMES for reply in replies(name)]) as server:
        for name in NAMES:
            assert (await own_errand.run("run", *MODEL, server.url, f"the heirloom belongs to {name}")).code == 0
    for name, delay_s in zip(NAMES, (0, 0.01, 0.05), strict=True):
        nodes = await found(own_errand, name)
        assert len(nodes) == 22
        async with connected(own_errand) as connection:
            call = asyncio.create_task(connection.call(MEMORY_FORGET, MemoryForgetParams(node_ids=nodes)))
            await until(lambda: is_pending(own_errand.home))
            await asyncio.sleep(delay_s)
            own_errand.kill_engine()
            with suppress(ConnectionLost):
                await call
        assert (await own_errand.run("memory", "log")).code == 0
        await until(lambda: not is_pending(own_errand.home))
        assert places(own_errand.home, name) == []
        assert await found(own_errand, name) == ()
    log = (await own_errand.run("memory", "log")).out.splitlines()
    assert len(log) == len(NAMES) and all("forgotten" in line for line in log)
