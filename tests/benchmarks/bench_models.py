"""Models over HTTP (Anthropic) and through litellm (Gemini): first request, memory, stalls with 20 streams."""

import asyncio
import time

from errand.client.connection import Connection
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS, EngineStatusResult
from errand.protocol.settings import MODEL_WARM_UP, ModelWarmUpParams
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from tests.benchmarks.bench import engine, home, median
from tests.benchmarks.row import Row
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import below

_ANTHROPIC = "anthropic/claude-sonnet-5-5"
_GEMINI = "gemini/gemini-3.8-flash"
_STREAMS = 20
_ROUNDS = 3
_QUIET_S = 0.02
_REPLY = Reply(
    thinking="One table after the other. " * 40,
    text="All the tables of the harbour are here, one by one. " * 150,
    piece_length=20,
    piece_delay_s=0.01,
)


async def anthropic() -> list[Row]:
    return await _rows("Anthropic", _ANTHROPIC, 0.25)


async def litellm() -> list[Row]:
    return await _rows("Gemini (litellm)", _GEMINI, 0.4)


async def _rows(name: str, model: str, longest_s: float) -> list[Row]:
    rounds = [await _round(model) for _ in range(_ROUNDS)]
    first, memory, stalls = zip(*rounds, strict=True)
    return [
        Row(f"first request to {name}, engine warm", median(first), "s", longest_s),
        Row(f"engine memory with {_STREAMS} streams of {name} (PSS)", median(memory), "MB", 80.0),
        Row(f"event-loop stall with {_STREAMS} streams of {name}, p99", median(stalls), "ms", 20.0),
    ]


async def _round(model: str) -> tuple[float, float, float]:
    """Seconds, megabytes, milliseconds."""
    async with ModelServer(answer=lambda request: _REPLY) as server:
        with home() as folder:
            async with engine(folder) as connection:
                if model == _GEMINI:
                    await connection.call(MODEL_WARM_UP, ModelWarmUpParams(model=model))
                    await asyncio.to_thread(_wait_warm)
                began = time.perf_counter()
                await _start(connection, model, server.url)
                await server.request(0)
                first = time.perf_counter() - began
                await asyncio.gather(*(_start(connection, model, server.url) for _ in range(_STREAMS - 1)))
                await server.request(_STREAMS - 1, 60.0)
                await asyncio.sleep(1.0)
                memory = (await _status(connection)).memory_bytes
                async with asyncio.timeout(120):
                    for received in server.requests:
                        await received.served.wait()
                stalls = (await _status(connection)).loop_stall_p99_ms
    return first, memory / 1e6, stalls


def _wait_warm() -> None:
    """Until the process of litellm is there and computes no more."""
    spent = 0.0
    while True:
        time.sleep(1.0)
        before, spent = spent, sum(sum(process.cpu_times()[:2]) for process in below("library_child"))
        if spent and spent - before < _QUIET_S:
            return


async def _start(connection: Connection, model: str, url: str) -> None:
    params = TaskStartParams(
        prompt="all the tables", model=model, api_base=url, api_key="none", mode="chat", thinking_level="medium"
    )
    await connection.call(TASK_START, params)


async def _status(connection: Connection) -> EngineStatusResult:
    return await connection.call(ENGINE_STATUS, EmptyParams())
