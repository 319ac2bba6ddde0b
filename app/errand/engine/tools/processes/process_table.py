"""The running processes, read from /proc, elsewhere through psutil."""

import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Protocol

import psutil

from errand.engine.sandbox.bubblewrap import SANDBOX_PROCESS
from errand.engine.sandbox.standing import init_program
from errand.engine.tools.processes.marks import (
    ProcessMark,
    may_belong_to,
    note_process,
    note_session,
    recorded_calls,
    stamp_of,
)

# Shown for the processes that hold a sandbox.
SANDBOX = "sandbox"
_NAME_LENGTH = 120
# Begins a line whose shell names its folder at the end (shell/working_folder.py).
# What is put around command lines.
_REPORT = re.compile(r"\Atrap 'builtin pwd -P >&\d+' EXIT\n|\nexit \$\?\Z")
_CALL = b"ERRAND_CALL"
# The beginning of the first process in a standing sandbox.
_INIT = init_program()
# Of 1000 at most; the default is 0. When memory runs out, a command's processes are killed first.
OOM_SCORE = b"500"
_CHUNK = 64 * 1024
_PF_EXITING = 0x4  # linux/sched.h


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process. `started` (system ticks) distinguishes reused pids; a zombie has ended but is not reaped.

    `group` is 0 if its process group may contain processes of others. `call` is the number of the mark by which it was
    found, 0 if it was not found by a mark. `is_exiting`: it runs no more, though it is no zombie yet.
    """

    pid: int
    parent: int
    started: float
    zombie: bool
    session: int = 0
    group: int = 0
    call: int = 0
    is_exiting: bool = False


def _ignore(entry: ProcessEntry) -> None:
    pass


@dataclass(slots=True)
class Search:
    """Repeated scans for the same processes. `on_found` receives each before the scan continues with its children.

    `is_whole` is False if a process ended during the last scan: its children were reparented to the engine, possibly
    to a part already scanned. An empty result then does not prove that nothing is left. `spared` are the pids and
    starts of processes that are not found, though their children are.
    """

    on_found: Callable[[ProcessEntry], None] = _ignore
    is_whole: bool = True
    spared: frozenset[tuple[int, float]] = frozenset()
    _ended: set[tuple[int, float]] = field(default_factory=set[tuple[int, float]])

    def finds(self, entry: ProcessEntry) -> bool:
        """Return True if it is neither spared nor an ended child of a spared process, which alone can reap it."""
        return (entry.pid, entry.started) not in self.spared and not (self.spared and entry.zombie)

    def check(self, pid: int, entry: ProcessEntry | None) -> None:
        """Check a process that was `entry` a moment ago."""
        if entry is not None and not entry.zombie:
            now = entry_of(pid)
            if now is not None and not now.zombie and now.started == entry.started:
                return
        elif entry is not None and (pid, entry.started) in self._ended:
            return  # it had ended before this scan
        if entry is not None:
            self._ended.add((pid, entry.started))
        self.is_whole = False


class ProcessTable(Protocol):
    def find(self, marks: tuple[ProcessMark, ...], search: Search) -> list[ProcessEntry]:
        """Return all descendants of this process that carry one of the marks or descend from one that does.

        Includes processes without any mark, if no other running task can have left them.
        """
        ...

    def find_marked(self, variables: frozenset[str], search: Search) -> list[ProcessEntry]:
        """Return all processes of the machine whose environment has one of the variables, as `NAME=value`."""
        ...

    def name(self, pid: int) -> str:
        """Return the command line, shortened to a readable line; empty if the process has ended."""
        ...


def display_name(arguments: list[str]) -> str:
    if arguments[0].rpartition("/")[2] == SANDBOX_PROCESS or tuple(arguments[: len(_INIT)]) == _INIT:
        return SANDBOX
    if arguments[1:3] == ["--noprofile", "--norc"]:  # our own shells
        arguments = ["bash", *(_REPORT.sub("", argument) for argument in arguments[3:])]
    name = " ".join(" ".join(arguments).split())
    return name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"


class ProcTable:
    """Walks down from this process, so the cost depends on the task's processes, not on those of the machine."""

    def find(self, marks: tuple[ProcessMark, ...], search: Search) -> list[ProcessEntry]:
        marks_by_number = {mark.number: mark for mark in marks}
        own, search.is_whole = os.getsid(0), True
        entries: list[ProcessEntry] = []
        rest: list[tuple[int, ProcessMark | None]] = [(pid, None) for pid in children_of(os.getpid())]
        while rest:
            pid, mark = rest.pop()
            stamp = stamp_of(pid) if mark is None else None
            if stamp is not None and stamp not in marks_by_number:
                continue  # it belongs to another call, with all its descendants
            entry = entry_of(pid)
            if entry is None:
                search.is_whole = False
                continue
            if mark is None:
                mark = marks_by_number[stamp] if stamp is not None else _mark_of(entry, marks_by_number)
            if mark is not None:
                entry = replace(entry, call=mark.number)
                note_process(mark, pid, entry.started)
                if entry.session != own:  # a starting child is in our session for a moment
                    note_session(mark, entry.session, mark.began)
                if search.finds(entry):
                    entry = replace(entry, group=0) if search.spared else entry  # it may be that of one of them
                    entries.append(entry)
                    search.on_found(entry)
            if mark is not None or entry.session != own:
                children = children_of(pid)
                rest.extend((child, mark) for child in children)
                if not children:
                    search.check(pid, entry)
        return entries

    def find_marked(self, variables: frozenset[str], search: Search) -> list[ProcessEntry]:
        names = {variable.encode() for variable in variables}
        entries: list[ProcessEntry] = []
        for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
            entry = entry_of(pid) if not names.isdisjoint(_environment(pid)) else None
            if entry and entry.pid != os.getpid():
                entries.append(replace(entry, group=0))
                search.on_found(entries[-1])
        return entries

    def name(self, pid: int) -> str:
        return display_name([part.decode("utf-8", "replace") for part in _read(f"/proc/{pid}/cmdline").split(b"\0")])


def program_of(pid: int) -> str:
    """Return the name of its program, which it has also while it loads another one; empty if it is gone, or without
    /proc.
    """
    return _read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip()


@cache
def process_table() -> ProcessTable:
    """Return the table of this system."""
    return ProcTable() if has_proc() else PortableTable()


@cache
def has_proc() -> bool:
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


def send_signal(entry: ProcessEntry, number: int) -> None:
    """Signal this process, and no other with a reused pid. Raises the errors of `os.kill`."""
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


def send_to_all(entry: ProcessEntry, number: int) -> None:
    """Signal this process and its whole group at once, so that not even a process that is being forked is missed."""
    send_signal(entry, signal.SIGSTOP)
    # A stopped process stays in its group, and the number of a group with a member is not reused.
    now = entry_of(entry.pid) if entry.group > 1 else None
    if now is not None and (now.started, now.group) == (entry.started, entry.group):
        with suppress(OSError):  # none left, or another user's
            os.killpg(entry.group, number)
    send_signal(entry, number)


def is_tool_process(entry: ProcessEntry) -> bool:
    """Return True for a command's process that was reparented to the engine and dropped all other marks.

    A child of a command cannot return to the engine's session, and the engine's own processes do not have the raised
    OOM score.
    """
    is_offered = _read(f"/proc/{entry.pid}/oom_score_adj").strip() == OOM_SCORE
    return is_offered and entry.parent == os.getpid() and entry.session != os.getsid(0)


def _mark_of(entry: ProcessEntry, marks_by_number: Mapping[int, ProcessMark]) -> ProcessMark | None:
    """Return the matching mark of a process that does not have our limit, found by its other marks."""
    if entry.session == os.getsid(0):
        return None
    numbers = recorded_calls(entry.pid, entry.started, entry.session) | set(_numbers_in(_environment(entry.pid)))
    if numbers:
        return next((marks_by_number[number] for number in numbers if number in marks_by_number), None)
    marks = tuple(marks_by_number.values())
    return marks[-1] if marks and is_tool_process(entry) and may_belong_to(marks, entry.started) else None


def _numbers_in(variables: list[bytes]) -> list[int]:
    values = [value for name, _, value in (variable.partition(b"=") for variable in variables) if name == _CALL]
    return [int(value) for value in values if value.isdigit() and len(value) < 10]


def _read(path: str) -> bytes:
    """Read a file by plain system calls: a file object takes twice as long, and a command is looked at with several."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return b"".join(iter(partial(os.read, file, _CHUNK), b""))
    except OSError:
        return b""
    finally:
        os.close(file)


def entry_of(pid: int) -> ProcessEntry | None:
    # The name in brackets may contain blanks and brackets; after the last one come state, parent, group, session, flags
    # (three further on) and the start time (proc(5), fields 3 to 6, 9 and 22).
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        return None
    session, is_exiting = int(fields[3]), int(fields[6]) & _PF_EXITING
    group = 0 if is_exiting or session == os.getsid(0) else int(fields[2])
    started, is_zombie = float(fields[19]), fields[0] in (b"Z", b"X")
    return ProcessEntry(pid, int(fields[1]), started, is_zombie, session, group, is_exiting=bool(is_exiting))


def children_of(pid: int) -> list[int]:
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=int, reverse=True)
    except OSError:
        return []
    # The main thread comes last: it adopts orphans, also while the scan runs, from children of other threads.
    return [int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def adopted_children() -> list[int]:
    """Return the children of this process's main thread, which adopts orphans: many times quicker than all children."""
    pid = os.getpid()
    return [int(child) for child in _read(f"/proc/{pid}/task/{pid}/children").split()]


def _environment(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/environ").split(b"\0")


class PortableTable:
    def find(self, marks: tuple[ProcessMark, ...], search: Search) -> list[ProcessEntry]:
        numbers = {str(mark.number): mark.number for mark in marks}
        roots = [(process, numbers.get(_variable(process, "ERRAND_CALL"), 0)) for process in _own_processes()]
        return _with_descendants([(process, call) for process, call in roots if call], search)

    def find_marked(self, variables: frozenset[str], search: Search) -> list[ProcessEntry]:
        roots = [(process, 0) for process in _own_processes() if not variables.isdisjoint(_variables(process))]
        return _with_descendants(roots, search)

    def name(self, pid: int) -> str:
        try:
            return display_name(psutil.Process(pid).cmdline())
        except psutil.Error:
            return ""


def _own_processes() -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if process.pid != os.getpid()]


def _variable(process: psutil.Process, name: str) -> str:
    try:
        return process.environ().get(name, "")
    except (psutil.Error, OSError):
        return ""


def _variables(process: psutil.Process) -> set[str]:
    try:
        return {f"{name}={value}" for name, value in process.environ().items()}
    except (psutil.Error, OSError):
        return set()


def _with_descendants(roots: list[tuple[psutil.Process, int]], search: Search) -> list[ProcessEntry]:
    below: dict[int, ProcessEntry] = {}
    for root, call in roots:
        try:
            family = [root, *root.children(recursive=True)]
        except psutil.Error:
            continue
        for process in family:
            try:
                zombie = process.status() == psutil.STATUS_ZOMBIE
                entry = ProcessEntry(process.pid, process.ppid(), process.create_time(), zombie, call=call)
            except psutil.Error:
                continue
            if process.pid not in below and search.finds(entry):
                below[process.pid] = entry
                search.on_found(entry)
    return list(below.values())
