"""What the system tells of running processes, read from /proc; `portable_table.py` does it where there is none."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from app.engine.tools.marks import Mark, may_be_left_by, note_process, note_session, noted, stamp_of

_NAME_LENGTH = 120
_CALL = b"ERRAND_CALL"
# Of 1000 at most; 0 is what others have. Where memory runs out, what a command starts goes before all else.
OOM_SCORE = b"500"


@dataclass(frozen=True, slots=True)
class Entry:
    """One process. `started` (system ticks) tells two that had the same pid apart; a zombie has ended, unreaped."""

    pid: int
    parent: int
    started: float
    zombie: bool
    session: int = 0


class ProcessTable(Protocol):
    def find(self, marks: tuple[Mark, ...]) -> list[Entry]:
        """All processes below this one that carry one of the marks or descend from one that does.

        Also those that have got rid of every mark, once no other task is under way that may have left them.
        """
        ...

    def find_tasks(self, task_ids: frozenset[str]) -> list[Entry]:
        """All processes of the machine whose environment names one of the tasks."""
        ...

    def name(self, pid: int) -> str:
        """The command line, cut to a line people can read; empty if the process is gone."""
        ...


def plain_name(arguments: list[str]) -> str:
    if arguments[1:3] == ["--noprofile", "--norc"]:  # our own shells
        arguments = ["bash", *arguments[3:]]
    name = " ".join(" ".join(arguments).split())
    return name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"


class ProcTable:
    """Walks down from this process, so it costs what a task has started, however many others the machine runs."""

    def find(self, marks: tuple[Mark, ...]) -> list[Entry]:
        wanted = {mark.number: mark for mark in marks}
        found: list[Entry] = []
        rest: list[tuple[int, Mark | None]] = [(pid, None) for pid in children_of(os.getpid())]
        while rest:
            pid, mark = rest.pop()
            stamp = stamp_of(pid) if mark is None else None
            if stamp is not None and stamp not in wanted:
                continue  # it is of another call, and so is all below it
            entry = entry_of(pid)
            if entry is None:
                continue
            if mark is None:
                mark = wanted[stamp] if stamp is not None else _mark_of(entry, wanted)
            if mark is not None:
                found.append(entry)
                note_process(mark, pid, entry.started)
                if entry.session != os.getsid(0):  # a child that is just being started is in ours for a moment
                    note_session(mark, entry.session, mark.began)
            if mark is not None or entry.session != os.getsid(0):
                rest.extend((child, mark) for child in children_of(pid))
        return found

    def find_tasks(self, task_ids: frozenset[str]) -> list[Entry]:
        variables = {f"ERRAND_TASK={task_id}".encode() for task_id in task_ids}
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        entries = [entry_of(pid) for pid in pids if not variables.isdisjoint(_environment(pid))]
        return [entry for entry in entries if entry and entry.pid != os.getpid()]

    def name(self, pid: int) -> str:
        return plain_name([part.decode("utf-8", "replace") for part in _read(f"/proc/{pid}/cmdline").split(b"\0")])


@cache
def has_proc() -> bool:
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


def send_signal(entry: Entry, number: int) -> None:
    """To this process, and to none that has got its number meanwhile. Raises what `os.kill` does."""
    if sys.platform != "linux":
        os.kill(entry.pid, number)
        return
    process = os.pidfd_open(entry.pid)
    try:
        now = entry_of(entry.pid)
        if now is not None and now.started == entry.started:
            signal.pidfd_send_signal(process, number)
    finally:
        os.close(process)


def is_of_tools(entry: Entry) -> bool:
    """True for a process that a command has left to the engine, though it got rid of all other marks.

    No child of a command can come back into the engine's session, and what the engine starts itself is not offered to
    the OOM killer.
    """
    is_offered = _read(f"/proc/{entry.pid}/oom_score_adj").strip() == OOM_SCORE
    return is_offered and entry.parent == os.getpid() and entry.session != os.getsid(0)


def _mark_of(entry: Entry, wanted: Mapping[int, Mark]) -> Mark | None:
    """The mark among the wanted ones that a process without a limit of ours has by other signs."""
    if entry.session == os.getsid(0):
        return None
    numbers = noted(entry.pid, entry.started, entry.session) | set(_numbers_in(_environment(entry.pid)))
    if numbers:
        return next((wanted[number] for number in numbers if number in wanted), None)
    marks = tuple(wanted.values())
    return marks[-1] if marks and is_of_tools(entry) and may_be_left_by(marks, entry.started) else None


def _numbers_in(variables: list[bytes]) -> list[int]:
    values = [value for name, _, value in (variable.partition(b"=") for variable in variables) if name == _CALL]
    return [int(value) for value in values if value.isdigit() and len(value) < 10]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""


def entry_of(pid: int) -> Entry | None:
    # The name in brackets may hold blanks and brackets; after the last one come state, parent, session (two further
    # on) and the start time (proc(5), fields 3, 4, 6 and 22).
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        return None
    return Entry(pid, int(fields[1]), float(fields[19]), fields[0] in (b"Z", b"X"), int(fields[3]))


def children_of(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _environment(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/environ").split(b"\0")
