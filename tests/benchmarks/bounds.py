"""Limits under attack: the engine's memory, and the response time for others, during endless input."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from errand.client.connection import Connection
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, conversations, nodes
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.conversations import CONVERSATION_CHANGE, ConversationChangeParams, Role
from errand.protocol.data import (
    CONVERSATION_DELETE,
    DATA_EXPORT,
    DATA_IMPORT,
    ConversationDeleteParams,
    DataExportParams,
    DataImportParams,
)
from errand.protocol.tasks.methods import TASK_GET, TASK_START, TaskIdParams, TaskStartParams
from errand.system.paths import Paths
from tests.benchmarks.bench import engine, home
from tests.benchmarks.row import Row
from tests.benchmarks.strain import Strain, at_rest, strain
from tests.support.records import agent, conversation, node

_MAX_MB = 100.0
_MAX_MS = 50.0


async def floods() -> list[Row]:
    """Replies of 52 MB of text, 30 MB of arguments, 200,000 calls."""
    rows: list[Row] = []
    for kind in ("text", "arguments", "calls"):
        with home() as folder, _flood_server() as url:
            async with engine(folder) as client:
                await _run(client, "nothing", url)  # do not measure imports
                rest = await at_rest(client, folder)
                async with strain(client, folder) as busy:
                    await _run(client, kind, url)
        rows += rows_of(f"a reply without an end: {kind}", busy, rest)
    return rows


async def long_branch() -> list[Row]:
    """A turn at the end of 100,000 entries."""
    with home() as folder, _flood_server() as url:
        await fill(folder, 100_000)
        async with engine(folder) as client:
            await _run(client, "nothing", url)
            rest = await at_rest(client, folder)
            async with strain(client, folder) as busy:
                await _run(client, "nothing", url, "conv_long")
    return rows_of("a turn after 100,000 entries", busy, rest)


async def taken_in_and_away() -> list[Row]:
    """An import and a deletion of 50,000 entries."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "all.jsonl"
        with home() as folder:
            await fill(folder, 50_000)
            async with engine(folder) as client:
                await client.call(DATA_EXPORT, DataExportParams(path=str(file)))
        with home() as folder:
            async with engine(folder) as client:
                rest = await at_rest(client, folder)
                async with strain(client, folder) as taken:
                    await client.call(DATA_IMPORT, DataImportParams(path=str(file)))
                change = ConversationChangeParams(conversation_id="conv_long", archived=True)
                await client.call(CONVERSATION_CHANGE, change)
                async with strain(client, folder) as gone:
                    await client.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id="conv_long"))
    return [*rows_of("an import of 50,000 entries", taken, rest), *rows_of("a delete of 50,000 entries", gone, rest)]


async def fill(folder: Path, count: int, conversation_id: str = "conv_long") -> None:
    """A data directory with one conversation of this many entries in one branch, and its agent at the end."""
    paths = Paths(folder)
    paths.prepare()
    database = await Database.open(sqlite_url(paths.database), paths.copies)
    database.journal.put(
        conversations.save(msgspec.structs.replace(conversation(conversation_id), workspace=str(folder)))
    )
    for number in range(count):
        parent = f"{conversation_id}_{number - 1}" if number else None
        text = f"Entry {number}: what was said in the course of a long day of work with an agent. " * 3
        role: Role = "assistant" if number % 2 else "user"
        entry = node(f"{conversation_id}_{number}", parent, conversation_id, text)
        database.journal.put(nodes.save(msgspec.structs.replace(entry, role=role)))
        if number % 1_000 == 0:
            await database.journal.flush()
    head_agent = agent(f"agent_{conversation_id}", 1, f"{conversation_id}_{count - 1}")
    database.journal.put(agents.save_agent(msgspec.structs.replace(head_agent, conversation_id=conversation_id)))
    await database.close()


def rows_of(name: str, busy: Strain, rest: Strain) -> list[Row]:
    """`rest` is the same idle engine on the same machine, just before."""
    return [
        Row(f"{name}, memory", busy.memory_mb, "MB", _MAX_MB),
        Row(f"{name}, longest answer to others", busy.answer_ms, "ms", _MAX_MS, rest.answer_ms),
        Row(f"{name}, longest commit of others", busy.commit_ms, "ms", _MAX_MS, rest.commit_ms),
    ]


async def _run(client: Connection, kind: str, url: str, conversation_id: str | None = None) -> None:
    params = TaskStartParams(
        prompt="go",
        model=f"openai_compatible/{kind}",
        api_base=url,
        max_turns=2,
        mode="chat",
        conversation_id=conversation_id,
    )
    task = (await client.call(TASK_START, params)).task
    while task.outcome.ended_at is None:
        await asyncio.sleep(0.05)
        task = (await client.call(TASK_GET, TaskIdParams(task_id=task.id))).task


@contextmanager
def _flood_server() -> Generator[str]:
    arguments = [sys.executable, "-m", "tests.benchmarks.flood_server"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
