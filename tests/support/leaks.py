"""What a test leaves behind: asyncio tasks, threads and processes that do not end by themselves."""

import asyncio
import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import psutil

_PR_SET_CHILD_SUBREAPER = 36

# What is ending when a test is over may take so long to be gone.
_GRACE_S = 5.0
_LOOK_S = 0.01


def adopt_orphans() -> None:
    """Make processes that lose their parent children of this one, so that they are found (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def leaked_tasks() -> list[str]:
    """The asyncio tasks of this loop, but for the one that asks."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, others = await asyncio.wait(others, timeout=_GRACE_S)
    return sorted(repr(task) for task in others)


def threads() -> set[threading.Thread]:
    """Those that run, but for a library's that lasts as long as the process."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("litellm-logging")}


def leaked_threads(before: set[threading.Thread]) -> list[str]:
    """The threads that were not there before."""
    give_up_at = time.monotonic() + _GRACE_S
    for thread in threads() - before:
        thread.join(max(0.0, give_up_at - time.monotonic()))
    return sorted(repr(thread) for thread in threads() - before)


def processes() -> set[int]:
    """The processes below this one, without those that have ended."""
    if not _has_children():
        return set()
    return {child.pid for child in psutil.Process().children(recursive=True) if _is_alive(child)}


def leaked_processes(before: set[int], kept_homes: Iterable[Path]) -> list[str]:
    """The processes that were not there before, ended by this call; engines on the kept data directories may stay."""
    give_up_at = time.monotonic() + _GRACE_S
    while left := processes() - before:
        left -= _engines(kept_homes)
        if not left or time.monotonic() > give_up_at:
            return sorted(_end(pid) for pid in left)
        time.sleep(_LOOK_S)
    return []


def _has_children() -> bool:
    """False at no cost where a walk through the process table would find nothing."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _engines(homes: Iterable[Path]) -> set[int]:
    """The engines on these data directories, and the processes below them."""
    found: set[int] = set()
    for home in homes:
        try:
            engine = psutil.Process(msgspec.json.decode((home / "run" / "engine.json").read_bytes())["pid"])
            found |= {engine.pid, *(child.pid for child in engine.children(recursive=True))}
        except (OSError, psutil.NoSuchProcess):
            pass  # none runs
    return found


def _end(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        words = " ".join(process.cmdline())
        process.kill()
    except psutil.NoSuchProcess:
        return f"{pid}, ended meanwhile"
    return f"{pid} {words[:200]}"
