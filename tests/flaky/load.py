"""Processes that keep each core busy, and end with whoever started them."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

_BURN = """
import os, sys
parent = int(sys.argv[1])
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@contextmanager
def busy_cores(count: int | None = None) -> Generator[list[int]]:
    """Burn `count` cores, by default all of them. Yields the ids of the processes."""
    command = [sys.executable, "-c", _BURN, str(os.getpid())]
    burning = [subprocess.Popen(command) for _ in range(count if count is not None else os.cpu_count() or 1)]
    try:
        yield [process.pid for process in burning]
    finally:
        for process in burning:
            process.kill()
            process.wait()
