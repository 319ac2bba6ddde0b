"""Orphans: processes whose parents ended come to the engine instead of to init, and are reaped when they end."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from functools import cache

from app.engine.tools.marks import stamp_of
from app.engine.tools.process_table import Entry, children_of, entry_of, has_proc, is_of_tools
from app.engine.tools.spawn import is_watched

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_PAUSE_S = 0.05


@cache
def adopt_orphans() -> None:
    """Make this process the one that orphans of its descendants are given to. Does nothing outside Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Adopt orphans and reap each when it ends. Needs the main thread; call once at the engine's start.

    Returns what ends the reaping. Only processes with a mark of ours are touched, so other children keep their exit
    status for whoever waits for them.
    """
    adopt_orphans()
    if not has_proc():
        return lambda: None

    timer: asyncio.TimerHandle | None = None

    def sweep() -> None:
        nonlocal timer
        timer = None
        for pid in children_of(os.getpid()):
            entry = entry_of(pid) if not is_watched(pid) else None
            if entry and (stamp_of(pid) is not None or is_of_tools(entry)):
                reap(entry)

    def on_child_ended() -> None:
        # Not at once: when fifty tasks stop, hundreds end within milliseconds, and each look goes over all of them.
        nonlocal timer
        timer = timer or loop.call_later(_PAUSE_S, sweep)

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGCHLD)
        if timer:
            timer.cancel()

    loop.add_signal_handler(signal.SIGCHLD, on_child_ended)
    # A burst may fill the pipe that wakes the loop; one byte in it is enough, so the rest need no warning.
    signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)
    return stop


def reap(entry: Entry) -> bool:
    """Take the exit status of an ended orphan that the system gave to us; never that of a child somebody waits for."""
    if not entry.zombie or entry.parent != os.getpid() or is_watched(entry.pid):
        return False
    try:
        return os.waitpid(entry.pid, os.WNOHANG)[0] == entry.pid
    except ChildProcessError:
        return True
