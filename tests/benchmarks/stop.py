"""The time from a stop to the end of all processes of a task, also of those that left their session and parent.

Each tool that runs something, in the sandbox and without it, with processes that end on SIGTERM or ignore it.
"""

import asyncio
import shutil
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil

from errand.client.connection import Connection
from errand.protocol.settings import SETTINGS_SET, SettingsSetParams
from errand.protocol.tasks.methods import TASK_GET, TASK_STOP, TaskIdParams
from tests.benchmarks.bench import engine, home, model, p99, start, workspace_in
from tests.benchmarks.row import Row
from tests.support.processes import running

_ROUNDS = 50
_LETTERS = 40  # a search for _SLOW in so many takes minutes
_SLOW = "(?:a|aa)+$"
_SEARCH_BEGAN_S = 0.05

_CHILDREN = (
    "{trap} setsid bash -c 'echo >> ready; exec -a {marker} sleep 60' & "
    "(setsid env -i bash -c 'cd $0; echo >> ready; exec -a {marker} sleep 60' $PWD &); "
    "bash -c 'echo >> ready; exec -a {marker} sleep 60' & "
)
_COMMAND = "echo >> ready; exec -a {marker} sleep 60"
_TERM, _KILL = "", "trap '' TERM HUP INT;"
_AT_TERM_S, _AT_KILL_S = 0.3, 2.0


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    calls: tuple[tuple[str, Mapping[str, str]], ...]
    processes: int
    limit_s: float
    sandbox: bool = False


def _cases(marker: str) -> list[_Case]:
    cases: list[_Case] = []
    command = _COMMAND.format(marker=marker)
    for sandbox in (False, True) if shutil.which("bwrap") else (False,):
        inside = " in the sandbox" if sandbox else ""
        for ends, trap, limit_s in (("that end", _TERM, _AT_TERM_S), ("that must be killed", _KILL, _AT_KILL_S)):
            children = _CHILDREN.format(marker=marker, trap=trap)
            foreground = (("shell", {"command": children + command}),)
            left = f"({children}{command}) & sleep 0.01"
            background = (("shell", {"command": left}), ("shell", {"command": "sleep 60"}))
            for calls, suffix in ((foreground, ""), (background, " in the background")):
                cases.append(_Case(f"stop of processes {ends}{suffix}{inside}", calls, 4, limit_s, sandbox))
    search = (("code", {"action": "search", "path": ".", "pattern": _SLOW}),)
    return [*cases, _Case("stop of a search", search, 0, _AT_TERM_S)]


async def stop() -> list[Row]:
    marker = f"bench-{uuid4().hex}"
    return [row for case in _cases(marker) for row in await _rows(case, marker)]


async def _rows(case: _Case, marker: str) -> list[Row]:
    gone: list[float] = []
    with home() as folder, model(0, calls=case.calls) as server:
        workspace = workspace_in(folder)
        (workspace / "long.txt").write_text("a" * _LETTERS + "b")
        async with engine(folder) as connection:
            await _set_sandbox(connection, case.sandbox)
            for _ in range(_ROUNDS):
                gone.append(await _once(connection, server.url, workspace, case, marker))
    return [
        Row(f"{case.name}, p50", statistics.median(gone), "s", case.limit_s),
        Row(f"{case.name}, p99", p99(gone), "s", case.limit_s),
    ]


async def _set_sandbox(connection: Connection, is_on: bool) -> None:
    await connection.call(SETTINGS_SET, SettingsSetParams(name="command_sandbox", value="required" if is_on else "off"))


async def _once(connection: Connection, url: str, workspace: Path, case: _Case, marker: str) -> float:
    others = set(running(marker))  # the model server, whose arguments are the commands
    file = workspace / "ready"
    file.unlink(missing_ok=True)
    task = await start(connection, url, workspace)
    while case.processes and (not file.exists() or file.read_text().count("\n") < case.processes):  # noqa: ASYNC110
        await asyncio.sleep(0.002)  # no event tells
    if not case.processes:
        await _until_status(connection, task.id, "tool_executing")
        await asyncio.sleep(_SEARCH_BEGAN_S)
    while len(pids := set(running(marker)) - others) < case.processes:  # noqa: ASYNC110 - one may just start
        await asyncio.sleep(0.002)
    started = time.perf_counter()
    await connection.call(TASK_STOP, TaskIdParams(task_id=task.id))
    while any(psutil.pid_exists(pid) for pid in pids):  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0.001)
    if not case.processes:
        await _until_status(connection, task.id, "cancelled")
    took = time.perf_counter() - started
    assert others.issuperset(running(marker)), "a process was started during the stop"
    return took


async def _until_status(connection: Connection, task_id: str, status: str) -> None:
    while (await connection.call(TASK_GET, TaskIdParams(task_id=task_id))).task.activity.status != status:  # noqa: ASYNC110
        await asyncio.sleep(0.002)
