"""Tool steps: one task and fifty, through engine and protocol, compared with the bare loop in the same run."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errand.client.connection import Connection
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import SandboxProfile
from errand.protocol.base import EmptyParams, JsonValue
from errand.protocol.engine import ENGINE_STATUS, EngineStatusResult, SandboxMode
from errand.system.paths import Paths
from tests.benchmarks.bench import engine, home, median, model, run_tasks, workspace_in
from tests.benchmarks.process_memory import PeakMemory
from tests.benchmarks.row import Row

_STEPS = 100
_ONE_ROUNDS = 5
_TASKS = 50
_TASK_STEPS = 20
_ROUNDS = 3
# Of each streamed reply, at 100 tokens a second.
_STREAMED_TOKENS = 150
_STREAMED_STEPS = 4


def _echoes(target: str) -> list[tuple[str, dict[str, JsonValue]]]:
    """Return calls that print or write to a file. Each is another one: real commands are rarely the same twice."""
    return [("shell", {"command": f"echo step {number}{target}"}) for number in range(_STEPS)]


def _floor(url: str, tasks: int, box: Sequence[str] = ()) -> "dict[str, float]":
    command = [sys.executable, "-m", "tests.benchmarks.floor", url, str(tasks), *box]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


async def _status(connection: Connection) -> EngineStatusResult:
    return await connection.call(ENGINE_STATUS, EmptyParams())


@dataclass(frozen=True, slots=True)
class _Cost:
    """Milliseconds of a step, of its CPU, and of that with all processes that it started."""

    wall: float
    cpu: float
    tree: float


@dataclass(frozen=True, slots=True)
class _Round:
    """The cost of a step: of the engine, of the bare loop, and of one that starts bubblewrap too."""

    ours: _Cost
    bare: _Cost
    boxed: _Cost


async def _one_task(sandbox: SandboxMode, *, writes: bool = False) -> tuple[list[_Round], float]:
    """Also the memory of the idle engine, in MB. In each round all are measured: each ratio is of neighbours."""
    rounds: list[_Round] = []
    with home() as folder:
        calls = _echoes(f" > {workspace_in(folder)}/written" if writes else "")
        Paths(folder).settings.write_text(json.dumps({"command_sandbox": sandbox}))
        box = _bubblewrap(folder) if sandbox == "required" else []
        with model(_STEPS, calls=calls) as server:
            async with engine(folder) as connection:
                idle_mb = (await _status(connection)).memory_bytes / 1e6
                await run_tasks(connection, server.url, 1, workspace_in(folder))
                for _ in range(_ONE_ROUNDS):
                    bare = _cost(**_floor(server.url, 1))
                    boxed = _cost(**_floor(server.url, 1, box)) if box else bare
                    before, started = await _status(connection), time.perf_counter()
                    tree = _tree_cpu(before.pid)
                    await run_tasks(connection, server.url, 1, workspace_in(folder))
                    wall_s = time.perf_counter() - started
                    cpu_s = (await _status(connection)).cpu_seconds - before.cpu_seconds
                    rounds.append(_Round(_cost(wall_s, cpu_s, _tree_cpu(before.pid) - tree), bare, boxed))
    return rounds, idle_mb


def _cost(wall_s: float, cpu_s: float, tree_cpu_s: float) -> _Cost:
    return _Cost(*(seconds / _STEPS * 1000 for seconds in (wall_s, cpu_s, tree_cpu_s)))


def _tree_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of what it has waited for; see proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _bubblewrap(folder: Path) -> list[str]:
    """The words with which the engine starts a command of the bench in bubblewrap, without the filter of calls.

    Its descriptor is read once.
    """
    workspace, paths = workspace_in(folder), Paths(folder)
    profile = SandboxProfile(workspace, (Path.home(),), paths.home, paths.outputs / "bench", paths.cache)
    launch = CommandSandbox(profile).launch([], workspace, os.environ, network=False)
    launch.close()
    arguments = launch.arguments
    at = arguments.index("--seccomp") if "--seccomp" in arguments else len(arguments)
    return [*arguments[:at], *arguments[at + 2 :]]


async def one_task() -> list[Row]:
    """Without the sandbox: the limits were set before commands ran in it."""
    rounds, idle_mb = await _one_task("off")
    walls, cpus = [step.ours.wall for step in rounds], [step.ours.cpu for step in rounds]
    bare_walls, bare_cpus = [step.bare.wall for step in rounds], [step.bare.cpu for step in rounds]
    trees, bare_trees = [step.ours.tree for step in rounds], [step.bare.tree for step in rounds]
    return [
        Row("a tool step of one task (with its echo)", median(walls), "ms", None, median(bare_walls)),
        Row("a tool step of one task, over the bare loop's", _ratio(walls, bare_walls), "×", 2.2),
        Row("engine CPU a step", median(cpus), "ms", None, median(bare_cpus)),
        Row("engine CPU a step, over the bare loop's", _ratio(cpus, bare_cpus), "×", 3.5),
        Row("CPU of a step with its command, over the bare loop's", _ratio(trees, bare_trees), "×", 2.2),
        Row("engine memory idle (PSS)", idle_mb, "MB", 80.0),
    ]


async def boxed_task() -> list[Row]:
    """Commands that write, in the sandbox, beside a bare loop that starts bubblewrap with the engine's options.

    The limits of the engine's own were 25, 12 and 8 ms on a machine where the bare loops took 2.86, 1.95 and 0.91 ms.
    """
    rounds, _ = await _one_task("required", writes=True)
    own = [step.ours.wall - (step.boxed.wall - step.bare.wall) for step in rounds]
    walls, cpus = [step.ours.wall for step in rounds], [step.ours.cpu for step in rounds]
    bare_walls, boxed_walls = [step.bare.wall for step in rounds], [step.boxed.wall for step in rounds]
    trees, bare_trees = [step.ours.tree for step in rounds], [step.bare.tree for step in rounds]
    boxed, boxed_cpu = median(boxed_walls), median([step.boxed.cpu for step in rounds])
    return [
        Row("a tool step in the sandbox", median(walls), "ms", 8.7, boxed, of_floor=True),
        Row(
            "a tool step in the sandbox, without bubblewrap's own start",
            median(own),
            "ms",
            6.2,
            median(bare_walls),
            of_floor=True,
        ),
        Row("engine CPU a step in the sandbox", median(cpus), "ms", 8.8, boxed_cpu, of_floor=True),
        Row("step of a command that writes, in the sandbox, over the bare loop", _ratio(walls, bare_walls), "×", 4.0),
        Row("CPU of such a step with its command, over the bare loop's", _ratio(trees, bare_trees), "×", 4.0),
    ]


def _ratio(ours: list[float], floors: list[float]) -> float:
    return median([value / floor for value, floor in zip(ours, floors, strict=True)])


async def fifty_tasks() -> list[Row]:
    """Medians of several rounds, each with a separate engine, since the machine may be shared."""
    rounds = [await _fifty() for _ in range(_ROUNDS)]
    rates, floors, memory, p99s, worst = zip(*rounds, strict=True)
    return [
        Row("50 tasks of 20 steps", median(rates), "steps/s", None, median(floors), more_is_better=True),
        Row("50 tasks, of the bare loop's rate", _ratio([*rates], [*floors]), "×", 0.5, more_is_better=True),
        Row("engine memory with 50 tasks, peak (PSS)", max(memory), "MB", 130.0),
        Row("event-loop stall with 50 tasks, p99", median(p99s), "ms", 20.0),
        Row("event-loop stall with 50 tasks, max", median(worst), "ms", 50.0),
    ]


async def _fifty() -> tuple[float, float, float, float, float]:
    """Rate, the baseline's rate before and after, peak memory, stalls."""
    steps = _TASKS * _TASK_STEPS
    with home() as folder, model(_TASK_STEPS) as server:
        floor_s = _floor(server.url, _TASKS)["wall_s"]
        async with engine(folder) as connection:
            peak = PeakMemory((await _status(connection)).pid)
            started = time.perf_counter()
            await run_tasks(connection, server.url, _TASKS, workspace_in(folder))
            rate = steps / (time.perf_counter() - started)
            memory, status = peak.pss_mb(), await _status(connection)
        floor_s = (floor_s + _floor(server.url, _TASKS)["wall_s"]) / 2
    return rate, steps / floor_s, memory, status.loop_stall_p99_ms, status.loop_stall_max_ms


async def fifty_streams() -> list[Row]:
    """Replies come token by token before each call, and a client follows every one of them."""
    rounds = [await _streamed() for _ in range(_ROUNDS)]
    memory, p99s, worst = zip(*rounds, strict=True)
    streaming = "50 tasks that stream 100 tokens/s"
    return [
        Row(f"engine memory with {streaming}, peak (PSS)", max(memory), "MB", 130.0),
        Row(f"event-loop stall with {streaming}, p99", median(p99s), "ms", 20.0),
        Row(f"event-loop stall with {streaming}, max", median(worst), "ms", 50.0),
    ]


async def _streamed() -> tuple[float, float, float]:
    """Peak memory, stalls."""
    with home() as folder, model(_STREAMED_STEPS, tokens=_STREAMED_TOKENS) as server:
        async with engine(folder) as connection:
            peak = PeakMemory((await _status(connection)).pid)
            await run_tasks(connection, server.url, _TASKS, workspace_in(folder), detail="full")
            memory, status = peak.pss_mb(), await _status(connection)
    return memory, status.loop_stall_p99_ms, status.loop_stall_max_ms
