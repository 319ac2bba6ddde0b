"""Opening, listing and searching with a long history, through engine and protocol."""

import sys
import time
from collections.abc import Awaitable, Callable

from errand.client.connection import Connection
from errand.protocol.conversations import (
    CONVERSATION_LIST,
    CONVERSATION_NODES,
    CONVERSATION_SEARCH,
    ConversationListParams,
    ConversationNodesParams,
    ConversationSearchParams,
)
from errand.system.paths import Paths
from tests.benchmarks.bench import engine, home, median
from tests.benchmarks.history import CONVERSATIONS, LONG_NODES, RARE, stored_history
from tests.benchmarks.row import Row

_ROUNDS = 20
_SEARCH_ROUNDS = 7
# Of 20,000 words, the six most common ones: each is in nearly all longer messages.
_COMMON = "the tool error file test there"
_SEARCHES = (
    *("the", "the tool", _COMMON, "there test file", f"{_COMMON} nowhere", "the the the"),
    *("t", "th", "the t", "the to", "tes", "erro", "ther", "the tool err", "abc", "fil tes"),
    *('"the tool"', '"tool the error"', f'"{_COMMON}"', '"there there there"', '"file test there the"'),
    *('"the tool err', '"error file" "test there"', f'"the tool" "{RARE}"', '"there test file error tool the"'),
    *("before:2026-01-02 the", "before:2025-01-01 the", "before:2022 the", "before:2000 the", "before:today"),
    *("after:2025-12-01 the", "after:2026 the", "after:2026-01-10 the tool", "after:yesterday the"),
    *("before:2025-06", "after:2020 before:2200", "after:2025-06-01 before:2025-06-02"),
    *("after:2024-10 before:2024-11 the", 'after:2025-06-01 before:2025-07-01 "the tool error file"'),
    *('before:2022 "tool the error"', f"before:2023 {RARE}", f"after:2025-03 {RARE}"),
    *(RARE, f"the {RARE}", f'"{RARE} the"', "nowhere", "zyzzy"),
    *("数据库", "搜索", "数据", "データベース", "데이터", "数据库 the", '"数据库 搜索"'),
    *("from:user", "from:user the", "from:agent error", "from:coder the", f"from:coder {RARE}", f"from:user {RARE}"),
    *("tool:shell", "the tool:shell", "tool:shell tool:code the", "from:user tool:shell", f"tool:code {RARE}"),
    *("in:title the", "in:work the", "in:long the", 'in:long "the tool error file"', "in:nowhere the"),
    *('from:user "the tool error"', "from:agent tool:code after:2026 the", "from:user before:2025 the"),
)


async def stored() -> list[Row]:
    with home() as folder:
        await stored_history(Paths(folder))
        async with engine(folder) as client:
            nodes = ConversationNodesParams(conversation_id="long")
            opened = await _ms(lambda: client.call(CONVERSATION_NODES, nodes))
            listed = await _ms(lambda: client.call(CONVERSATION_LIST, ConversationListParams()))
            query_times = {text: await _search_ms(client, text) for text in _SEARCHES}
    slowest = sorted(query_times, key=lambda text: query_times[text], reverse=True)
    sys.stderr.writelines(f"    {query_times[text]:6.1f} ms  {text}\n" for text in slowest[:5])
    total = f"{(CONVERSATIONS + LONG_NODES) // 1000:,},000 nodes"
    return [
        Row("open a conversation of 10,000 nodes, first page", opened, "ms", 20),
        Row("list among 100,000 conversations", listed, "ms", 20),
        Row(
            f"full-text search in {total}, median of {len(query_times)} queries",
            median([*query_times.values()]),
            "ms",
            20,
        ),
        Row(f"the same, the slowest query: `{slowest[0]}`", query_times[slowest[0]], "ms", 20),
    ]


async def _search_ms(client: Connection, text: str) -> float:
    return await _ms(lambda: client.call(CONVERSATION_SEARCH, ConversationSearchParams(text=text)), _SEARCH_ROUNDS)


async def _ms(work: Callable[[], Awaitable[object]], rounds: int = _ROUNDS) -> float:
    """The median of the rounds, after one that is not counted."""
    await work()
    samples: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        await work()
        samples.append((time.perf_counter() - started) * 1000)
    return median(samples)
