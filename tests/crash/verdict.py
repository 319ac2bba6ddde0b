"""The state after many crashes: lines compared with the records, and a valid end for every task."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sqlalchemy import select

from errand.engine.agent.history.visible_history import summary_of
from errand.engine.storage.records.executions import ExecutionEnd, ExecutionStart
from errand.engine.storage.records.tasks import TASK_BODY
from errand.engine.storage.sql.statements import from_json
from errand.protocol.asks import RUN_AGAIN, STOP, Ask
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import Task
from tests.crash.killed_engines import KilledEngines
from tests.crash.work import STEPS, step_of
from tests.support.stored_records import StoredRecords

T = TypeVar("T")

_TASKS = str(select(TASK_BODY).compile(compile_kwargs={"literal_binds": True}))


@dataclass(slots=True)
class Counts:
    engines: int = 0
    in_start: int = 0
    tasks: int = 0
    lines: int = 0
    unknown: int = 0
    again: int = 0
    stopped: int = 0
    summaries: int = 0
    waits: int = 0
    servers: int = 0

    def __str__(self) -> str:
        servers = f"{self.servers} servers of the database killed, " if self.servers else ""
        return (
            f"{self.engines} engines killed ({self.in_start} while they started), {servers}{self.tasks} tasks, "
            f"{self.lines} lines: none lost, none twice but {self.again} run again on demand; "
            f"{self.unknown} outcomes unknown, {self.stopped} tasks stopped there; {self.summaries} summaries, "
            f"{self.waits} waits for a limit, database intact"
        )


def judge(engines: KilledEngines) -> Counts:
    """Raises AssertionError with the first task in an invalid state."""
    counts = Counts(engines=engines.kills, in_start=engines.in_start, waits=len(engines.waits), servers=engines.servers)
    stored = engines.stored
    tasks = {task.id: task for task in _all(stored, _TASKS, Task)}
    nodes = _all(stored, "SELECT body FROM nodes WHERE role = 'system'", Node)
    asks = _all(stored, "SELECT body FROM asks", Ask)
    started = _all(stored, "SELECT body FROM tool_executions WHERE phase = 'started'", ExecutionStart)
    finished = _all(stored, "SELECT body FROM tool_executions WHERE phase = 'finished'", ExecutionEnd)
    assert set(engines.started) <= set(tasks), "an acknowledged task is lost"
    assert [ask for ask in asks if ask.status == "waiting"] == []
    summary_counts = Counter(block.until_id for node in nodes if (block := summary_of(node)) is not None)
    assert [until for until, count in summary_counts.items() if count > 1] == [], "a summary was made twice"
    counts.summaries = summary_counts.total()
    failed = [row.text for row in finished if row.is_error]
    assert failed == [], "a command failed by itself"
    ended = {row.execution_id for row in finished}
    for task in tasks.values():
        own = [ask for ask in asks if ask.task_id == task.id and ask.unknown is not None]
        ran = [row for row in started if row.task_id == task.id and row.tool == "shell"]
        _judge_task(task, own, engines.file_of(task.id), ran, ended, counts)
    return counts


def _judge_task(
    task: Task, asks: list[Ask], file: Path, ran: list[ExecutionStart], ended: set[str], counts: Counts
) -> None:
    is_stopped = any(ask.answer == STOP for ask in asks)
    assert task.activity.status == ("cancelled" if is_stopped else "completed"), f"{task.id} is {task.activity.status}"
    lines = Counter(file.read_text("utf-8").split() if file.exists() else ())
    unknown = Counter(_step(ask) for ask in asks)
    again = Counter(_step(ask) for ask in asks if ask.answer == RUN_AGAIN)
    sure = Counter(step_of(str(row.arguments["command"])) for row in ran if row.execution_id in ended)
    for step in (f"step_{number}" for number in range(1, STEPS + 1)):
        report = (
            f"{task.id} {step}: {lines[step]} lines, {sure[step]} sure, {unknown[step]} unknown, {again[step]} again"
        )
        assert sure[step] <= 1, report
        assert sure[step] <= lines[step] <= sure[step] + unknown[step], report
        assert lines[step] <= 1 + again[step], report
        assert is_stopped or sure[step] + unknown[step] - again[step] >= 1, report
    counts.tasks += 1
    counts.lines += lines.total()
    counts.unknown += unknown.total()
    counts.again += again.total()
    counts.stopped += is_stopped


def _step(ask: Ask) -> str:
    assert ask.unknown is not None
    return step_of(ask.unknown.command or "")


def _all(stored: StoredRecords, query: str, kind: type[T]) -> list[T]:
    return [from_json(row[0], kind) for row in stored.rows(query)]
