"""`make soak HOURS=h` or MINUTES=m: runs the soak test and prints its table and the trends.

Exits with 1 if memory, stalls or answers grow, stalls are too long, or a count is not constant.
"""

import argparse
import asyncio
import logging
import sys

from tests.benchmarks.bench import home
from tests.soak.sample import table, verdict, windows
from tests.soak.soak import Soak
from tests.soak.trend import trends
from tests.support.stored_records import KINDS, Kind, stored_records


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description="Run twenty tasks at a time for a long while.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--lives", type=int, default=2, help="how often the engine is started in all")
    parser.add_argument("--database", choices=KINDS, default="sqlite")
    options = parser.parse_args()
    seconds: float = options.minutes * 60
    kind: Kind = options.database
    logging.disable()  # stopped tasks and dying clients are intended
    with home() as folder, stored_records(kind, folder) as records:
        soak = Soak(folder, records, seconds, options.lives)
        asyncio.run(soak.run())
    measured = windows(soak.samples, seconds)
    courses = trends(soak.samples, seconds)
    bad = verdict(measured)
    ended = ", ".join(f"{count} {status}" for status, count in sorted(soak.ended.items()))
    sys.stdout.write(f"{table(measured)}\n\nTasks: {ended}.\n")
    sys.stdout.writelines(f"{'holds' if course.holds else 'GROWS'} {course.text}\n" for course in courses)
    sys.stdout.writelines(f"NOT FLAT {text}\n" for text in bad)
    return 1 if bad or not all(course.holds for course in courses) else 0


if __name__ == "__main__":
    sys.exit(main())
