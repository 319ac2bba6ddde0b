"""The watchdog's own process: waits until its engine is gone, then ends every tool process that is left.

It is started for itself, without the rest of the app, so it imports nothing of ours. Standard input has a line for each
mark: `+ TASK NUMBER`, `clear`, or `bye` when the engine ends in order. Its end is the engine's death. After `look` it
looks at the engine's heartbeat from time to time, until the engine has been at rest for a while.
"""

import ctypes
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

_PR_SET_DUMPABLE = 4  # linux/prctl.h
# Nothing is found twice in a row: a fork may hide from one look.
_EMPTY_LOOKS = 2
_PAUSE_S = 0.02
_LONGEST_S = 10.0

_STDIN = 0
# In the time that a stall takes, and at a loop at rest before it is left alone.
_LOOKS = 5
# So long may it take to write where it stands.
_REPORT_S = 0.5


def main(arguments: Sequence[str]) -> int:
    """`arguments` are the heartbeat's descriptor, the engine's process id, its report of a stall, and after how many
    seconds without a turn it is one; or nothing.
    """
    _forbid_dumps()
    marks: set[tuple[str, str]] = set()
    loop = _loop(*arguments) if arguments else None
    poll = select.poll()
    poll.register(_STDIN, select.POLLIN)
    rest = b""
    while True:
        if loop is not None and loop.is_looked_at and not poll.poll(loop.look_s * 1000):
            loop.look()
            continue
        data = os.read(_STDIN, 65_536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            match line.decode().split():
                case ["+", task_id, number]:
                    marks.add((task_id, number))
                case ["clear"]:
                    marks.clear()
                case ["look"] if loop is not None:
                    loop.is_looked_at = True
                case _:
                    return 0
    if marks:
        _sweep(marks)
    return 0


def _loop(heartbeat: str, pid: str, report: str, longest_s: str) -> "_Loop":
    return _Loop(int(heartbeat), int(pid), report, float(longest_s))


class _Loop:
    """The engine's event loop, as its heartbeat and the system tell of it. `heartbeat.py` writes what is read here."""

    def __init__(self, heartbeat: int, pid: int, report: str, longest_s: float) -> None:
        self.is_looked_at = True
        self.look_s = longest_s / _LOOKS
        self._longest_s = longest_s
        self._heartbeat = heartbeat
        self._pid = pid
        self._process = os.pidfd_open(pid)
        self._report = report
        self._began = 0
        self._stood_s = 0.0
        self._at_rest = 0
        self._cpu_s = 0.0
        self._looked = time.monotonic()

    def look(self) -> None:
        """One look; ends the engine where its loop has made no turn for too long, though it could have."""
        now = time.monotonic()
        # No more than a look takes: this process was held up too, as by a machine that slept.
        passed, self._looked = min(now - self._looked, 2 * self.look_s), now
        (began,) = struct.unpack("=q", os.pread(self._heartbeat, 8, 0))
        state, cpu_s = _main_thread(self._pid)
        used_s, self._cpu_s = cpu_s - self._cpu_s, cpu_s
        if not began:
            self._rest()
        elif began != self._began or state in "tT" or _is_traced(self._pid):
            self._began, self._stood_s, self._at_rest = began, 0.0, 0
        elif state != "R" or used_s > passed / 10:  # else it gets no processor: the machine is busy
            self._stood_s += passed
            if self._stood_s >= self._longest_s:
                self._end()

    def _rest(self) -> None:
        self._began, self._stood_s = 0, 0.0
        self._at_rest += 1
        if self._at_rest < _LOOKS:
            return
        self._at_rest = 0
        os.pwrite(self._heartbeat, struct.pack("=q", 0), 8)
        (began,) = struct.unpack("=q", os.pread(self._heartbeat, 8, 0))
        # Where it began to work meanwhile it may have seen the old mark, and will not call.
        self.is_looked_at = began != 0

    def _end(self) -> None:
        with suppress(OSError):
            signal.pidfd_send_signal(self._process, signal.SIGUSR1)
            time.sleep(_REPORT_S)
            with open(self._report, "a", encoding="utf-8") as file:
                file.write(f"Its loop had made no turn for {self._stood_s:.0f} s: ended by the watchdog.\n")
        with suppress(OSError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
        self.is_looked_at = False


def _main_thread(pid: int) -> tuple[str, float]:
    """Its state and its seconds of processor time; see proc(5). Empty when it is gone."""
    fields = _read(pid, f"task/{pid}/stat").rpartition(")")[2].split()
    if not fields:
        return "", 0.0
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_traced(pid: int) -> bool:
    return any(line.split() != ["TracerPid:", "0"] for line in _read(pid, "status").splitlines() if "TracerPid" in line)


def _forbid_dumps() -> None:
    """No tool may read what this process was started with."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _sweep(marks: set[tuple[str, str]]) -> None:
    give_up_at = time.monotonic() + _LONGEST_S
    empty = 0
    while empty < _EMPTY_LOOKS and time.monotonic() < give_up_at:
        found = [pid for pid in _processes() if _is_marked(pid, marks)]
        for pid in found:
            _kill(pid)
        empty = 0 if found else empty + 1
        time.sleep(_PAUSE_S)


def _processes() -> Iterable[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]


def _is_marked(pid: int, marks: set[tuple[str, str]]) -> bool:
    """By both variables, or where a process has cleared its environment by the limit that it inherited.

    One that has ended, and that nobody has taken note of, is none: not every first process of a container does.
    """
    if _read(pid, "stat").rpartition(")")[2].split()[:1] == ["Z"]:
        return False
    variables = {name: value for name, _, value in map(_parted, _read(pid, "environ").split("\0"))}
    if "ERRAND_TASK" in variables:
        return (variables["ERRAND_TASK"], variables.get("ERRAND_CALL", "")) in marks
    return _stamp(pid) in {number for _, number in marks}


def _parted(entry: str) -> tuple[str, str, str]:
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


def _kill(pid: int) -> None:
    with suppress(OSError):  # gone, or another user's
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
