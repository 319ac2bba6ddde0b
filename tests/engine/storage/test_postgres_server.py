"""What only a database server does: it goes away, hangs, loses an answer, and is used by others."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import make_url, select

from errand.engine.core.errors import ConfigurationError, StorageError
from errand.engine.storage.database import Database
from errand.engine.storage.postgres.server import open_server
from errand.engine.storage.records import agents, conversations, grants, memory_log, nodes
from errand.engine.storage.search.text_vectors import marked_snippet
from errand.engine.storage.sql import tables
from errand.engine.storage.sql.journal import Journal
from errand.engine.storage.sql.reader import Reader, begin_patience
from tests.support.databases import execute
from tests.support.limits import WAIT_LIMIT_S
from tests.support.postgres_proxy import proxied
from tests.support.postgres_server import PostgresServer
from tests.support.records import agent, conversation, grant, node


@pytest.fixture
def database_url(postgres: PostgresServer) -> str:
    return postgres.new_database()


async def test_a_batch_whose_commit_was_not_answered_is_not_written_twice(database_url: str, tmp_path: Path) -> None:
    async with proxied(database_url) as proxy:
        database = await Database.open(proxy.url, tmp_path)
        database.journal.set_waits_saved(True)
        database.journal.put(conversations.save(conversation("c1")))
        await database.journal.flush()
        proxy.next_commit = "unanswered"
        database.journal.put(grants.save(grant()), memory_log.add("pruned", "Errand", "12 vectors"))
        await database.journal.flush()
        database.journal.put(nodes.save(node("n1")))
        await database.journal.flush()
        assert proxy.next_commit is None
        assert await database.grants.history("g1") == (grant(),)
        assert len((await database.memory_log.page(9)).entries) == 1
        assert await database.nodes.get("n1") == node("n1")
        assert database.health.conditions == ()
        await database.close()


async def test_while_the_server_is_away_changes_wait_and_reads_say_so(
    database: Database, postgres: PostgresServer
) -> None:
    database.journal.set_waits_saved(True)
    postgres.stop()
    try:
        with pytest.raises(StorageError, match="does not answer"):
            await database.conversations.get("c1")
        database.journal.put(nodes.save(node("n1")))
        flushing = asyncio.create_task(database.journal.flush())
        patient = asyncio.create_task(_patiently(database))
        reported = asyncio.Event()
        unsubscribe = database.health.subscribe(reported.set)
        if not database.health.conditions:
            await reported.wait()
        assert [condition.kind for condition in database.health.conditions] == ["unreachable"]
        assert not flushing.done() and not patient.done()
    finally:
        postgres.start()
    await flushing
    unsubscribe()
    assert await patient == "A title"
    assert database.health.conditions == ()
    assert await database.nodes.get("n1") == node("n1")


async def _patiently(database: Database) -> str:
    begin_patience()
    stored = await database.conversations.get("c1")
    assert stored is not None
    return stored.title


async def test_a_server_that_hangs_counts_as_away_until_it_answers(database_url: str, postgres: PostgresServer) -> None:
    engine, writer, reads = await open_server(make_url(database_url), answer_s=0.5)
    journal = Journal(writer, engine)
    journal.set_waits_saved(True)
    away = asyncio.Event()
    unsubscribe = journal.health.subscribe(away.set)
    postgres.pause()
    try:
        journal.put(conversations.save(conversation("c1")))
        flushing = asyncio.create_task(journal.flush())
        async with asyncio.timeout(WAIT_LIMIT_S):
            await away.wait()
    finally:
        postgres.go_on()
    async with asyncio.timeout(WAIT_LIMIT_S):
        await flushing
    unsubscribe()
    assert len(await Reader(reads, journal, "errand").rows(select(tables.conversations))) == 1
    await journal.close()
    await engine.dispose()


async def test_a_restored_dump_is_whole_and_searchable(
    database: Database, database_url: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    message = node("n1", text="the quick brown fox")
    database.journal.put(agents.save_agent(agent()), nodes.save(message))
    await database.journal.flush()
    restored = await Database.open(postgres.copy(database_url), tmp_path)
    assert restored.epoch == database.epoch
    assert [hit.node_id for hit in await restored.search.find("from:assistant quick")] == ["n1"]
    assert await restored.titles.find("title") == (conversation("c1"),)
    restored.journal.put(nodes.save(node("n2", "n1", text="another fox")))
    await restored.journal.flush()
    assert [hit.node_id for hit in await restored.search.find("fox")] == ["n2", "n1"]
    await restored.close()


async def test_two_engines_cannot_use_one_database(database: Database, database_url: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="another Errand uses this database"):
        await Database.open(database_url, tmp_path)
    await database.close()
    await (await Database.open(database_url, tmp_path)).close()


async def test_a_database_that_cannot_be_used_is_refused_with_a_reason(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    postgres.execute("postgres", "CREATE DATABASE bytes TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C'")
    with pytest.raises(StorageError, match="encoded in UTF8"):
        await Database.open(postgres.url("bytes"), tmp_path)
    with pytest.raises(StorageError, match='database "nowhere" does not exist'):
        await Database.open(postgres.url("nowhere"), tmp_path)
    with pytest.raises(StorageError, match="cannot be reached: no server has its socket there"):
        await Database.open(f"postgresql://me@/errand?host={tmp_path}", tmp_path)
    with pytest.raises(ConfigurationError, match="database_url"):
        await Database.open("postgresql+psycopg2://me@localhost/errand", tmp_path)


@pytest.mark.parametrize(("revision", "reason"), [("0014", "an older Errand"), ("9999", "a newer Errand")])
async def test_an_older_or_newer_database_is_refused_and_left_alone(
    database: Database, database_url: str, tmp_path: Path, revision: str, reason: str
) -> None:
    await execute(database, f"UPDATE alembic_version SET version_num = '{revision}'")
    await database.close()
    with pytest.raises(StorageError, match=reason):
        await Database.open(database_url, tmp_path)


async def test_a_text_with_nul_is_stored_without_it(database: Database) -> None:
    database.journal.put(conversations.save(conversation("c\0")))
    await database.journal.flush()
    assert await database.search.find("any\0thing") == ()


@pytest.mark.parametrize(
    ("text", "phrases", "unfinished", "snippet"),
    [
        ("a b c", ("b",), False, "a \u2068b\u2069 c"),
        ("Ein Café in ZÜRICH", ("zurich",), False, "Ein Café in \u2068ZÜRICH\u2069"),
        ("parse_line() fails", ("parse_line()",), False, "\u2068parse_line\u2069() fails"),
        ("quickly", ("quick",), True, "\u2068quickly\u2069"),
        ("quickly " + "x " * 200, ("nothing",), False, "quickly " + "x " * 76),
        (
            " ".join(map(str, range(99))),
            ("50",),
            False,
            "…43 44 45 46 47 48 49 \u206850\u2069 51 52 53 54 55 56 57 58…",
        ),
    ],
)
def test_a_snippet_shows_sixteen_words_around_the_match(
    text: str, phrases: tuple[str, ...], unfinished: bool, snippet: str
) -> None:
    assert marked_snippet(text, phrases, unfinished) == snippet
