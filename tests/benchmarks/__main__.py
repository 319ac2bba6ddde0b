"""`make bench`: runs the rows and prints one table with the machine. Arguments select rows by a part of their name.

Ends with 1 if a row fails. Each bench runs in a process of its own: what one has loaded is in the memory of no other.
This process imports nothing of Errand, and no process that measures memory from outside has loaded Qt.
"""

import asyncio
import importlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from tests.benchmarks.row import Row

# `outside`: of a real engine, command or window in a separate process. `in-process`: of parts of the code in the
# process of the benchmark, with what that has loaded.
_Process = Literal["outside", "in-process"]
_ONE = "--one"


@dataclass(frozen=True, slots=True)
class _Bench:
    """`of` is its module and its function, which are imported by the process that runs it alone."""

    name: str
    of: str
    process: _Process


BENCHES = (
    _Bench("one_task", "steps:one_task", "outside"),
    _Bench("boxed_task", "steps:boxed_task", "outside"),
    _Bench("growth", "growth:growth", "outside"),
    _Bench("start", "start:start", "outside"),
    _Bench("fifty_tasks", "steps:fifty_tasks", "outside"),
    _Bench("fifty_streams", "steps:fifty_streams", "outside"),
    _Bench("stop", "stop:stop", "outside"),
    _Bench("engine_exit", "engine_exit:engine_exit", "outside"),
    _Bench("stored", "stored:stored", "outside"),
    _Bench("loop", "bench_loop:loop_alone", "in-process"),
    _Bench("anthropic", "bench_models:anthropic", "outside"),
    _Bench("litellm", "bench_models:litellm", "outside"),
    _Bench("sub_agents", "bench_loop:sub_agents", "in-process"),
    _Bench("permissions", "bench_permissions:judged", "in-process"),
    _Bench("mcp", "bench_tools:mcp_calls", "in-process"),
    _Bench("belt", "bench_belt:belt_memory", "outside"),
    _Bench("python", "bench_belt:python_calls", "in-process"),
    _Bench("browser", "bench_browser:browser", "in-process"),
    _Bench("embedding", "bench_embedding:embedding", "in-process"),
    _Bench("shell", "bench_tools:shell_starts", "in-process"),
    _Bench("checkpoints", "bench_checkpoints:checkpoints", "in-process"),
    _Bench("vectors", "bench_vectors:vectors", "in-process"),
    _Bench("memory_search", "bench_memory:memory_searches", "in-process"),
    _Bench("memory_recall", "bench_memory:memory_recall", "in-process"),
    _Bench("memory_given_retrieval", "bench_given:memory_given", "in-process"),
    _Bench("memory_stalls", "bench_memory_stalls:memory_stalls", "in-process"),
    _Bench("floods", "bounds:floods", "outside"),
    _Bench("long_branch", "bounds:long_branch", "outside"),
    _Bench("taken_in_and_away", "bounds:taken_in_and_away", "outside"),
    _Bench("window_transcript", "window_transcript:window_transcript", "in-process"),
    _Bench("window_start", "window_whole:window_start", "outside"),
    _Bench("window_stored", "window_whole:window_stored", "outside"),
    _Bench("window_streams", "window_whole:window_streams", "outside"),
    _Bench("window_stop", "window_whole:window_stop", "outside"),
    _Bench("window_opens", "window_whole:window_opens", "outside"),
    _Bench("wakes", "window_whole:wakes", "outside"),
)
_HEAD = "| | measured | wanted | against the bare way | where | holds |\n|---|---|---|---|---|---|"


def main(arguments: list[str]) -> int:
    if arguments[:1] == [_ONE]:
        _run_one(arguments[1])
        return 0
    chosen = (bench for bench in BENCHES if not arguments or any(word in bench.name for word in arguments))
    return write_table((row, bench.process) for bench in chosen for row in _rows(bench))


def write_table(rows: Iterable[tuple[Row, _Process]]) -> int:
    """Write each row as soon as it is measured, then how many hold. Returns 1 if a row fails."""
    began, bad, count = time.monotonic(), list[str](), 0
    _write(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    _write(f"\n{_HEAD}")
    for row, measured_in in rows:
        count += 1
        _write(row.line(measured_in))
        bad += [] if row.holds else [row.name]
    _write(f"\n{count - len(bad)} of {count} rows hold; {(time.monotonic() - began) / 60:.1f} minutes.")
    for name in bad:
        _write(f"FAIL {name}")
    return 1 if bad else 0


def _rows(bench: _Bench) -> Iterator[Row]:
    """The rows of a bench as its process prints them; one that fails if the process does."""
    command = [sys.executable, "-m", "tests.benchmarks", _ONE, bench.of]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield msgspec.json.decode(line, type=Row)
    if process.returncode:
        yield Row(f"{bench.name}: did not run to its end, code {process.returncode}", 1, "", 0)


def _run_one(of: str) -> None:
    module, _, function = of.partition(":")
    bench: Callable[[], Awaitable[list[Row]]] = getattr(importlib.import_module(f"tests.benchmarks.{module}"), function)

    async def run() -> list[Row]:
        return await bench()

    for row in asyncio.run(run()):
        _write(msgspec.json.encode(row).decode())


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
