"""Repair of databases that were damaged on purpose: what is saved, and what is reported about the rest."""

import io
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from errand.cli.exit_codes import CommandError
from errand.cli.output import CommandOutput
from errand.cli.recovery.database_check import check_database
from errand.cli.recovery.repair import RepairOptions, repair
from errand.cli.terminal.terminal import Terminal
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, asks, conversations, nodes, tasks, turns
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.context import PromptPart
from errand.system import database_file
from errand.system.paths import Paths
from tests.support.records import agent, ask, conversation, node, task

_PAGE = 4096


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path / "home")
    paths.prepare()
    return paths


async def filled(paths: Paths, count: int) -> None:
    """This many conversations of three messages each, with an agent at the last."""
    database = await Database.open(sqlite_url(paths.database), paths.copies)
    for number in range(count):
        here = f"c{number}"
        database.journal.put(conversations.save(conversation(here)))
        parent = None
        for index in range(3):
            key = f"{here}-{index}"
            database.journal.put(nodes.save(node(key, conversation_id=here, parent_id=parent)))
            parent = key
        database.journal.put(
            agents.save_agent(msgspec.structs.replace(agent(f"a{number}", head_id=parent), conversation_id=here))
        )
    await database.close()


def break_pages(file: Path, of: str, share: float) -> None:
    """Overwrite this share of the leaf pages of a table or an index."""
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root,) = connection.execute(query, (of,)).fetchone()
    data = bytearray(file.read_bytes())
    leaves = list(_leaves(data, int(root)))
    for number in leaves[len(leaves) // 3 : len(leaves) // 3 + max(1, int(share * len(leaves)))]:
        data[(number - 1) * _PAGE : number * _PAGE] = b"\xee" * _PAGE
    file.write_bytes(data)


def _leaves(data: bytearray, number: int) -> list[int]:
    page = data[(number - 1) * _PAGE : number * _PAGE]
    if page[0] in (0x0A, 0x0D):
        return [number]
    cells = int.from_bytes(page[3:5])
    starts = [int.from_bytes(page[12 + 2 * cell : 14 + 2 * cell]) for cell in range(cells)]
    children = [int.from_bytes(page[start : start + 4]) for start in starts] + [int.from_bytes(page[8:12])]
    return [leaf for child in children for leaf in _leaves(data, child)]


async def mended(paths: Paths) -> tuple[int, str]:
    out = io.StringIO()
    try:
        code = await repair(RepairOptions(), paths, CommandOutput(Terminal(io.StringIO(), out, out)))
    except CommandError as error:
        return error.code, f"{out.getvalue()}{error}"
    return code, out.getvalue()


def count(file: Path, table: str) -> int:
    with closing(sqlite3.connect(file)) as connection:
        (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)


async def test_intact_database_is_not_changed(paths: Paths) -> None:
    await filled(paths, 3)
    before = paths.database.read_bytes()
    state, _, text, _ = check_database(paths.database, paths.copies)
    assert (state, "intact: 3 conversations, 9 messages, 0 tasks" in text) == ("good", True)
    code, output = await mended(paths)
    assert code == 0 and "nothing to repair" in output
    assert paths.database.read_bytes() == before


@pytest.mark.parametrize("index", ["nodes_by_parent", "sqlite_autoindex_nodes_1", "node_search_data"])
async def test_broken_index_loses_no_data(paths: Paths, index: str) -> None:
    await filled(paths, 400)
    break_pages(paths.database, index, 0.3)
    assert check_database(paths.database, paths.copies)[0] == "bad"
    code, text = await mended(paths)
    assert code == 0, text
    assert "Nothing is missing." in text
    assert (count(paths.database, "conversations"), count(paths.database, "nodes")) == (400, 1200)
    assert check_database(paths.database, paths.copies)[0] == "good"
    database = await Database.open(sqlite_url(paths.database), paths.copies)
    assert len((await database.conversations.page(500)).conversations) == 400
    await database.close()
    assert said_by_agents(paths.database) == 1200


def said_by_agents(file: Path) -> int:
    """According to the search index."""
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT count(*) FROM node_search WHERE node_search MATCH 'facets:fromagent'"
        (number,) = connection.execute(query).fetchone()
        return int(number)


async def test_lost_messages_are_counted_per_conversation_and_the_rest_is_consistent(
    paths: Paths,
) -> None:
    await filled(paths, 400)
    break_pages(paths.database, "nodes", 0.05)
    broken = paths.database.read_bytes()
    code, text = await mended(paths)
    left = count(paths.database, "nodes")
    assert code == 0, text
    assert 1000 < left < 1200
    assert "messages of “" in text or "1 message of “" in text
    (damaged,) = paths.copies.glob("errand-replaced-*.db")
    assert damaged.read_bytes() == broken
    assert check_database(paths.database, paths.copies)[0] == "good"


async def test_records_of_a_lost_task_are_deleted(paths: Paths) -> None:
    database = await Database.open(sqlite_url(paths.database), paths.copies)
    database.journal.put(conversations.save(conversation()), agents.save_agent(agent()))
    for number in range(400):
        new_task = task(f"t{number}")
        database.journal.put(
            *tasks.add(new_task),
            tasks.save_prompt(new_task.id, (PromptPart(name="role", text="You help."),)),
            turns.started("c1", new_task.id, 1, new_task.request.model, new_task.started_at),
            asks.save(msgspec.structs.replace(ask(f"k{number}"), task_id=new_task.id)),
        )
    await database.close()
    break_pages(paths.database, "tasks", 0.1)
    code, text = await mended(paths)
    assert code == 0, text
    left = count(paths.database, "tasks")
    assert 300 < left < 400
    assert {count(paths.database, table) for table in ("prompts", "turns", "asks")} == {left}
    assert check_database(paths.database, paths.copies)[0] == "good"


async def test_gaps_are_filled_from_a_copy(paths: Paths) -> None:
    await filled(paths, 400)
    database_file.copy_database(paths.database, paths.copies / "errand-daily-1.db")
    break_pages(paths.database, "nodes", 0.05)
    code, text = await mended(paths)
    assert code == 0, text
    assert "From the copy of" in text and "Nothing is missing." in text
    assert count(paths.database, "nodes") == 1200


async def test_database_without_its_beginning_is_restored_from_the_copy(paths: Paths) -> None:
    await filled(paths, 10)
    database_file.copy_database(paths.database, paths.copies / "errand-daily-1.db")
    data = paths.database.read_bytes()
    paths.database.write_bytes(b"\xee" * _PAGE * 3 + data[_PAGE * 3 :])
    code, text = await mended(paths)
    assert code == 0, text
    assert "Recovered: 0 conversations" in text
    assert "From the copy of" in text and "10 conversations" in text
    assert count(paths.database, "nodes") == 30


async def test_lost_beginning_without_a_copy_is_reported_and_the_file_is_unchanged(paths: Paths) -> None:
    await filled(paths, 10)
    data = b"\xee" * _PAGE + paths.database.read_bytes()[_PAGE:]
    paths.database.write_bytes(data)
    code, text = await mended(paths)
    assert code == 1
    assert "It cannot be repaired" in text and "There is no copy either" in text
    assert paths.database.read_bytes() == data
