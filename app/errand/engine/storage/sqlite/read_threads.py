"""Reads of a SQLite file, in a few threads that have a connection each."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

from sqlalchemy import Connection, Engine, Row
from sqlalchemy.sql.expression import Executable

from errand.engine.core.errors import StorageError
from errand.engine.core.worker_thread import hand_over
from errand.engine.storage.sql.statements import Value

_MAX_THREADS = 4
# When the database is closed, for reads that nobody waits for any more.
_LAST_S = 1.0


class _Read:
    """A statement that waits for a thread."""

    __slots__ = ("parameters", "result", "statement")

    def __init__(self, statement: Executable, parameters: Mapping[str, Value] | None) -> None:
        self.statement = statement
        self.parameters = parameters
        self.result: asyncio.Future[Sequence[Row[Any]]] = asyncio.get_running_loop().create_future()


class ReadThreads:
    """One thread hop per read, where an async driver needs one per call. A thread starts when all others are busy.

    A read whose caller is cancelled goes on to its end. The threads are daemons: they do not delay the exit of the
    process.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reads: SimpleQueue[_Read | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)  # counts threads without a read
        self._is_closed = False

    async def rows(self, statement: Executable, parameters: Mapping[str, Value] | None) -> Sequence[Row[Any]]:
        """Raises errors of SQLAlchemy, and `StorageError` after `close` or if no thread can be started."""
        if self._is_closed:
            raise StorageError("The database is closed.")
        read = _Read(statement, parameters)
        self._reads.put(read)
        if not self._idle.acquire(blocking=False) and len(self._threads) < _MAX_THREADS:
            self._start_thread()
        return await read.result

    async def close(self) -> None:
        """End the threads and close their connections; waits only a moment for reads that are under way."""
        self._is_closed = True
        for _ in self._threads:
            self._reads.put(None)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        end = time.monotonic() + _LAST_S
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"storage reader {len(self._threads) + 1}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the process may not have another one; those that run will come to it
            if not self._threads:
                raise StorageError(f"The database cannot be read: {error}. Nothing was changed.") from error
        else:
            self._threads.append(thread)

    def _work(self) -> None:
        connection: Connection | None = None

        def rows(read: _Read) -> Sequence[Row[Any]]:
            nonlocal connection
            connection = connection or self._engine.connect()
            return connection.execute(read.statement, read.parameters).all()

        while (read := self._reads.get()) is not None:
            hand_over(partial(rows, read), read.result)
            del read  # with its rows
            self._idle.release()
        if connection is not None:
            connection.close()
