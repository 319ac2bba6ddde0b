"""The watchdog's own process: waits until its engine is gone, then ends every tool process that is left.

It is started for itself, without the rest of the app, so it imports nothing of ours. Standard input has a line for each
mark: `+ TASK NUMBER`, `clear`, or `bye` when the engine ends in order. Its end is the engine's death.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

_PR_SET_DUMPABLE = 4  # linux/prctl.h
# Nothing is found twice in a row: a fork may hide from one look.
_LOOKS = 2
_PAUSE_S = 0.02
_LONGEST_S = 10.0


def main() -> int:
    _forbid_dumps()
    marks: set[tuple[str, str]] = set()
    for line in sys.stdin:
        match line.split():
            case ["+", task_id, number]:
                marks.add((task_id, number))
            case ["clear"]:
                marks.clear()
            case _:
                return 0
    if marks:
        _sweep(marks)
    return 0


def _forbid_dumps() -> None:
    """No tool may read what this process was started with."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _sweep(marks: set[tuple[str, str]]) -> None:
    give_up_at = time.monotonic() + _LONGEST_S
    empty = 0
    while empty < _LOOKS and time.monotonic() < give_up_at:
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
    sys.exit(main())
