"""What the system tells of running processes, read from /proc; `portable_table.py` does it where there is none."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from app.engine.tools.marks import STAMPED, Mark, stamp_of

_NAME_LENGTH = 120


@dataclass(frozen=True, slots=True)
class Entry:
    """One process. `started` (system ticks) tells two that had the same pid apart; a zombie has ended, unreaped."""

    pid: int
    parent: int
    started: float
    zombie: bool


class ProcessTable(Protocol):
    def find(self, marks: tuple[Mark, ...]) -> list[Entry]:
        """All processes below this one that carry one of the marks or descend from one that does."""
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
        numbers = {mark.number for mark in marks}
        variables = {f"ERRAND_CALL={mark.number}".encode() for mark in marks}
        found: list[Entry] = []
        rest = [(pid, False) for pid in children_of(os.getpid())]
        while rest:
            pid, inherited = rest.pop()
            belongs = inherited or _carries(pid, numbers, variables)
            if STAMPED and not belongs:
                continue  # then nothing below it carries our mark either
            entry = entry_of(pid) if belongs else None
            if entry:
                found.append(entry)
            rest.extend((child, belongs) for child in children_of(pid))
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


def _carries(pid: int, numbers: set[int], variables: set[bytes]) -> bool:
    return stamp_of(pid) in numbers if STAMPED else not variables.isdisjoint(_environment(pid))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""


def entry_of(pid: int) -> Entry | None:
    # The name in brackets may hold blanks and brackets; after the last one come state, parent, and 18 further on the
    # start time (proc(5), fields 3, 4 and 22).
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        return None
    return Entry(pid, int(fields[1]), float(fields[19]), fields[0] in (b"Z", b"X"))


def children_of(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _environment(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/environ").split(b"\0")
