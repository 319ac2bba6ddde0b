"""Finds and ends the processes of a call or task, and reaps orphans."""

import asyncio
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial

import msgspec

from errand.engine.tools.processes import marks
from errand.engine.tools.processes.marks import ProcessMark, stamp_of
from errand.engine.tools.processes.process_limit import DEFAULT_MAX_PROCESSES, ProcessLimit
from errand.engine.tools.processes.process_table import (
    SANDBOX,
    ProcessEntry,
    Search,
    adopted_children,
    entry_of,
    has_proc,
    is_tool_process,
    process_table,
    program_of,
    send_signal,
    send_to_all,
)
from errand.engine.tools.processes.spawn import is_watched
from errand.protocol.notices import EndedProcess

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_PAUSE_S = 0.25

# Time for an orderly end after SIGTERM; a stop must have ended everything within 0.3 s.
GRACE_S = 0.1
# A process that survives SIGKILL this long hangs in the kernel (a dead network disk) and is reported instead.
PATIENCE_S = 10.0

_MIN_PAUSE_S = 0.001
# The time one thread chases forking processes before it yields to others.
_CHASE_S = 0.1
# Fifty tasks stopped at once must not compete with the event loop for the interpreter with as many threads.
_one_at_a_time = threading.Lock()


@cache
def adopt_orphans() -> None:
    """Make this process the subreaper of its descendants. Does nothing outside Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Adopt orphans and reap each when it ends. Requires the main thread; call once at the engine's start.

    Returns the function that ends the reaping. Reaps only processes with our marks, so that waiters for other
    children still get their exit status.
    """
    adopt_orphans()
    if not has_proc():
        return lambda: None

    timer: asyncio.TimerHandle | None = None

    def sweep() -> None:
        nonlocal timer
        timer = None
        for pid in adopted_children():
            entry = entry_of(pid) if not is_watched(pid) else None
            if entry and (stamp_of(pid) is not None or is_tool_process(entry)):
                reap(entry)

    def on_child_ended() -> None:
        # Delayed: when fifty tasks stop, hundreds of processes end within milliseconds, and each scan visits them all.
        nonlocal timer
        timer = timer or loop.call_later(_PAUSE_S, sweep)

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGCHLD)
        if timer:
            timer.cancel()

    loop.add_signal_handler(signal.SIGCHLD, on_child_ended)
    # A burst may fill the pipe that wakes the loop; one byte in it is enough, so suppress warnings.
    signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)
    return stop


def reap(entry: ProcessEntry) -> bool:
    """Reap an ended orphan that was reparented to us, never a child that has a waiter."""
    if not entry.zombie or entry.parent != os.getpid() or is_watched(entry.pid):
        return False
    try:
        return os.waitpid(entry.pid, os.WNOHANG)[0] == entry.pid
    except ChildProcessError:
        return True


def alive(task_id: str) -> int:
    """Return the number of running processes of the task."""
    return len(running(marks.marks_of(task_id)))


def running(of: tuple[ProcessMark, ...]) -> tuple[EndedProcess, ...]:
    """Return the running processes with one of the marks."""
    entries = (entry for entry in process_table().find(of, Search()) if not entry.zombie) if of else ()
    # Without a name, it has just ended.
    return tuple(_ended_process(entry, name) for entry in entries if (name := process_table().name(entry.pid)))


def identities(of: tuple[ProcessMark, ...]) -> frozenset[tuple[int, float]]:
    """Return the pids and starts of the processes with one of the marks, also of those that hold a sandbox."""
    return frozenset((entry.pid, entry.started) for entry in _find(of, Search()))


async def end_abandoned(task_ids: frozenset[str]) -> tuple[EndedProcess, ...]:
    """End the processes of tasks of an engine that died: scans all processes of the machine by their environment."""
    return await end_marked(frozenset(map(marks.task_variable, task_ids))) if task_ids else ()


async def end_marked(variables: frozenset[str]) -> tuple[EndedProcess, ...]:
    """End all processes of the machine whose environment has one of the variables, as `NAME=value`."""
    return await _Termination(lambda search: process_table().find_marked(variables, search)).run()


def _ignore(count: int) -> None:
    pass


class ProcessSweep:
    """Ends the processes of one task. `ended` are those that ended with the whole task, by pid and start.

    `on_progress` receives the number of remaining processes each time it changes while the whole task is ended. The
    `limit` counts them: start it with each.
    """

    def __init__(
        self,
        task_id: str,
        on_progress: Callable[[int], None] = _ignore,
        max_processes: int = DEFAULT_MAX_PROCESSES,
    ) -> None:
        self.ended: dict[tuple[int, float], EndedProcess] = {}
        self.limit = ProcessLimit(task_id, max_processes)
        self._task_id = task_id
        self._on_progress = on_progress
        self._shared: _Termination | None = None
        self._joined: list[asyncio.Task[tuple[EndedProcess, ...]]] = []
        self._at_end: dict[str, Callable[[], Awaitable[tuple[EndedProcess, ...]]]] = {}

    def join(self, ending: "asyncio.Task[tuple[EndedProcess, ...]]") -> None:
        """Let the end of the whole task wait for these processes too, which are of another owner."""
        self._joined.append(ending)

    def at_end(self, owner: str, end: Callable[[], Awaitable[tuple[EndedProcess, ...]]]) -> None:
        """Let the end of the whole task call `end`, once for each owner: it ends what the task left with that owner."""
        self._at_end[owner] = end

    async def end(self, mark: ProcessMark | None = None) -> tuple[EndedProcess, ...]:
        """End the processes of one call, or of the whole task, wait until they are gone, and return them.

        While the whole task is ended, its calls wait for that instead of searching by themselves.
        """
        shared = self._shared
        if shared is not None and (mark is None or mark in shared.marks):
            await shared.finished.wait()
            if mark is not None and shared.is_complete:
                return without_sandbox(shared.seen[key] for key, call in shared.calls.items() if call == mark.number)
        if mark is not None:
            return await _Termination(partial(_find, (mark,))).run()
        self.limit.stop()
        of = marks.marks_of(self._task_id)
        ended = await self._end_all(of) if of else ()
        left, self._at_end = self._at_end, {}
        for end in left.values():
            processes = await end()
            self.ended |= {(process.pid, process.started): process for process in processes}
            ended += processes
        joined, self._joined = self._joined, []
        for processes in await asyncio.gather(*map(asyncio.shield, joined)):
            self.ended |= {(process.pid, process.started): process for process in processes}
            ended += processes
        return ended

    async def end_all_but(self, spared: frozenset[tuple[int, float]]) -> tuple[EndedProcess, ...]:
        """End the processes of the owner, without some, by their pids and starts; returns the ended ones."""
        of = marks.marks_of(self._task_id)
        return await _Termination(partial(_find, of), search=Search(spared=spared)).run() if of else ()

    async def _end_all(self, of: tuple[ProcessMark, ...]) -> tuple[EndedProcess, ...]:
        ending = self._shared = _Termination(partial(_find, of), self._on_progress, frozenset(of))
        try:
            ended = await ending.run()
        finally:
            self._shared = None
            ending.finished.set()
        self.ended |= {key: process for key, process in ending.seen.items() if process.name != SANDBOX}
        marks.forget(of)
        return ended


def _find(of: tuple[ProcessMark, ...], search: Search) -> list[ProcessEntry]:
    return process_table().find(of, search)


@dataclass(slots=True)
class _Termination:
    """One run of: find, signal, wait, until two scans in a row find nothing (a fork may evade one scan).

    First each process gets SIGTERM. Then each is stopped as soon as it is found, so that none starts another during
    the scan, and killed once all are known: descendants of an ended process cannot be found any more.

    `calls` are the numbers of the marks of the processes in `seen`. `finished` is set when the run has ended,
    `is_complete` if it ended by itself.
    """

    find: Callable[[Search], list[ProcessEntry]]
    on_progress: Callable[[int], None] = _ignore
    marks: frozenset[ProcessMark] = frozenset()
    seen: dict[tuple[int, float], EndedProcess] = field(default_factory=dict[tuple[int, float], EndedProcess])
    calls: dict[tuple[int, float], int] = field(default_factory=dict[tuple[int, float], int])
    denied: set[int] = field(default_factory=set[int])
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    is_complete: bool = False
    search: Search = field(default_factory=Search)

    async def run(self) -> tuple[EndedProcess, ...]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        empty, last_count, pause, left = 0, 0, _MIN_PAUSE_S, list[ProcessEntry]()
        forced = False
        while empty < 2:
            age = loop.time() - started
            if age >= GRACE_S and not forced:
                forced, pause = True, _MIN_PAUSE_S
                self.search.on_found = self._stop
            left = await asyncio.to_thread(self._kill_until_none_new if forced else self._terminate_all)
            count = sum(not entry.zombie and self._is_shown(entry) for entry in left)
            if count != last_count:
                self.on_progress(last_count := count)
            if age > PATIENCE_S or (left and all(entry.pid in self.denied for entry in left)):
                break
            empty = 0 if left or not self.search.is_whole else empty + 1
            if left:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.02)
        for entry in left:
            key = entry.pid, entry.started
            if key in self.seen:  # a zombie was never named
                self.seen[key] = msgspec.structs.replace(self.seen[key], still_there=True)
        self.is_complete = True
        return without_sandbox(self.seen.values())

    def _is_shown(self, entry: ProcessEntry) -> bool:
        recorded = self.seen.get((entry.pid, entry.started))
        return recorded is None or recorded.name != SANDBOX

    def _terminate_all(self) -> list[ProcessEntry]:
        left = self._scan()
        for entry in self._record_new(left):
            self._signal(send_signal, entry, signal.SIGTERM)
        return left

    def _kill_until_none_new(self) -> list[ProcessEntry]:
        """Scan again immediately while new processes appear, since only a scan of equal speed catches a fork loop."""
        give_up_at = time.monotonic() + _CHASE_S
        while True:
            left = self._scan()
            new = self._record_new(left)
            # Last found first: a stopped group continues when it loses its parent.
            for entry in reversed(left):
                self._signal(send_to_all, entry, signal.SIGKILL)
            if (not new and self.search.is_whole) or time.monotonic() > give_up_at:
                return left

    def _scan(self) -> list[ProcessEntry]:
        with _one_at_a_time:
            return [entry for entry in self.find(self.search) if not reap(entry)]

    def _stop(self, entry: ProcessEntry) -> None:
        self._signal(send_to_all, entry, signal.SIGSTOP)

    def _record_new(self, entries: list[ProcessEntry]) -> list[ProcessEntry]:
        """Name the processes seen for the first time and return them. Those that just ended by themselves have none."""
        first = [entry for entry in entries if not entry.zombie and (entry.pid, entry.started) not in self.seen]
        names = {(entry.pid, entry.started): _name_of(entry) for entry in first}
        new = [entry for entry in first if names[entry.pid, entry.started]]
        self.seen |= {key: _ended_process(entry, names[key]) for entry in new for key in [(entry.pid, entry.started)]}
        self.calls |= {(entry.pid, entry.started): entry.call for entry in new}
        return new

    def _signal(self, send: Callable[[ProcessEntry, int], None], entry: ProcessEntry, number: int) -> None:
        try:
            if not entry.zombie:
                send(entry, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            self.denied.add(entry.pid)


def _name_of(entry: ProcessEntry) -> str:
    """Its command line, or its program while it loads another one; empty if it has just ended by itself."""
    name = process_table().name(entry.pid)
    if name or not has_proc():
        return name or "process"
    now = entry_of(entry.pid)
    has_ended = now is None or now.started != entry.started or now.zombie or now.is_exiting
    return "" if has_ended else program_of(entry.pid)


def without_sandbox(processes: Iterable[EndedProcess]) -> tuple[EndedProcess, ...]:
    """Without those that hold a sandbox, which end with the last command in it: no person has started them."""
    return tuple(process for process in processes if process.name != SANDBOX)


def _ended_process(entry: ProcessEntry, name: str) -> EndedProcess:
    return EndedProcess(pid=entry.pid, started=entry.started, name=name)
