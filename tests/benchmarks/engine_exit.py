"""The time from a signal to the exit of an engine whose task runs a stubborn command, waits for a limit, or talks."""

import asyncio
import os
import signal
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.bench import workspace_in
from tests.benchmarks.row import Row
from tests.support.command_line import Errand, rest
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import is_alive, running, until

_ROUNDS = 5
_RUN = ("run", "--model", "openai_compatible/test-model", "--approve", "all", "--api-base")
_MARKER = f"7{os.getpid()}"
_STUBBORN = Reply(calls=(Call("shell", {"command": f"trap '' TERM INT HUP; sleep {_MARKER}"}),))
_LIMITED = Reply(status=429, error="slow down", headers={"Retry-After": "3600"})
_LONG = Reply(text="word " * 10_000, piece_length=5, piece_delay_s=0.01)


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    reply: Reply
    signals: tuple[signal.Signals, ...]
    limit_s: float


_CASES = (
    _Case("exit of an engine with a stubborn command", _STUBBORN, (signal.SIGTERM,), 4),
    _Case("exit at a second signal", _STUBBORN, (signal.SIGTERM, signal.SIGINT), 1),
    _Case("exit of an engine whose task waits for a limit", _LIMITED, (signal.SIGTERM,), 3),
    _Case("exit of an engine whose task streams", _LONG, (signal.SIGTERM,), 3),
)


async def engine_exit() -> list[Row]:
    return [
        Row(f"{case.name}, p50", statistics.median([await _took(case) for _ in range(_ROUNDS)]), "s", case.limit_s)
        for case in _CASES
    ]


async def _took(case: _Case) -> float:
    with tempfile.TemporaryDirectory(prefix="errand-bench-") as folder:
        home = Path(folder)
        errand = Errand(home, workspace_in(home))
        async with ModelServer(answer=lambda request: case.reply) as server:
            process = await errand.start(*_RUN, server.url, "work")
            await server.request(0)
            if case.reply is _STUBBORN:
                await until(lambda: bool(running(_MARKER)))
            else:
                await errand.task("paused" if case.reply is _LIMITED else "thinking")
            engine, began = errand.engine_pid(), time.perf_counter()
            for number in case.signals:
                os.kill(engine, number)
            await until(lambda: not is_alive(engine))
            took = time.perf_counter() - began
            process.kill()
            await asyncio.gather(rest(process), until(lambda: not running(_MARKER)))
        return took
