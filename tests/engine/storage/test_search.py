"""Full-text search: hits, their order, and arbitrary input."""

import shutil
from pathlib import Path

import msgspec
import pytest

from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations, nodes, tasks
from errand.engine.storage.sql.statements import Write
from errand.engine.storage.sql.tables import nodes as nodes_table
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.base import JsonObject
from errand.protocol.blocks import FileBlock, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import SearchHit
from errand.protocol.tasks.task import replace_fields
from tests.support.databases import execute, of_sqlite
from tests.support.records import NOW, conversation, node, task

TEXTS = {
    "n1": "The quick brown fox jumps over the lazy dog",
    "n2": "A quick test of the parser: it failed in parse_line()",
    "n3": "Ein Café in Zürich, geöffnet",
    "n4": "brown dog, lazy day",
}


async def add(database: Database, texts: dict[str, str]) -> None:
    for node_id, text in texts.items():
        database.journal.put(nodes.save(node(node_id, text=text)))
    await database.journal.flush()


async def found(database: Database, text: str) -> list[str]:
    return [hit.node_id for hit in await database.search.find(text)]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("quick", ["n2", "n1"]),
        ("lazy brown", ["n4", "n1"]),
        ('"lazy dog"', ["n1"]),
        ('"dog lazy"', ["n4"]),
        ('quick "lazy dog"', ["n1"]),
        ("quic", ["n2", "n1"]),
        ("qu", []),
        ("qui brown", []),
        ('"quic"', []),
        ('"lazy do', []),
        ('"brown dog lazy', ["n4"]),
        ('"the laz', ["n1"]),
        ("QUICK", ["n2", "n1"]),
        ("cafe zurich", ["n3"]),
        ("parse_line()", ["n2"]),
        ("quick nothing", []),
    ],
)
async def test_words_phrases_and_an_unfinished_last_word(database: Database, text: str, ids: list[str]) -> None:
    await add(database, TEXTS)
    assert await found(database, text) == ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "'",
        '"',
        '""',
        '"""',
        "***",
        "( ) : ^ - + { } ,",
        "\0",
        "\0\0 \n",
        "🦊",
        "___",
        "\u2068\u2069",
        "AND",
        "OR NOT NEAR",
        "NEAR(a b)",
        "text:zzz",
        "zzz*",
        "^zzz",
        "zzz OR the",
        "-zzz",
        'zz"z',
        "zzz\0zzz",
        "'; DROP TABLE nodes; --",
        "z" * 100_000,
        "zzz " * 10_000,
        '"' * 9_999,
        "½zz ² ٣٣٣",
        "𐐀𐐁𐐂",
    ],
)
async def test_any_input_is_a_valid_search(database: Database, text: str) -> None:
    await add(database, TEXTS)
    assert await found(database, text) == []


async def test_hit_has_its_position_and_marks_the_words(database: Database) -> None:
    await add(database, TEXTS)
    assert await database.search.find("lazy dog", limit=1) == (
        SearchHit(
            conversation_id="c1",
            conversation_title="A title",
            node_id="n4",
            role="assistant",
            snippet="brown \u2068dog\u2069, \u2068lazy\u2069 day",
            created_at=NOW,
            place=4,
            of=4,
        ),
    )


async def test_tool_arguments_and_results_are_found_and_reasoning_is_not(database: Database) -> None:
    arguments: JsonObject = {"command": "first\nsecond", "deep": {"list": ["third", 4]}}
    blocks = (
        ThinkingBlock(text="secretthought"),
        TextBlock(text="said"),
        ToolCallBlock(call_id="1", tool="shell", arguments=arguments),
        ToolResultBlock(call_id="1", tool="shell", text="printed\0after", is_error=False),
    )
    database.journal.put(nodes.save(msgspec.structs.replace(node("n1"), blocks=blocks)))
    await database.journal.flush()
    for word in ("first", "second", "third", "said", "printed"):
        assert await found(database, word) == ["n1"], word
    assert await found(database, "secretthought") == []
    assert await found(database, "toolCall") == []


async def test_a_streaming_node_is_found_once_it_is_finished_and_by_its_last_text(database: Database) -> None:
    database.journal.put(nodes.save(node("n1", text="halfway", status="streaming")))
    await database.journal.flush()
    assert await found(database, "halfway") == []
    await add(database, {"n1": "halfway there"})
    assert await found(database, "halfway") == ["n1"]
    await add(database, {"n1": "rewritten"})
    assert await found(database, "halfway") == []
    assert await found(database, "rewritten") == ["n1"]


async def test_a_deleted_node_is_not_found(database: Database) -> None:
    await add(database, TEXTS)
    database.journal.put(Write(nodes_table.delete().where(nodes_table.c.id == "n1"), {}))
    await database.journal.flush()
    assert await found(database, "quick") == ["n2"]


async def test_search_in_one_conversation_leaves_out_the_others(database: Database) -> None:
    other = "conv_0-1"
    database.journal.put(conversations.save(conversation(other)))
    database.journal.put(nodes.save(node("n9", conversation_id=other, text="quick as well")))
    await add(database, TEXTS)
    assert [hit.node_id for hit in await database.search.find("quick", 20, other)] == ["n9"]
    assert [hit.node_id for hit in await database.search.find("quick", 20, "c1")] == ["n2", "n1"]
    assert await database.search.find("quick", 20, 'x" OR "quick') == ()
    assert await database.search.find("conv01") == ()


async def test_only_the_beginning_of_a_huge_block_is_indexed(database: Database) -> None:
    await add(database, {"n1": "start " + "filler " * 100_000 + "finish"})
    assert await found(database, "start") == ["n1"]
    assert await found(database, "finish") == []


async def test_attached_files_are_found_by_their_names(database: Database) -> None:
    file = FileBlock(path="/home/me/zebra-report.csv", name="zebra-report.csv", size=4)
    picture = ImageBlock(media_type="image/png", path="/home/me/attachments/abc/giraffe.png", name="giraffe.png")
    for node_id, block in (("f1", file), ("f2", picture)):
        entry = msgspec.structs.replace(node(node_id), blocks=(TextBlock(text="look"), block))
        database.journal.put(nodes.save(entry))
    await database.journal.flush()
    assert await found(database, "zebra-report.csv") == ["f1"]
    assert await found(database, "giraffe") == ["f2"]
    assert await found(database, "look") == ["f2", "f1"]


async def waiting(database: Database) -> list[int]:
    return [row.number for row in await execute(database, "SELECT number FROM node_unindexed ORDER BY number")]


@of_sqlite
async def test_nodes_enter_the_index_together_when_some_wait_and_when_a_task_ends(database: Database) -> None:
    for number in range(1, 40):
        await add(database, {f"n{number}": "marmalade"})
        assert len(await waiting(database)) == number % 16
    ended = replace_fields(task("t1"), status="completed", ended_at=NOW)
    database.journal.put(tasks.save(ended))
    await database.journal.flush()
    assert await waiting(database) == []
    indexed = await execute(database, "SELECT rowid FROM node_search WHERE node_search MATCH 'marmalade'")
    assert len(indexed) == 39


@of_sqlite
async def test_a_search_takes_in_what_waits_and_what_changed_or_went_meanwhile_is_not_found(database: Database) -> None:
    await add(database, {"n1": "marmalade", "n2": "marmalade", "n3": "marmalade"})
    await add(database, {"n1": "honey"})
    await execute(database, "DELETE FROM nodes WHERE id = 'n3'")
    assert await waiting(database) == [1, 2]
    assert await found(database, "marmalade") == ["n2"]
    assert await waiting(database) == []
    await add(database, {"n2": "honey"})
    await execute(database, "DELETE FROM nodes WHERE id = 'n1'")
    assert await waiting(database) == [2]
    assert await found(database, "honey") == ["n2"]
    assert await found(database, "marmalade") == []
    await execute(database, "INSERT INTO node_search (node_search) VALUES ('integrity-check')")


@of_sqlite
async def test_what_waited_when_an_engine_was_killed_is_found_by_the_next(database: Database, tmp_path: Path) -> None:
    await add(database, {"n1": "marmalade"})
    for ending in ("", "-wal"):
        shutil.copy(tmp_path / f"errand.db{ending}", tmp_path / f"killed.db{ending}")
    after = await Database.open(sqlite_url(tmp_path / "killed.db"), tmp_path / "copies")
    try:
        assert await waiting(after) == [1]
        assert await found(after, "marmalade") == ["n1"]
    finally:
        await after.close()
