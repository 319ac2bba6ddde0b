"""Opening, listing and searching with a long history, through engine and protocol."""

import time
from collections.abc import Awaitable, Callable

from errand.engine.storage.database import Database
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.paths import Paths
from errand.protocol.conversations import (
    CONVERSATION_LIST,
    CONVERSATION_NODES,
    CONVERSATION_SEARCH,
    ConversationListParams,
    ConversationNodesParams,
    ConversationSearchParams,
)
from tests.benchmarks.bench import Row, engine, home, median
from tests.benchmarks.bench_storage import fill

_COUNT = 100_000
_ROUNDS = 20


async def stored() -> list[Row]:
    with home() as folder:
        paths = Paths(folder)
        paths.prepare()
        database = await Database.open(sqlite_url(paths.database), paths.copies)
        await fill(database, _COUNT)
        await database.close()
        leaf = f"long_{_COUNT // 10 - 1}"
        async with engine(folder) as client:
            nodes = ConversationNodesParams(conversation_id="long", leaf_id=leaf)
            opened = await _ms(lambda: client.call(CONVERSATION_NODES, nodes))
            listed = await _ms(lambda: client.call(CONVERSATION_LIST, ConversationListParams()))
            searches = (
                *("the", "the tool error", "erro", '"the tool"', "abc"),
                *(
                    "from:user",
                    "the tool:shell",
                    "from:assistant error",
                    "in:conversation the",
                    "after:2020 before:2200",
                ),
            )
            found = [
                await _ms(lambda text=text: client.call(CONVERSATION_SEARCH, ConversationSearchParams(text=text)))
                for text in searches
            ]
    return [
        Row("open a conversation of 10,000 nodes, first page", opened, "ms", 20),
        Row("list among 100,000 conversations", listed, "ms", 20),
        Row("full-text search in 100,000 nodes, slowest of ten", max(found), "ms", 20),
    ]


async def _ms(work: Callable[[], Awaitable[object]]) -> float:
    await work()
    samples: list[float] = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        await work()
        samples.append((time.perf_counter() - started) * 1000)
    return median(samples)
