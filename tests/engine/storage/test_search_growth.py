"""The cost of a search of messages, with each operator, does not grow with the square of their number."""

import time

import msgspec

from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, conversations, nodes
from tests.support.databases import of_sqlite
from tests.support.records import agent, conversation, node

SMALL, LARGE = 400, 3_200
QUERIES: tuple[str, ...] = (
    "kettle room from:user",
    "kettle in:title",
    "kettle after:2020",
    "kettle before:2030",
    "kettle from:Coder",
    "kettle tool:shell",
    '"a kettle stands"',
    "ket",
    "from:user in:title",
)


async def fill(database: Database, first: int, end: int) -> None:
    for number in range(first, end):
        message = node(f"n{number}", conversation_id=f"k{number % 10}", text=f"In room {number % 40} a kettle stands")
        author = "a1" if number % 2 else "user"
        role = "assistant" if number % 2 else "user"
        database.journal.put(nodes.save(msgspec.structs.replace(message, role=role, author=author)))
    await database.journal.flush()


async def costs(database: Database) -> dict[str, float]:
    """The seconds of CPU that twenty searches took for each query, the best of three."""
    taken = dict.fromkeys(QUERIES, float("inf"))
    for query in QUERIES * 3:
        began = time.process_time()
        for _ in range(20):
            await database.search.find(query)
        taken[query] = min(taken[query], time.process_time() - began)
    return taken


@of_sqlite
async def test_searches_of_messages_do_not_grow_with_the_square_of_their_number(database: Database) -> None:
    database.journal.put(*(conversations.save(conversation(f"k{number}")) for number in range(10)))
    database.journal.put(agents.save_agent(msgspec.structs.replace(agent("a1"), name="Coder")))
    await fill(database, 0, SMALL)
    small = await costs(database)
    await fill(database, SMALL, LARGE)
    large = await costs(database)
    growth = {query: large[query] / small[query] for query in QUERIES}
    assert max(growth.values()) < 3 * LARGE / SMALL, growth
