"""`make clients N=…`: runs N crowds, each from a separate seed; prints statistics; exits with 1 for a fault."""

import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.clients.crowd import Tally, crowd

_CLIENTS = 20


async def _play(seed: int) -> Tally:
    with tempfile.TemporaryDirectory(prefix="errand-clients-") as home:
        async with crowd(Path(home), seed) as clients:
            await clients.play(_CLIENTS)
            return clients.tally


def main() -> int:
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    logging.disable()  # disconnecting clients are intended
    faults = 0
    for seed in range(first, first + count):
        started = time.perf_counter()
        tally = asyncio.run(_play(seed))
        done = ", ".join(f"{number} {what}" for what, number in sorted(tally.done.items()) if number)
        sys.stdout.write(f"seed {seed}: {time.perf_counter() - started:.1f} s; {done}\n")
        for fault in tally.faults:
            sys.stdout.write(f"  FAULT {fault}\n")
        sys.stdout.flush()
        faults += len(tally.faults)
    sys.stdout.write(f"{count} crowds of {_CLIENTS} clients: {faults} faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
