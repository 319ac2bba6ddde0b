"""An engine that kills itself around a change of a file: `python -m tests.support.killed_at_change WHEN`.

`recorded`: after the commit that records a change, before it is made. `undoing`: before the second file of an undo.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from app.engine.checkpoints import undo
from app.engine.checkpoints.disk import restore
from app.engine.checkpoints.history import Version
from app.engine.main import main
from app.engine.storage.sqlite import engines
from app.engine.storage.sqlite.statements import Write
from app.engine.storage.sqlite.tables import changes
from app.engine.storage.sqlite.writer import SqliteWriter


class KilledWriter(SqliteWriter):
    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        await super().write(batch, durable=durable)
        if any(write.statement.table is changes for write in batch):
            os.kill(os.getpid(), signal.SIGKILL)


class KilledRestore:
    def __init__(self) -> None:
        self._count = 0

    def __call__(self, path: Path, version: Version, expected: str) -> None:
        self._count += 1
        if self._count == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        restore(path, version, expected)


if __name__ == "__main__":
    if sys.argv[1] == "recorded":
        engines.SqliteWriter = KilledWriter
    else:
        undo.restore = KilledRestore()
    sys.exit(main([], {}))
