"""Finding and ending all processes of a call or a task. Starting them is in `spawn.py`."""

import asyncio
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from app.engine.tools import marks
from app.engine.tools.marks import Mark
from app.engine.tools.orphans import reap
from app.engine.tools.portable_table import PortableTable
from app.engine.tools.process_table import Entry, ProcessTable, ProcTable, has_proc, send_signal

# A process that minds SIGTERM has this long to end in order; stop must have ended everything within 0.3 s.
GRACE_S = 0.1
# What survives SIGKILL this long hangs in the kernel (a dead network disk) and is reported instead.
PATIENCE_S = 10.0

_SHORTEST_PAUSE_S = 0.001
# Fifty tasks stopped at once must not fight the event loop for the interpreter with as many threads.
_one_at_a_time = threading.Lock()

_table: ProcessTable = ProcTable() if has_proc() else PortableTable()


def alive(task_id: str) -> int:
    """How many processes of the task run now."""
    return len(running(marks.marks_of(task_id)))


def running(of: tuple[Mark, ...]) -> tuple[str, ...]:
    """Names of the processes that carry one of the marks, as `sleep 60 (pid 1234)`."""
    return tuple(_named(entry) for entry in _table.find(of) if not entry.zombie) if of else ()


async def names(task_id: str) -> tuple[str, ...]:
    """The processes of the task that run now, by name; looked up in a thread."""
    of = marks.marks_of(task_id)
    return await asyncio.to_thread(running, of) if of else ()


async def end_task(task_id: str, on_progress: Callable[[int], None]) -> tuple[str, ...]:
    """End every process the task started, wait until they are gone, and name them.

    `on_progress` gets the number still there each time it changes. A name that ends in "still there" could not be
    ended: it belongs to another user or hangs in the kernel.
    """
    of = marks.marks_of(task_id)
    if not of:
        return ()
    ended = await _Ending(lambda: _table.find(of), on_progress).run()
    marks.forget(of)
    return ended


async def end_call(mark: Mark) -> tuple[str, ...]:
    """The same for one call."""
    return await _Ending(lambda: _table.find((mark,)), lambda count: None).run()


async def end_abandoned(task_ids: frozenset[str]) -> tuple[str, ...]:
    """The same for tasks of an engine that died: looks at all processes of the machine, by their environment."""
    return await _Ending(lambda: _table.find_tasks(task_ids), lambda count: None).run() if task_ids else ()


@dataclass(slots=True)
class _Ending:
    """One run of: find, signal, wait, until nothing is found twice in a row (a fork may hide from one look)."""

    find: Callable[[], list[Entry]]
    on_progress: Callable[[int], None]
    seen: dict[tuple[int, float], str] = field(default_factory=dict[tuple[int, float], str])
    denied: set[int] = field(default_factory=set[int])

    async def run(self) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        empty, shown, pause, left = 0, 0, _SHORTEST_PAUSE_S, list[Entry]()
        forced = False
        while empty < 2:
            age = loop.time() - started
            if age >= GRACE_S and not forced:
                forced, pause = True, _SHORTEST_PAUSE_S
            left = await asyncio.to_thread(self._sweep, forced)
            count = sum(not entry.zombie for entry in left)
            if count != shown:
                self.on_progress(shown := count)
            if age > PATIENCE_S or (left and all(entry.pid in self.denied for entry in left)):
                break
            empty = 0 if left else empty + 1
            if left:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.02)
        stuck = {(entry.pid, entry.started) for entry in left}
        return tuple(f"{name}, still there" if key in stuck else name for key, name in self.seen.items())

    def _sweep(self, force: bool) -> list[Entry]:
        with _one_at_a_time:
            left = [entry for entry in self.find() if not reap(entry)]
        for entry in left:
            key = (entry.pid, entry.started)
            first = key not in self.seen
            if entry.zombie or not (first or force):
                continue
            if first:
                self.seen[key] = _named(entry)
            self._signal(entry, force)
        return left

    def _signal(self, entry: Entry, force: bool) -> None:
        try:
            send_signal(entry, signal.SIGKILL if force else signal.SIGTERM)
        except ProcessLookupError:
            pass
        except PermissionError:
            self.denied.add(entry.pid)


def _named(entry: Entry) -> str:
    return f"{_table.name(entry.pid) or 'process'} (pid {entry.pid})"
