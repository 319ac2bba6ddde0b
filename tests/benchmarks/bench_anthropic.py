"""Anthropic's models, over HTTP: the first request of an engine, its memory, and its stalls while 20 replies stream."""

import asyncio
import time

from errand.client.connection import Connection
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS, EngineStatusResult
from errand.protocol.tasks import TASK_START, TaskStartParams
from tests.benchmarks.bench import Row, engine, home, median
from tests.support.model_server import ModelServer, Reply

_MODEL = "anthropic/claude-sonnet-5-5"
_STREAMS = 20
_ROUNDS = 3
_REPLY = Reply(
    thinking="One table after the other. " * 40,
    text="All the tables of the harbour are here, one by one. " * 150,
    piece_length=20,
    piece_delay_s=0.01,
)


async def anthropic() -> list[Row]:
    rounds = [await _round() for _ in range(_ROUNDS)]
    first, memory, stalls = zip(*rounds, strict=True)
    return [
        Row("first request to Anthropic, engine warm", median(first), "s", 0.25),
        Row(f"engine memory with {_STREAMS} streams of Anthropic (PSS)", median(memory), "MB", 80.0),
        Row(f"event-loop stall with {_STREAMS} streams of Anthropic, p99", median(stalls), "ms", 20.0),
    ]


async def _round() -> tuple[float, float, float]:
    """Seconds, megabytes, milliseconds."""
    async with ModelServer(answer=lambda request: _REPLY) as server:
        with home() as folder:
            async with engine(folder) as connection:
                began = time.perf_counter()
                await _start(connection, server.url)
                await server.request(0)
                first = time.perf_counter() - began
                await asyncio.gather(*(_start(connection, server.url) for _ in range(_STREAMS - 1)))
                await server.request(_STREAMS - 1)
                await asyncio.sleep(1.0)
                memory = (await _status(connection)).memory_bytes
                async with asyncio.timeout(120):
                    for received in server.requests:
                        await received.served.wait()
                stalls = (await _status(connection)).loop_stall_p99_ms
    return first, memory / 1e6, stalls


async def _start(connection: Connection, url: str) -> None:
    params = TaskStartParams(
        prompt="all the tables", model=_MODEL, api_base=url, api_key="none", mode="chat", thinking_level="medium"
    )
    await connection.call(TASK_START, params)


async def _status(connection: Connection) -> EngineStatusResult:
    return await connection.call(ENGINE_STATUS, EmptyParams())
