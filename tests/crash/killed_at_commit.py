"""An engine that kills itself at its Nth commit: `python -m tests.crash.killed_at_commit SIDE N`, SIDE from `SIDES`."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from sqlalchemy import event

from errand.engine.main import main
from errand.engine.storage.postgres import server
from errand.engine.storage.postgres.writer import PostgresWriter
from errand.engine.storage.sql.async_engine import AsyncEngine
from errand.engine.storage.sql.statements import Write
from errand.engine.storage.sqlite import engines
from errand.engine.storage.sqlite.writer import SqliteWriter

SIDES = ("before", "after")
# On a server also before the end of the transaction, and before its answer arrives.
SIDES_ON_SERVER = ("before", "within", "unanswered", "after")


class KilledSqliteWriter(SqliteWriter):
    """Commits normally, and kills the process at the chosen commit."""

    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        _CrashPoint.left -= 1
        _die("before")
        await super().write(batch, durable=durable)
        _die("after")


class KilledPostgresWriter(PostgresWriter):
    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        event.listen(engine.sync_engine, "commit", self._on_commit)

    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        _CrashPoint.left -= 1
        _die("before")
        await super().write(batch, durable=durable)
        _die("after")

    @staticmethod
    def _on_commit(_: object) -> None:
        """The COMMIT is about to be sent: by the driver at once, before the loop goes on."""
        _die("within")
        asyncio.get_running_loop().call_soon(_die, "unanswered")


class _CrashPoint:
    side = "before"
    left = 0


def _die(side: str) -> None:
    if _CrashPoint.left == 0 and _CrashPoint.side == side:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _CrashPoint.side, _CrashPoint.left = sys.argv[1], int(sys.argv[2])
    engines.SqliteWriter = KilledSqliteWriter
    server.PostgresWriter = KilledPostgresWriter
    sys.exit(main([], {}))
