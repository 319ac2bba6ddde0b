"""An engine that kills itself before or after its Nth commit: `python -m tests.crash.doomed before|after N`."""

import os
import signal
import sys
from collections.abc import Sequence

from errand.engine.main import main
from errand.engine.storage.sqlite import engines
from errand.engine.storage.sqlite.statements import Write
from errand.engine.storage.sqlite.writer import SqliteWriter


class DoomedWriter(SqliteWriter):
    """Commits normally, and kills the process at the chosen commit."""

    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        _Doom.left -= 1
        if _Doom.left == 0 and _Doom.side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await super().write(batch, durable=durable)
        if _Doom.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class _Doom:
    side = "before"
    left = 0


if __name__ == "__main__":
    _Doom.side, _Doom.left = sys.argv[1], int(sys.argv[2])
    engines.SqliteWriter = DoomedWriter
    sys.exit(main([], {}))
