"""The whole window in a process, on a real engine with 100,000 conversations: start, memory, stalls and stop."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.system.paths import Paths
from tests.benchmarks.bench import engine, home, median, model, workspace_in
from tests.benchmarks.cold_copy import cold_copy, evict, read_mb
from tests.benchmarks.history import LONG_NODES, WORKED, stored_history, worked_id
from tests.benchmarks.row import Row

_ROUNDS = 7
_COLD_ROUNDS = 3
# What a cold start reads from the disk at least: Qt's libraries alone are more.
_COLD_MB = 30.0
_STREAM_S = 25
_PAINTED = "The window is painted"


async def window_start() -> list[Row]:
    """The command itself; the window logs its first paint."""
    with home() as folder:
        async with engine(folder):
            await _painted_after(folder)
            painted = [await _painted_after(folder) for _ in range(_ROUNDS)]
            with cold_copy() as program:
                await _painted_after(folder, program)  # compiles what was not
                cold = [await _painted_cold(folder, program) for _ in range(_COLD_ROUNDS)]
    return [
        Row("window: start to first paint, warm, median", median(painted), "s", 0.35),
        Row("window: start to first paint, warm, best", min(painted), "s", 0.35),
        Row("window: start to first paint, cold (nothing loaded or cached), median", median(cold), "s", 0.7),
    ]


async def window_stored() -> list[Row]:
    """Measure a window with a long history of messages, replies and tool cards, as those that people open."""
    with home() as folder:
        await stored_history(Paths(folder))
        few, some, many = ([worked_id(number) for number in range(count)] for count in (3, 10, WORKED))
        async with engine(folder):
            usable: list[float] = []
            for _ in range(_ROUNDS):
                started = time.time()
                usable.append((await _story(folder, "usable"))["at"] - started)
            three = await _story(folder, "memory", *few)
            long = await _story(folder, "memory", "long+")
            fifty = await _story(folder, "memory", *many)
            idle = await _story(folder, "idle", *some)
            theme = await _story(folder, "theme", *many)
    assert long["rows"] >= LONG_NODES // 2, long  # a call and its result are one row
    sharing = max(story["sharing"] for story in (three, long, fifty))
    note = f", beside {sharing:.0f} other processes with Qt" if sharing else ""
    return [
        Row("window: start to usable, 100,000 conversations", median(usable), "s", 1.0),
        Row(f"window: memory, three conversations (PSS){note}", three["mb"], "MB", 100),
        Row(f"window: memory, one of 10,000 messages (PSS){note}", long["mb"], "MB", 120),
        Row(f"window: memory, 50 tabs (PSS){note}", fifty["mb"], "MB", 160),
        Row("window: idle CPU, 10 tabs", idle["percent"], "%", 0.5),
        Row("window: theme switch, 50 tabs", theme["ms"], "ms", 150),
    ]


async def window_streams() -> list[Row]:
    with home() as folder, _talker() as url:
        async with engine(folder):
            figures = await _story(folder, "streams", url, str(workspace_in(folder)))
    assert figures["running"] == 20, figures
    return [
        Row("window: stall, 20 tasks at 100 tokens/s, p99", figures["p99"], "ms", 16),
        Row("window: stall, 20 tasks at 100 tokens/s, max", figures["max"], "ms", 33),
        Row("window: CPU with 20 tasks at 100 tokens/s", figures["cpu"], "%", 25),
    ]


async def wakes() -> list[Row]:
    """Idle processes do not wake the CPU."""
    with home() as folder, model(1, "touch asked-about") as server:
        async with engine(folder):
            rates = await _story(folder, "wakes", server.url, str(workspace_in(folder)))
    return [
        Row("wake-ups while a task waits: engine with its watchdog", rates["engine"], "/s", 0.5),
        Row("wake-ups while a task waits: window", rates["window"], "/s", 1.5),
    ]


async def window_stop() -> list[Row]:
    with home() as folder, model(1, "sleep 60") as server:
        async with engine(folder):
            stops = [await _story(folder, "stop", server.url, str(workspace_in(folder))) for _ in range(_ROUNDS)]
    return [
        Row("window: stop clicked to stopping, worst of 7", max(times["stopping"] for times in stops), "ms", 50),
        Row("window: stop clicked to stopped, worst of 7", max(times["stopped"] for times in stops), "ms", 500),
    ]


async def window_opens() -> list[Row]:
    """Measure what a person opens from the keyboard, with all that was not loaded before."""
    with home() as folder:
        async with engine(folder):
            times = await _story(folder, "opens")
    return [
        Row("window: settings open, first time", times["settings_first"], "ms", 120),
        Row("window: settings open, first time, CPU", times["settings_first_cpu"], "ms", 120),
        Row("window: settings open, median", times["settings"], "ms", 120),
        Row("window: model picker with 2,000 models, first time", times["picker_first"], "ms", 60),
        Row("window: model picker with 2,000 models, median", times["picker"], "ms", 60),
    ]


async def _painted_after(folder: Path, python: Path | None = None, reads_mb: float = 0.0) -> float:
    """Seconds from the command to the first paint, with this Python or the one here.

    It must have read so much from the disk: otherwise it was not cold.
    """
    log = Paths(folder).logs / "window.log"
    seen = log.stat().st_size if log.exists() else 0
    command = [str(python or sys.executable), "-m", "errand", "window"]
    started = time.time()
    process = await asyncio.create_subprocess_exec(*command, env=_environment(), stderr=asyncio.subprocess.DEVNULL)
    line = ""
    async with asyncio.timeout(20):
        while not line:
            await asyncio.sleep(0.05)
            text = log.read_text(encoding="utf-8")[seen:] if log.exists() else ""
            line = next((line for line in text.splitlines() if _PAINTED in line), "")
    read = read_mb(process.pid)
    process.terminate()
    await process.wait()
    assert read >= reads_mb, f"{read} MB read from the disk"
    painted = datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").astimezone()
    return painted.astimezone(UTC).timestamp() - started


async def _painted_cold(folder: Path, python: Path) -> float:
    """Return the time to the first paint as after a reboot."""
    await asyncio.to_thread(evict, python)
    return await _painted_after(folder, python, _COLD_MB)


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
