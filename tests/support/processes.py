"""Looks at the processes of this machine, for tests that count what is left."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import psutil


def running(marker: str) -> list[int]:
    """Processes whose command line holds the marker."""
    found: list[int] = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words: list[str] = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(marker in word for word in words):
            found.append(process.pid)
    return found


def is_alive(pid: int) -> bool:
    """False for a process that has ended, also for one that nobody has taken note of yet."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def until(is_true: Callable[[], bool], limit_s: float = 10.0) -> None:
    """Wait for something that sends no event, by looking again every 10 ms."""
    async with asyncio.timeout(limit_s):
        while not is_true():  # noqa: ASYNC110 - processes and files of others set no asyncio event
            await asyncio.sleep(0.01)


async def file_appears(file: Path) -> None:
    await until(file.exists)
