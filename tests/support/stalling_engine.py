"""An engine whose event loop can be stalled: `python -m tests.support.stalling_engine HOW OPTIONS…`.

On SIGUSR2 the loop sleeps, spins, stops its process, or blocks in a library that keeps the interpreter lock.
"""

import asyncio
import os
import re
import signal
import sys
import time

from errand.engine.main import main

_FOR_EVER_S = 600


def stand(how: str) -> None:
    match how:
        case "sleeps":
            time.sleep(_FOR_EVER_S)
        case "is stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(_FOR_EVER_S)
        case "spins":
            end = time.monotonic() + _FOR_EVER_S
            while time.monotonic() < end:
                pass
        case _:
            re.match(r"(a+)+$", "a" * 60 + "b")


if __name__ == "__main__":
    how, *options = sys.argv[1:]

    def on_signal(number: int, frame: object) -> None:
        asyncio.get_running_loop().call_soon_threadsafe(stand, how)

    signal.signal(signal.SIGUSR2, on_signal)
    sys.exit(main(options, {}))
