"""`make test`: all tests, in processes that take the next file from one queue, and the type check beside them.

A line is printed for each file that is done, and all failures at the end. A type error ends all of it at once.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.pool.order import load_seconds, slowest_first, store_seconds
from tests.pool.pool import Pool

_TYPES = (sys.executable, "-m", "pyright", "--pythonpath", sys.executable)
_SECONDS = Path("build/test_seconds.json")

# Two more than there are cores: half of the time a test waits for threads, disks and timers.
_WORKERS = (os.cpu_count() or 1) + 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests")
    parser.add_argument("--workers", type=int, default=_WORKERS)
    parser.add_argument("--no-types", action="store_true", help="leave out the type check")
    options = parser.parse_args()
    # Ctrl+C and the end by a system stop the workers too, also where a shell started this in its background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    seconds = load_seconds(_SECONDS)
    pool = Pool(slowest_first(Path("tests").rglob("test_*.py"), seconds))
    try:
        code, text = asyncio.run(_run(pool, options.workers, with_types=not options.no_types))
    finally:
        store_seconds(_SECONDS, seconds | {done.file: done.seconds for done in pool.done})
        sys.stdout.write(pool.summary() + "\n")
    sys.stdout.write(text + "\n")
    return code or bool(pool.failures)


async def _run(pool: Pool, workers: int, with_types: bool) -> tuple[int, str]:
    """Run the tests, until there is a type error; returns pyright's exit code and what it prints."""
    running = asyncio.create_task(pool.run(workers))
    try:
        code, text = await _check_types() if with_types else (0, "")
        if not code:
            await running
    finally:
        running.cancel()
        await asyncio.wait([running])
    return code, text


async def _check_types() -> tuple[int, str]:
    """Return pyright's exit code and what it prints."""
    process = await asyncio.create_subprocess_exec(
        *_TYPES, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        os.killpg(process.pid, signal.SIGTERM)  # also Node.js, which holds its streams
        await process.wait()
        raise
    return await process.wait(), output.decode(errors="replace").strip()


if __name__ == "__main__":
    sys.exit(main())
