"""`make bench`: runs the rows and prints one table with the machine. Arguments select rows by a part of their name."""

import asyncio
import gc
import os
import platform
import sys
from collections.abc import Awaitable, Callable

from tests.benchmarks.bench import Row
from tests.benchmarks.bench_belt import belt_memory, python_calls
from tests.benchmarks.bench_browser import browser
from tests.benchmarks.bench_checkpoints import checkpoints
from tests.benchmarks.bench_embedding import embedding
from tests.benchmarks.bench_loop import loop_alone, sub_agents
from tests.benchmarks.bench_memory import memory_recall, memory_searches
from tests.benchmarks.bench_memory_stalls import memory_stalls
from tests.benchmarks.bench_models import anthropic, litellm
from tests.benchmarks.bench_permissions import judged
from tests.benchmarks.bench_tools import mcp_calls, shell_starts
from tests.benchmarks.bench_vectors import vectors
from tests.benchmarks.bounds import floods, long_branch, taken_in_and_away
from tests.benchmarks.start import start
from tests.benchmarks.steps import fifty_tasks, one_task
from tests.benchmarks.stop import stop
from tests.benchmarks.stored import stored
from tests.benchmarks.window_transcript import window_transcript
from tests.benchmarks.window_whole import wakes, window_start, window_stop, window_stored, window_streams

BENCHES: tuple[tuple[str, Callable[[], Awaitable[list[Row]]]], ...] = (
    ("one_task", one_task),
    ("start", start),
    ("fifty_tasks", fifty_tasks),
    ("stop", stop),
    ("stored", stored),
    ("loop", loop_alone),
    ("anthropic", anthropic),
    ("litellm", litellm),
    ("sub_agents", sub_agents),
    ("permissions", judged),
    ("mcp", mcp_calls),
    ("belt", belt_memory),
    ("python", python_calls),
    ("browser", browser),
    ("embedding", embedding),
    ("shell", shell_starts),
    ("checkpoints", checkpoints),
    ("vectors", vectors),
    ("memory_search", memory_searches),
    ("memory_recall", memory_recall),
    ("memory_stalls", memory_stalls),
    ("floods", floods),
    ("long_branch", long_branch),
    ("taken_in_and_away", taken_in_and_away),
    ("window_transcript", window_transcript),
    ("window_start", window_start),
    ("window_stored", window_stored),
    ("window_streams", window_streams),
    ("window_stop", window_stop),
    ("wakes", wakes),
)


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _line(row: Row) -> str:
    bound = f"{'≥' if row.more_is_better else '≤'} {row.limit:g}"
    ratio = f"{row.value / row.floor:.1f} × {row.floor:.2f}" if row.floor else ""
    return f"| {row.name} | {row.value:.2f} {row.unit} | {bound} | {ratio} | {'yes' if row.holds else 'NO'} |"


async def _run(wanted: list[str]) -> bool:
    """True if every row holds."""
    holds = True
    sys.stdout.write(
        f"{_machine()}\n\n| | measured | at most | against the bare way | holds |\n|---|---|---|---|---|\n"
    )
    for name, bench in BENCHES:
        if not wanted or any(word in name for word in wanted):
            for row in await bench():
                sys.stdout.write(_line(row) + "\n")
                sys.stdout.flush()
                holds = holds and row.holds
            gc.collect()  # a row's widgets stay in its thread: threads of the next row would collect them
    return holds


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(_run(sys.argv[1:])) else 1)
