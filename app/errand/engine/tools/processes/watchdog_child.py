"""The watchdog process: waits until its engine is gone, then ends all remaining tool processes.

It runs without the rest of the app and imports none of it. Standard input has one line per mark, `+ TASK NUMBER`,
and per session that a command leads, `session NUMBER EARLIEST LATEST` (the bounds of its start time); `clear` before
a full list, or `bye` when the engine ends in order. End of file means that the engine died. After `look` it checks
the engine's heartbeat periodically, until the engine has been idle for a while.
"""

import ctypes
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_EMPTY_SCANS = 2
_PAUSE_S = 0.02
_SWEEP_TIMEOUT_S = 10.0
# This many scans without a new process end the race against fork loops.
_QUIET_SCANS = 20
_PF_EXITING = 0x4  # linux/sched.h

_STDIN = 0
_OOM_SCORE = "500"  # same as in `process_table.py`
# Checks within the stall limit, and checks of an idle loop before they stop.
_CHECKS = 5
# Time for the engine to write its stacks.
_REPORT_S = 0.5
# Without this text another process requested the report, and the engine kept running.
ENDED = "ended by the watchdog"


def main(arguments: Sequence[str]) -> int:
    """Run until the engine ends.

    `arguments` are the heartbeat's descriptor, the engine's process id, the path of its stall report, and the stall
    limit in seconds; or nothing.
    """
    _forbid_dumps()
    tools = _Tools()
    loop = _loop(tools, *arguments) if arguments else None
    poll = select.poll()
    poll.register(_STDIN, select.POLLIN)
    rest = b""
    while True:
        if loop is not None and loop.is_checking and not poll.poll(loop.check_s * 1000):
            loop.check()
            continue
        data = os.read(_STDIN, 65_536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            match line.decode().split():
                case ["+", task_id, number]:
                    tools.marks.add((task_id, number))
                case ["session", number, earliest, latest]:
                    tools.sessions[int(number)] = (int(earliest), int(latest))
                case ["clear"]:
                    tools.marks.clear()
                    tools.sessions.clear()
                case ["look"] if loop is not None:
                    loop.is_checking = True
                case _:
                    return 0
    if tools.marks:
        tools.sweep()
    return 0


def _loop(tools: "_Tools", heartbeat: str, pid: str, report: str, longest_s: str) -> "_Loop":
    return _Loop(tools, int(heartbeat), int(pid), report, float(longest_s))


class _Loop:
    """The state of the engine's event loop, from the heartbeat that `heartbeat.py` writes and from the system."""

    def __init__(self, tools: "_Tools", heartbeat: int, pid: int, report: str, longest_s: float) -> None:
        self.is_checking = True
        self._tools = tools
        self.check_s = longest_s / _CHECKS
        self._longest_s = longest_s
        self._heartbeat = heartbeat
        self._pid = pid
        self._process = os.pidfd_open(pid)
        self._report = report
        self._began = 0
        self._stalled_s = 0.0
        self._idle_checks = 0
        self._cpu_s = 0.0
        self._last_check = time.monotonic()

    def check(self) -> None:
        """Check once; end the engine if its loop has stalled for too long although it could have run."""
        now = time.monotonic()
        # At most two intervals: this process may have been suspended too, for example by a sleeping machine.
        passed, self._last_check = min(now - self._last_check, 2 * self.check_s), now
        (began,) = struct.unpack("=q", os.pread(self._heartbeat, 8, 0))
        state, cpu_s = _main_thread(self._pid)
        used_s, self._cpu_s = cpu_s - self._cpu_s, cpu_s
        if not began:
            self._on_idle()
        elif began != self._began or state in "tT" or _is_traced(self._pid):
            self._began, self._stalled_s, self._idle_checks = began, 0.0, 0
        elif state != "R" or used_s > passed / 10:  # else it gets no processor time: the machine is busy
            self._stalled_s += passed
            if self._stalled_s >= self._longest_s:
                self._end()

    def _on_idle(self) -> None:
        self._began, self._stalled_s = 0, 0.0
        self._idle_checks += 1
        if self._idle_checks < _CHECKS:
            return
        self._idle_checks = 0
        os.pwrite(self._heartbeat, struct.pack("=q", 0), 8)
        (began,) = struct.unpack("=q", os.pread(self._heartbeat, 8, 0))
        # If it became active meanwhile, it may have seen the old mark and will not send `look`.
        self.is_checking = began != 0

    def _end(self) -> None:
        with suppress(OSError):
            signal.pidfd_send_signal(self._process, signal.SIGUSR1)
            time.sleep(_REPORT_S)
            with open(self._report, "a", encoding="utf-8") as file:
                file.write(f"Its loop had made no turn for {self._stalled_s:.0f} s: {ENDED}.\n")
        self._tools.record_processes_of(self._pid)
        with suppress(OSError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
        self.is_checking = False


def _main_thread(pid: int) -> tuple[str, float]:
    """Its state and its processor time in seconds; see proc(5). Empty if it has ended."""
    fields = _read(pid, f"task/{pid}/stat").rpartition(")")[2].split()
    if not fields:
        return "", 0.0
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_traced(pid: int) -> bool:
    return any(line.split() != ["TracerPid:", "0"] for line in _read(pid, "status").splitlines() if "TracerPid" in line)


def _forbid_dumps() -> None:
    """No tool may read the arguments and the environment of this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


class _Process(NamedTuple):
    parent: int
    session: int
    started: int
    is_zombie: bool
    group: int
    is_exiting: bool


class _Tools:
    """Identifies tool processes by the marks of their calls, their sessions, and earlier sightings."""

    def __init__(self) -> None:
        self.marks: set[tuple[str, str]] = set()
        # By the pids of their leaders, with the bounds of their start times.
        self.sessions: dict[int, tuple[int, int]] = {}
        self.seen: set[tuple[int, int]] = set()
        # The engine's own session: a starting command is in it for a moment.
        self._spared = os.getsid(os.getppid())

    def record_processes_of(self, engine: int) -> None:
        """Remember all tool processes below an engine: their parents are unknown once it has ended."""
        table = _processes()
        own = table[engine].session if engine in table else 0
        roots = {
            pid
            for pid, process in table.items()
            if process.parent == engine and process.session != own and pid != os.getpid()
        }
        self.seen |= {(pid, table[pid].started) for pid in _with_descendants(roots, table)}

    def sweep(self) -> None:
        """End them all, until two scans in a row find nothing: a fork may evade one scan."""
        give_up_at = time.monotonic() + _SWEEP_TIMEOUT_S
        empty = 0
        while empty < _EMPTY_SCANS and time.monotonic() < give_up_at:
            table = _processes()
            pids = _with_descendants({pid for pid, process in table.items() if self._has(pid, process, table)}, table)
            # An ended process that nobody reaps does not count: not every init process reaps.
            pids = {pid for pid in pids if not table[pid].is_zombie}
            for pid in pids:
                self._end(pid, table[pid])
            is_outrun = self._kill_until_none_new(set(table), give_up_at)
            empty = 0 if pids or is_outrun else empty + 1
            time.sleep(_PAUSE_S)

    def _kill_until_none_new(self, killed: set[int], give_up_at: float) -> bool:
        """End new processes. True if there were any: a fork loop can outrun a full scan."""
        is_one, quiet = False, 0
        while quiet < _QUIET_SCANS and time.monotonic() < give_up_at:
            new = _pids() - killed
            quiet = 0 if new else quiet + 1
            for pid in sorted(new, reverse=True):
                process = _process(pid)
                if process is not None and self._has(pid, process, _leader(process)):
                    self._end(pid, process)
                    is_one = True
            killed |= new
        return is_one

    def _end(self, pid: int, process: _Process) -> None:
        self.seen.add((pid, process.started))
        _kill(pid, process, self._spared)

    def _has(self, pid: int, process: _Process, table: dict[int, _Process]) -> bool:
        if process.is_zombie:
            return False
        if (pid, process.started) in self.seen or self._has_session(pid, process, table):
            return True
        variables = {name: value for name, _, value in map(_split_variable, _read(pid, "environ").split("\0"))}
        if "ERRAND_TASK" in variables:
            return (variables["ERRAND_TASK"], variables.get("ERRAND_CALL", "")) in self.marks
        return _stamp(pid) in {number for _, number in self.marks}

    def _has_session(self, pid: int, process: _Process, table: dict[int, _Process]) -> bool:
        """Return True if a process of the session runs. Its number may be reused by a leader that started later."""
        began, leader = self.sessions.get(process.session), table.get(process.session)
        if began is None or leader is not None:
            return began is not None and leader is not None and began[0] <= leader.started <= began[1]
        # Without its leader the number may now belong to a daemon: only commands have the raised OOM score.
        return _read(pid, "oom_score_adj").strip() == _OOM_SCORE


def _processes() -> dict[int, _Process]:
    """Return all processes of the machine except this one."""
    processes = ((pid, _process(pid)) for pid in _pids())
    return {pid: process for pid, process in processes if process is not None}


def _leader(process: _Process) -> dict[int, _Process]:
    leader = _process(process.session)
    return {} if leader is None else {process.session: leader}


def _pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()} - {os.getpid()}


def _process(pid: int) -> _Process | None:
    """See proc(5) for the fields."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    if not fields:
        return None
    is_exiting = bool(int(fields[6]) & _PF_EXITING)
    return _Process(int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in "ZX", int(fields[2]), is_exiting)


def _with_descendants(roots: set[int], table: dict[int, _Process]) -> set[int]:
    descendants: set[int] = set()
    while roots:
        descendants |= roots
        roots = {pid for pid, process in table.items() if process.parent in roots} - descendants
    return descendants


def _split_variable(entry: str) -> tuple[str, str, str]:
    return entry.partition("=")


def _stamp(pid: int) -> str:
    for line in _read(pid, "limits").splitlines():
        if line.startswith("Max msgqueue size"):
            return line.split()[3]
    return ""


def _read(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _kill(pid: int, process: _Process, spared: int) -> None:
    """Kill the process that was found, not another with its pid, and its whole group at once.

    A stopped process stays in its group, and the number of a group with a member is not reused.
    """
    with suppress(OSError):  # gone, or another user's
        descriptor = os.pidfd_open(pid)
        try:
            now = _process(pid)
            if now is None or now.started != process.started:
                return
            signal.pidfd_send_signal(descriptor, signal.SIGSTOP)
            _kill_group(pid, process, spared)
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _kill_group(pid: int, process: _Process, spared: int) -> None:
    now = _process(pid)
    if now is None or now.started != process.started or now.is_exiting or now.session in (spared, 0) or now.group < 2:
        return
    with suppress(OSError):
        os.killpg(now.group, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
