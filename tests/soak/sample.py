"""Samples of the engine, taken from outside where possible, and the check that they stay constant."""

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import psutil

from tests.support.stored_records import StoredRecords

# Records only: the event log is limited to 20,000 rows, after which its size is constant.
_GROWING = ("nodes", "tool_executions")
# The ignored share of the run after each start of an engine: its caches fill.
WARM_UP = 0.1
_WINDOWS = 8
_FLAT = 0.05
# Memory is judged by its trend (`trend.py`); this sees one step up that stays.
_FLAT_MEMORY = 0.1


@dataclass(frozen=True, slots=True)
class Sample:
    """Values at `at_s` of the run, of the engine with this process id; sizes in bytes, times in ms.

    `answer_ms` is what another client waited for a read.
    """

    at_s: float
    pid: int
    memory: int
    descriptors: int
    threads: int
    stored: int
    file: int
    tasks: int
    stall_p99: float
    stall_max: float
    answer_ms: float


class Meter:
    """Measures one database, whichever engine has it open: counts only what was added since the last sample."""

    def __init__(self, records: StoredRecords) -> None:
        self._records = records
        self._stored = 0
        self._counted = dict.fromkeys(_GROWING, 0)

    def measure(self, at_s: float, pid: int, tasks: int, times_ms: tuple[float, float, float]) -> Sample:
        """`times_ms` are the stalls (p99, max) and the answer.

        Raises `psutil.NoSuchProcess` or OSError while the engine restarts.
        """
        return Sample(
            at_s,
            pid,
            _proportional(pid),
            len(os.listdir(f"/proc/{pid}/fd")),
            psutil.Process(pid).num_threads(),
            self._count(),
            self._records.size(),
            tasks,
            *times_ms,
        )

    def _count(self) -> int:
        """Bytes of all records so far."""
        for table, number in self._counted.items():
            query = f"SELECT coalesce(sum(length(body)), 0), coalesce(max(number), {number}) FROM {table}"
            ((added, newest),) = self._records.rows(f"{query} WHERE number > {number}")
            self._counted[table] = int(newest)
            self._stored += int(added)
        return self._stored


def _proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


@dataclass(frozen=True, slots=True)
class Window:
    """A part of an engine's lifetime, in the units of the table."""

    from_s: float
    to_s: float
    tasks: int
    memory_mb: float
    descriptors: float
    threads: float
    kb_a_task: float
    file_mb: float
    stall_p99: float
    stall_max: float
    answer_ms: float


def windows(samples: Sequence[Sample], whole_s: float) -> list[Window]:
    """Return at least eight windows, without the first tenth of the run and the same time of each engine's lifetime."""
    lives = [list(life) for _, life in groupby(samples, key=lambda sample: sample.pid)]
    parts = max(2, _WINDOWS // max(1, len(lives)))
    measured: list[Window] = []
    for life in lives:
        steady = [sample for sample in life if sample.at_s - life[0].at_s >= whole_s * WARM_UP]
        size = len(steady) // parts
        measured += [_window(steady[index * size : (index + 1) * size]) for index in range(parts) if size > 1]
    return measured


def _window(part: list[Sample]) -> Window:
    first, last = part[0], part[-1]
    tasks = last.tasks - first.tasks
    return Window(
        first.at_s,
        last.at_s,
        tasks,
        statistics.median(sample.memory for sample in part) / 1e6,
        statistics.median(sample.descriptors for sample in part),
        statistics.median(sample.threads for sample in part),
        (last.stored - first.stored) / 1e3 / max(1, tasks),
        last.file / 1e6,
        statistics.median(sample.stall_p99 for sample in part),
        max(sample.stall_max for sample in part),
        statistics.median(sample.answer_ms for sample in part),
    )


def verdict(measured: Sequence[Window]) -> list[str]:
    """One sentence for each value that is not constant; empty if all are."""
    measures: tuple[tuple[str, Callable[[Window], float], float, float], ...] = (
        ("memory (MB)", lambda window: window.memory_mb, _FLAT_MEMORY, 0.0),
        ("descriptors", lambda window: window.descriptors, _FLAT, 3.0),
        ("threads", lambda window: window.threads, _FLAT, 2.0),
        ("stored KB a task", lambda window: window.kb_a_task, _FLAT, 0.0),
    )
    if not measured:
        return ["nothing was measured: the run was too short"]
    bad: list[str] = []
    for name, of, share, slack in measures:
        values = [of(window) for window in measured]
        middle = statistics.median(values)
        off = max(values, key=lambda value: abs(value - middle))
        if abs(off - middle) > max(share * middle, slack):
            bad.append(f"{name}: {off:.1f} where the median is {middle:.1f} ({off / middle - 1:+.1%})")
    return bad


def table(measured: Sequence[Window]) -> str:
    """The table in Markdown, for docs/benchmarks.md."""
    head = "| from (min) | to | tasks ended | memory (PSS, MB) | descriptors | threads | stored KB a task |"
    lines = [f"{head} file (MB) | stall p99 (ms) | max | answer (ms) |", "|---" * 11 + "|"]
    for window in measured:
        lines.append(
            f"| {window.from_s / 60:.1f} | {window.to_s / 60:.1f} | {window.tasks} | {window.memory_mb:.1f} "
            f"| {window.descriptors:.0f} | {window.threads:.0f} | {window.kb_a_task:.2f} | {window.file_mb:.1f} "
            f"| {window.stall_p99:.1f} | {window.stall_max:.1f} | {window.answer_ms:.1f} |"
        )
    return "\n".join(lines)
