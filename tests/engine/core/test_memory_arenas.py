"""Allocating threads: with a single malloc arena no thread gets a mapping of its own."""

import subprocess
import sys

import pytest

_THREADS = """
import re, sys, threading
if len(sys.argv) > 1:
    from errand.engine.core.process_hardening import limit_malloc_arenas
    limit_malloc_arenas()
go = threading.Barrier(9)
def fill():
    go.wait()
    kept = [bytes(600) for _ in range(20_000)]  # above what Python's own pools serve
    go.wait()
    go.wait()
for _ in range(8):
    threading.Thread(target=fill).start()
go.wait(); go.wait()
starts = re.findall(r"^([0-9a-f]+)-\\S+ \\S+ \\S+ \\S+ 0 *$", open("/proc/self/maps").read(), re.M)
print(sum(int(start, 16) % (64 << 20) == 0 for start in starts))
go.wait()
"""


def _heaps(*arguments: str) -> int:
    ran = subprocess.run([sys.executable, "-c", _THREADS, *arguments], capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="heaps for threads are glibc's")
def test_threads_share_one_malloc_arena() -> None:
    assert _heaps("one") < _heaps()
