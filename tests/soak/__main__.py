"""`make soak HOURS=h` or MINUTES=m: runs the soak test and prints its table.

Exits with 1 if a value is not constant.
"""

import argparse
import asyncio
import logging
import sys

from tests.benchmarks.bench import home
from tests.soak.sample import table, verdict, windows
from tests.soak.soak import Soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description="Run twenty tasks at a time for a long while.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--lives", type=int, default=4, help="how often the engine is started in all")
    options = parser.parse_args()
    seconds: float = options.minutes * 60
    logging.disable()  # stopped tasks and dying clients are intended
    with home() as folder:
        soak = Soak(folder, seconds, options.lives)
        asyncio.run(soak.run())
    found = windows(soak.samples, seconds)
    bad = verdict(found)
    ended = ", ".join(f"{count} {status}" for status, count in sorted(soak.ended.items()))
    sys.stdout.write(f"{table(found)}\n\nTasks: {ended}.\n")
    sys.stdout.writelines(f"NOT FLAT {text}\n" for text in bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
