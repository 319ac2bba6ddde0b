"""`make crash`: kills N engines and prints the result in one line. The seed repeats a run."""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.run import crash, data_directory
from tests.support.stored_records import KINDS, Kind, stored_records


def main() -> None:
    parser = argparse.ArgumentParser(prog="make crash", description="Kill engines, and count what is lost.")
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=random.randrange(1_000_000))
    parser.add_argument("--database", choices=KINDS, default="sqlite")
    options = parser.parse_args()
    count: int = options.count
    seed: int = options.seed
    kind: Kind = options.database
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # dying clients are intended
    folder = Path(tempfile.mkdtemp(prefix="errand-crash-"))
    sys.stdout.write(f"seed {seed}, in {folder}\n")
    sys.stdout.flush()
    begun = time.monotonic()
    with stored_records(kind, data_directory(folder)) as stored:
        counts = asyncio.run(crash(count, seed, folder, stored))
    sys.stdout.write(f"{counts}, {time.monotonic() - begun:.0f} s\n")


if __name__ == "__main__":
    main()
