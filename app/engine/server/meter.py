"""What this process uses, measured."""

import time
from pathlib import Path

_ROLLUP = Path("/proc/self/smaps_rollup")


def memory_bytes() -> int:
    """The proportional set size where the system tells it, else the resident set size."""
    try:
        lines = _ROLLUP.read_text(encoding="ascii").splitlines()
    except OSError:
        import psutil  # only where there is no /proc

        return psutil.Process().memory_info().rss
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def cpu_seconds() -> float:
    """User and system time of the process since its start."""
    return time.process_time()
