"""The whole window in a process, on a real engine with 100,000 conversations: start, memory, stalls and stop."""

import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

import errand
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.engine.storage.sqlite.statements import Write
from errand.paths import Paths
from tests.benchmarks.bench import Row, engine, home, median, model, workspace_in
from tests.benchmarks.bench_storage import fill
from tests.support.records import agent

_COUNT = 100_000
_ROUNDS = 7
_COLD_ROUNDS = 3
_STREAM_S = 25
_PAINTED = "The window is painted"


async def window_start() -> list[Row]:
    """The command itself; the window logs its first paint."""
    with home() as folder:
        async with engine(folder):
            await _painted_after(folder)
            painted = [await _painted_after(folder) for _ in range(_ROUNDS)]
            cold = [await _painted_cold(folder) for _ in range(_COLD_ROUNDS)]
    return [
        Row("window: start to first paint, warm, median", median(painted), "s", 0.35),
        Row("window: start to first paint, warm, best", min(painted), "s", 0.35),
        Row("window: start to first paint, cold, median", median(cold), "s", 0.7),
    ]


async def window_stored() -> list[Row]:
    """With a long history."""
    with home() as folder:
        paths = Paths(folder)
        paths.prepare()
        database = await Database.open(sqlite_url(paths.database), paths.copies)
        await fill(database, _COUNT)
        few, some, many = ([f"conv_{number:08}" for number in range(count)] for count in (3, 10, 50))
        for name in many:
            database.journal.put(_agent(name, name.replace("conv", "node")))
        database.journal.put(_agent("long", f"long_{_COUNT // 10 - 1}"))
        await database.journal.flush()
        await database.close()
        async with engine(folder):
            usable: list[float] = []
            for _ in range(_ROUNDS):
                started = time.time()
                usable.append((await _story(folder, "usable"))["at"] - started)
            three = await _story(folder, "memory", *few)
            long = await _story(folder, "memory", "long+")
            fifty = await _story(folder, "memory", *many)
            idle = await _story(folder, "idle", *some)
    assert long["rows"] >= _COUNT // 10, long
    return [
        Row("window: start to usable, 100,000 conversations", median(usable), "s", 1.0),
        Row("window: memory, three conversations (PSS)", three["mb"], "MB", 100),
        Row("window: memory, one of 10,000 messages (PSS)", long["mb"], "MB", 120),
        Row("window: memory, 50 tabs (PSS)", fifty["mb"], "MB", 160),
        Row("window: idle CPU, 10 tabs", idle["percent"], "%", 0.5),
    ]


async def window_streams() -> list[Row]:
    with home() as folder, _talker() as url:
        async with engine(folder):
            found = await _story(folder, "streams", url, str(workspace_in(folder)))
    assert found["running"] == 20, found
    return [
        Row("window: stall, 20 tasks at 100 tokens/s, p99", found["p99"], "ms", 16),
        Row("window: stall, 20 tasks at 100 tokens/s, max", found["max"], "ms", 33),
        Row("window: CPU with 20 tasks at 100 tokens/s", found["cpu"], "%", 25),
    ]


async def wakes() -> list[Row]:
    """Idle processes do not wake the CPU."""
    with home() as folder, model(1, "touch asked-about") as server:
        async with engine(folder):
            found = await _story(folder, "wakes", server.url, str(workspace_in(folder)))
    return [
        Row("wake-ups while a task waits: engine with its watchdog", found["engine"], "/s", 0.5),
        Row("wake-ups while a task waits: window", found["window"], "/s", 1.5),
    ]


async def window_stop() -> list[Row]:
    with home() as folder, model(1, "sleep 60") as server:
        async with engine(folder):
            found = [await _story(folder, "stop", server.url, str(workspace_in(folder))) for _ in range(_ROUNDS)]
    return [
        Row("window: stop clicked to stopping, worst of 7", max(one["stopping"] for one in found), "ms", 50),
        Row("window: stop clicked to stopped, worst of 7", max(one["stopped"] for one in found), "ms", 500),
    ]


def _agent(conversation_id: str, head_id: str) -> Write:
    """An agent with the newest node as its head: opening the conversation shows that branch."""
    return agents.save_agent(replace(agent(f"of_{conversation_id}", head_id=head_id), conversation_id=conversation_id))


async def _painted_after(folder: Path) -> float:
    log = Paths(folder).logs / "window.log"
    seen = log.stat().st_size if log.exists() else 0
    command = [str(Path(sys.executable).parent / "errand"), "window"]
    started = time.time()
    process = await asyncio.create_subprocess_exec(*command, env=_environment(), stderr=asyncio.subprocess.DEVNULL)
    line = ""
    async with asyncio.timeout(20):
        while not line:
            await asyncio.sleep(0.05)
            text = log.read_text(encoding="utf-8")[seen:] if log.exists() else ""
            line = next((line for line in text.splitlines() if _PAINTED in line), "")
    process.terminate()
    await process.wait()
    painted = datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").astimezone()
    return painted.astimezone(UTC).timestamp() - started


async def _painted_cold(folder: Path) -> float:
    """As after a reboot, as far as possible: files that other processes have open stay cached."""
    await asyncio.to_thread(_forget, (Path(sys.prefix), Path(sys.base_prefix) / "lib", Path(errand.__file__).parent))
    return await _painted_after(folder)


def _forget(folders: tuple[Path, ...]) -> None:
    for file in itertools.chain.from_iterable(folder.rglob("*") for folder in folders):
        if file.is_file():
            with file.open("rb") as read:
                os.posix_fadvise(read.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


async def _story(folder: Path, *arguments: str) -> dict[str, float]:
    (folder / "window.json").unlink(missing_ok=True)  # no tabs from the last session
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.benchmarks.window_process",
        *arguments,
        env=_environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, arguments
    return msgspec.json.decode(out, type=dict[str, float])


def _environment() -> dict[str, str]:
    """Offscreen unless a display is requested; compiled files are kept, as in an installation."""
    variables = {"QT_QPA_PLATFORM": "offscreen"} | dict(os.environ)
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


@contextmanager
def _talker() -> Generator[str]:
    arguments = [sys.executable, "-m", "tests.benchmarks.window_streams", str(_STREAM_S)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
