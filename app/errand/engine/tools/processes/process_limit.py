"""The number of processes that one owner of marks may have: a task, a Python session, the background of a conversation.

It looks from time to time while processes run, and ends the youngest beyond the limit. Between two looks there may be
more: no limit of the system counts the processes of one task only.
"""

import asyncio
import signal
from contextlib import suppress

from errand.engine.tools.processes import marks
from errand.engine.tools.processes.process_table import SANDBOX, ProcessEntry, Search, process_table, send_signal
from errand.engine.tools.processes.spawn import is_watched

DEFAULT_MAX_PROCESSES = 512
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.25, 4.0
# Below this number of processes nothing is about to run out.
_FEW = 16
# A program that forks without end makes new ones during a look.
_MAX_LOOKS = 20


class ProcessLimit:
    """Counts the processes of an owner. `spared` are the pids and starts of those that are never ended."""

    def __init__(self, owner: str, max_processes: int) -> None:
        self.max_processes = max_processes
        self.spared: frozenset[tuple[int, float]] = frozenset()
        self._owner = owner
        self._ended = 0
        self._last_count = 0
        self._pause_s = _MIN_PAUSE_S
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Future[int] | None = None

    def start(self) -> None:
        """Look from now on, until no process is left. Call it when one starts."""
        self._pause_s = _MIN_PAUSE_S
        if self._timer is None and self._looking is None:
            self._schedule()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def look_now(self) -> None:
        """Look once, beside the regular looks."""
        await asyncio.get_running_loop().run_in_executor(None, self._look)

    def take_remark(self) -> str:
        """Tell the model what was ended since the last call; empty if nothing was."""
        ended, self._ended = self._ended, 0
        if not ended:
            return ""
        noun = "process was" if ended == 1 else "processes were"
        return (
            f"[{ended:,} {noun} ended, the youngest first: at most {self.max_processes:,} may run at once. "
            "The person can change the setting max_processes]"
        )

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._begin_look)

    def _begin_look(self) -> None:
        self._timer = None
        self._looking = asyncio.get_running_loop().run_in_executor(None, self._look)
        self._looking.add_done_callback(self._on_looked)

    def _on_looked(self, looked: asyncio.Future[int]) -> None:
        self._looking = None
        if looked.cancelled():
            return
        count = looked.result()
        if count:
            is_calm = count <= min(_FEW, self.max_processes) or count == self._last_count
            self._pause_s = min(2 * self._pause_s, _MAX_PAUSE_S) if is_calm else _MIN_PAUSE_S
            self._schedule()
        self._last_count = count

    def _look(self) -> int:
        """End the youngest beyond the limit; returns how many were running. Blocks."""
        running, killed = self._running(), set[tuple[int, float]]()
        for _ in range(_MAX_LOOKS):
            surplus = self._surplus(running)
            if not surplus:
                break
            for entry in surplus:
                with suppress(OSError):
                    send_signal(entry, signal.SIGKILL)
            killed.update((entry.pid, entry.started) for entry in surplus)
            running = [entry for entry in self._running() if (entry.pid, entry.started) not in killed]
        self._ended += len(killed)
        return len(running)

    def _running(self) -> list[ProcessEntry]:
        of = marks.marks_of(self._owner)
        return (
            [entry for entry in process_table().find(of, Search()) if not (entry.zombie or entry.is_exiting)]
            if of
            else []
        )

    def _surplus(self, running: list[ProcessEntry]) -> list[ProcessEntry]:
        """Return the youngest beyond the limit, without the processes that the engine started itself."""
        if len(running) <= self.max_processes:
            return []
        oldest_first = sorted(running, key=lambda entry: (entry.started, entry.pid))
        youngest = oldest_first[self.max_processes :]
        return [
            entry for entry in youngest if (entry.pid, entry.started) not in self.spared and not _is_of_engine(entry)
        ]


def _is_of_engine(entry: ProcessEntry) -> bool:
    """Return True for what begins a call, and for the second process that holds its sandbox.

    Names inside may be anything.
    """
    if is_watched(entry.pid):
        return True
    return is_watched(entry.parent) and process_table().name(entry.parent) == SANDBOX
