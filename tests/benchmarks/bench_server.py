"""Measures the server: the round trip of a trivial call, and events to 20 clients in another process.

`python -m tests.benchmarks.bench_server`; `measure` returns the numbers by name.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from websockets.asyncio.client import connect

from errand.client.connection import Connection
from errand.protocol.engine import UNSUBSCRIBE, UnsubscribeParams
from errand.protocol.events import ConversationUpdate, TaskUpdate
from tests.support.connections import RawClient
from tests.support.engine_server import EngineServer, engine_server
from tests.support.records import conversation, task

_CLIENTS = 20
_EVENTS = 4_000
_AT_ONCE = 100
_CALLS = 150  # below the burst that a client may send


async def round_trip_us(engine: EngineServer) -> float:
    """Median of sequential calls; client and engine share this process."""
    connection = Connection(engine.endpoint, "bench")
    await connection.open()
    times: list[float] = []
    for _ in range(_CALLS):
        start = time.perf_counter()
        await connection.call(UNSUBSCRIBE, UnsubscribeParams())
        times.append(time.perf_counter() - start)
    await connection.close()
    return sorted(times)[_CALLS // 2] * 1e6


async def events_per_second(engine: EngineServer) -> tuple[float, float]:
    """Events per second that 20 clients all receive, and the engine's CPU microseconds per delivered event."""
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    await engine.log.flush()
    clients = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.benchmarks.bench_server", engine.server.url, stdout=asyncio.subprocess.PIPE
    )
    assert clients.stdout is not None
    await clients.stdout.readline()
    start, cpu = time.perf_counter(), time.process_time()
    for step in range(_EVENTS):
        engine.log.publish(TaskUpdate(task=task(step_count=step)))
        if step % _AT_ONCE == 0:
            await engine.log.flush()
    await clients.stdout.readline()
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    await clients.wait()
    return _EVENTS / wall, used / _EVENTS * 1e6


async def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        async with engine_server(Path(folder)) as engine:
            trip = await round_trip_us(engine)
            rate, cpu = await events_per_second(engine)
    return {"round trip, us": trip, "events/s to 20 clients": rate, "engine CPU per event to 20 clients, us": cpu}


async def _listen(url: str) -> None:
    """20 clients that read until the last event."""
    sockets = [await connect(url, proxy=None, compression=None) for _ in range(_CLIENTS)]
    for number, socket in enumerate(sockets):
        client = RawClient(socket)
        await client.initialize(f"c{number}")
        await client.ask("subscribe", 2)
    sys.stdout.write("ready\n")
    sys.stdout.flush()

    async def read(client: int) -> None:
        for _ in range(_EVENTS):
            frame = await sockets[client].recv(decode=False)
            assert b'"event"' in frame, frame

    await asyncio.gather(*(read(number) for number in range(_CLIENTS)))
    sys.stdout.write("done\n")
    sys.stdout.flush()
    for socket in sockets:
        await socket.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(_listen(sys.argv[1]))
    else:
        for name, value in asyncio.run(measure()).items():
            sys.stdout.write(f"{name}: {value:.0f}\n")
