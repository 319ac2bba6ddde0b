"""`make attacks SEED=…`: the long form of every attack, with a table of figures; other arguments go to pytest."""

import os
import random
import sys

import pytest

from tests.attacks.campaign import environment


def main() -> int:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1] else random.randrange(1_000_000)
    os.environ.update(environment(seed))
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    return pytest.main(["tests/attacks", "-o", "faulthandler_timeout=0", *sys.argv[2:]])


if __name__ == "__main__":
    sys.exit(main())
