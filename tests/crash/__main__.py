"""`make crash`: kills N engines and prints the result in one line. The seed repeats a run."""

import asyncio
import logging
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.run import crash


def main() -> None:
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # dying clients are intended
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="errand-crash-"))
    sys.stdout.write(f"seed {seed}, in {folder}\n")
    sys.stdout.flush()
    begun = time.monotonic()
    counts = asyncio.run(crash(count, seed, folder))
    sys.stdout.write(f"{counts}, {time.monotonic() - begun:.0f} s\n")


if __name__ == "__main__":
    main()
