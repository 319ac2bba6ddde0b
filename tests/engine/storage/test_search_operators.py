"""Search filters: sender, conversation, tool, date; and the context of hits."""

import asyncio
from collections.abc import AsyncIterator, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, conversations, nodes
from errand.engine.storage.search.query import SearchQuery, parse_query
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.base import JsonObject
from errand.protocol.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import FormerAgent, Node
from tests.engine.storage.conftest import DATABASES
from tests.support.databases import new_file
from tests.support.postgres_server import PostgresServer
from tests.support.records import agent, conversation, node

DAY = timedelta(days=1)
FIRST = datetime(2026, 10, 30, 12, tzinfo=UTC)


def called(node_id: str, parent_id: str, tool: str) -> tuple[Node, Node]:
    """A call of a tool and its result."""
    arguments: JsonObject = {"command": "make fox"}
    call = ToolCallBlock(call_id=node_id, tool=tool, arguments=arguments)
    result = ToolResultBlock(call_id=node_id, tool=tool, text="the fox is made", is_error=False)
    answer = msgspec.structs.replace(node(f"{node_id}r", node_id), role="tool_result", blocks=(result,))
    return msgspec.structs.replace(node(node_id, parent_id), blocks=(call,)), answer


async def fill(database: Database) -> None:
    """Two conversations, one node per day from the 30th of October on."""
    branch = (
        msgspec.structs.replace(node("n1", text="Where is the fox?"), role="user", author="user"),
        node("n2", "n1", text="The fox is here"),
        *called("n3", "n2", "mcp.git/log_all"),
        *called("n4", "n3r", "shell"),
        msgspec.structs.replace(node("n5", "n4r", text="A fox, says the coder"), author="agent-2"),
    )
    other = node("o1", conversation_id="conv_2", text="A fox elsewhere")
    titled = msgspec.structs.replace(conversation("conv_2"), title="Tide tables")
    for write in (
        conversations.save(conversation("c1")),
        conversations.save(titled),
        agents.save_agent(agent("a1")),
        agents.save_agent(msgspec.structs.replace(agent("agent-2"), name="Coder Ö")),
        *(
            nodes.save(msgspec.structs.replace(saved, created_at=FIRST + number * DAY))
            for number, saved in enumerate((*branch, other))
        ),
    ):
        database.journal.put(write)
    await database.journal.flush()


@pytest.fixture(scope="module", params=DATABASES)
def filled_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A database with both conversations, for all tests that only read."""
    folder = tmp_path_factory.mktemp("filled")
    server: PostgresServer | None = None
    if request.param == "sqlite":
        url = sqlite_url(new_file(folder / "errand.db"))
    else:
        server = request.getfixturevalue("postgres")
        assert server is not None
        url = server.new_database(request.getfixturevalue("empty_tables"))

    async def work() -> None:
        database = await Database.open(url, folder / "copies")
        await fill(database)
        await database.close()

    asyncio.run(work())
    yield url
    if server is not None:
        server.drop(url)


@pytest.fixture
async def filled(filled_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(filled_url, tmp_path / "copies")
    yield database
    await database.close()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("fox from:user", ["n1"]),
        ("FROM:User", ["n1"]),
        ("from:agent fox", ["o1", "n5", "n4", "n3", "n2"]),
        ('from:"coder Ö"', ["n5"]),
        ("from:assistant here", ["n2"]),
        ("from:user from:assistant in:c1 fox", ["n4", "n3", "n2", "n1"]),
        ("from:nobody fox", []),
        ("tool:shell", ["n4r", "n4"]),
        ("tool:she", []),
        ("tool:mcp.git/log_all from:agent", ["n3"]),
        ("tool:SHELL made", ["n4r"]),
        ("in:tide", ["o1"]),
        ('in:"tide tab" fox', ["o1"]),
        ("in:conv_2 fox", ["o1"]),
        ("in:nothing fox", []),
        ("fox before:2026-11-01", ["n2", "n1"]),
        ("before:2026-11", ["n2", "n1"]),
        ("after:2026-11-05", ["o1", "n5"]),
        ("after:2026/11/5 fox", ["o1", "n5"]),
        ("fox after:05.11.2026", ["o1", "n5"]),
        ("after:20261105 from:agent", ["o1", "n5"]),
        ("after:today fox", []),
        ("after:Yesterday", []),
        ("from:“Coder Ö” fox", ["n5"]),
        ('"says the coder"', ["n5"]),
        ('"tool:shell made"', []),
        ("fox after:2026-10-31 before:2026-11-02", ["n3", "n2"]),
        ("after:2027", []),
        ("before:2026 fox", []),
        ("after:2026-11-02 before:2026-11-01", []),
        ("after:2026-10 tool:shell from:agent in:title fo", []),
        ("after:2026-10 tool:shell from:agent in:title fox", ["n4"]),
        ("from:fox", []),
        ("x-from:user", []),
    ],
)
async def test_operators_narrow_with_words_and_alone(filled: Database, text: str, ids: list[str]) -> None:
    assert [hit.node_id for hit in await filled.search.find(text)] == ids


async def test_what_the_engine_tells_an_agent_is_not_from_a_person(database: Database) -> None:
    await fill(database)
    nudge = msgspec.structs.replace(node("n6", "n5", text="Go on with the fox"), role="user", author="engine")
    database.journal.put(nodes.save(msgspec.structs.replace(nudge, created_at=FIRST + 20 * DAY)))
    await database.journal.flush()
    hit_ids = [[hit.node_id for hit in await database.search.find(text)] for text in ("fox from:user", '"go on"')]
    assert hit_ids == [["n1"], ["n6"]]


async def test_inside_one_conversation_they_narrow_too(filled: Database) -> None:
    assert [hit.node_id for hit in await filled.search.find("fox from:agent", 20, "conv_2")] == ["o1"]
    assert await filled.search.find("fox in:tide", 20, "c1") == ()


async def test_hits_contain_their_neighbours_and_position(filled: Database) -> None:
    hits = {hit.node_id: hit for hit in await filled.search.find("fox")}
    contexts = {i: (hit.before, hit.after, hit.place, hit.of) for i, hit in hits.items()}
    assert contexts == {
        "o1": ("", "", 1, 1),
        "n5": ("the fox is made", "", 7, 7),
        "n4r": ("shell", "A fox, says the coder", 6, 7),
        "n4": ("the fox is made", "the fox is made", 5, 7),
        "n3r": ("mcp.git/log_all", "shell", 4, 7),
        "n3": ("The fox is here", "the fox is made", 3, 7),
        "n2": ("Where is the fox?", "mcp.git/log_all", 2, 7),
        "n1": ("", "The fox is here", 1, 7),
    }


async def test_positions_are_counted_per_conversation_with_interleaved_writes(database: Database) -> None:
    database.journal.put(conversations.save(conversation("c1")), conversations.save(conversation("c2")))
    for number in range(6):
        of = "c1" if number % 2 else "c2"
        database.journal.put(nodes.save(node(f"n{number}", conversation_id=of, text=f"fox {number}")))
    await database.journal.flush()
    hits = await database.search.find("fox", limit=3)
    assert [(hit.node_id, hit.place, hit.of) for hit in hits] == [("n5", 3, 3), ("n4", 3, 3), ("n3", 2, 3)]
    (first,) = await database.search.find('"fox 0"')
    assert (first.place, first.of) == (1, 3)


async def test_name_shared_by_many_agents_finds_all_their_messages(database: Database) -> None:
    await fill(database)
    for number in range(2_100):
        database.journal.put(agents.save_agent(agent(f"many{number}")))
    last = msgspec.structs.replace(node("last", "n5", text="the last fox"), author="many2099")
    database.journal.put(nodes.save(last))
    await database.journal.flush()
    assert [hit.node_id for hit in await database.search.find("fox from:assistant")] == ["last", "o1", "n4", "n3", "n2"]


async def test_deleted_agent_is_still_found_by_its_name(database: Database) -> None:
    await fill(database)
    gone = FormerAgent(id="gone", name="Pilot")
    held = msgspec.structs.replace(conversation("c1"), former=(gone,))
    message = msgspec.structs.replace(node("last", "n5", text="the last fox"), author="gone")
    database.journal.put(conversations.save(held), nodes.save(message))
    await database.journal.flush()
    assert [hit.node_id for hit in await database.search.find("fox from:pilot")] == ["last"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("from:", "from: wants who said it"),
        ("fox in:", "in: wants words of a conversation's title"),
        ('tool:"" fox', "tool: wants the name of a tool"),
        ("before:soon", "before: wants a day, a month or a year, as in before:2026-11-01"),
        ("after:2026-13-01", "after: wants a day"),
        ("after:2026-02-30", "after: wants a day"),
        ("after:99999", "after: wants a day"),
        ("before:11/01/2026", "before: wants a day"),
        ("before:2026-11/01", "before: wants a day"),
        ("before:31.11.2026", "before: wants a day"),
    ],
)
async def test_invalid_operator_value_finds_nothing_and_gives_advice(filled: Database, text: str, advice: str) -> None:
    assert parse_query(text).advice.startswith(advice)
    assert await filled.search.find(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        *('from:"', "from:::", 'in:"a" OR "b', "tool:*", "tool:x* y", "in:%_", 'tool:"a b" from:"x y z"', "from:\0 a"),
        *("before:2026-11-01" * 30, "from:a " * 40, "after:0001-01-01 fox", "before:9998-12-31 fox"),
        "tool:" + "x" * 9000,
    ],
)
async def test_nothing_typed_is_an_error(filled: Database, text: str) -> None:
    for hit in await filled.search.find(text):
        assert hit.node_id


def test_search_words_exclude_operators() -> None:
    query = parse_query('quick from:user "lazy dog" in:"tide tables" tool:a tool:b bro')
    assert (query.text, query.senders, query.conversations) == ('quick "lazy dog" bro', ("user",), ("tide tables",))
    assert query.tools == ("a", "b") and query.has_operators
    assert parse_query('say "it is from:user here" now') == SearchQuery('say "it is from:user here" now')


def test_today_begins_at_midnight_and_yesterday_a_day_before() -> None:
    now = datetime.now(UTC)
    today, yesterday = (parse_query(f"after:{day}").after for day in ("today", "yesterday"))
    assert today is not None and yesterday is not None
    assert timedelta(0) <= now - today < timedelta(hours=25)
    assert timedelta(hours=23) <= today - yesterday <= timedelta(hours=25)
    assert not parse_query("https://from:x or 12:30").has_operators


async def test_an_edited_node_leaves_its_old_facets(database: Database) -> None:
    await fill(database)
    (first,) = await database.nodes.several(["n4"])
    other = msgspec.structs.replace(first, blocks=(TextBlock(text="no tool any more"),))
    database.journal.put(nodes.save(other))
    await database.journal.flush()
    assert [hit.node_id for hit in await database.search.find("tool:shell")] == ["n4r"]


async def test_a_period_finds_messages_that_were_stored_later_than_newer_ones(database: Database) -> None:
    await fill(database)
    old = [msgspec.structs.replace(node(f"i{n}", text="An old fox"), created_at=FIRST - n * 400 * DAY) for n in (1, 2)]
    database.journal.put(*map(nodes.save, old))
    await database.journal.flush()
    hit_ids = {
        text: [hit.node_id for hit in await database.search.find(text)]
        for text in ("before:2026 fox", "before:2025", "after:2026-11-05 fox", "before:2026-10-31 after:2025 fox")
    }
    assert hit_ids == {
        "before:2026 fox": ["i2", "i1"],
        "before:2025": ["i2"],
        "after:2026-11-05 fox": ["o1", "n5"],
        "before:2026-10-31 after:2025 fox": ["i1", "n1"],
    }
