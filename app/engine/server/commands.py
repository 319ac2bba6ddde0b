"""Commands are done once: the same client's same request gets the first one's answer, also after a restart."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from app.engine.errors import Busy, CannotSave, Conflict
from app.engine.storage import commands
from app.engine.storage.database import Database
from app.protocol.wire import ENGINE_SHUTDOWN, TASK_STOP

_MOST_UNDER_WAY = 1_000
_MOST_KEPT = 10_000
# What must work though nothing can be saved.
_EVEN_SO = frozenset({TASK_STOP.name, ENGINE_SHUTDOWN.name})


@dataclass(frozen=True, slots=True)
class Command:
    client_id: str
    request_id: str | int
    method: str

    @property
    def stored_id(self) -> str:
        """As the table has it: 7 and "7" differ."""
        return repr(self.request_id)


@dataclass(frozen=True, slots=True)
class _Done:
    method: str
    task: asyncio.Task[bytes]


class Commands:
    """Owns the commands under way: they go on when the client that sent them is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._done: OrderedDict[tuple[str, str], _Done] = OrderedDict()

    async def once(self, command: Command, work: Callable[[], Awaitable[bytes]]) -> bytes:
        """The result of `work`, which runs only if this command never ran. An error of `work` is not remembered."""
        key = (command.client_id, command.stored_id)
        known = self._done.get(key)
        if known is None:
            known = self._begin(key, command, work)
        elif known.method != command.method:
            raise Conflict(f"The id {command.request_id!r} was used for {known.method}; choose a new id.")
        return await asyncio.shield(known.task)

    async def settle(self, seconds: float) -> None:
        """Let what is under way end, for at most so long."""
        under_way = [one.task for one in self._done.values() if not one.task.done()]
        if not under_way:
            return
        _, late = await asyncio.wait(under_way, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _begin(self, key: tuple[str, str], command: Command, work: Callable[[], Awaitable[bytes]]) -> _Done:
        while len(self._done) >= _MOST_KEPT and next(iter(self._done.values())).task.done():
            self._done.popitem(last=False)
        if len(self._done) >= _MOST_KEPT + _MOST_UNDER_WAY:
            raise Busy("Too many commands are under way. Try again shortly.")
        task = asyncio.get_running_loop().create_task(self._run(command, work), name=f"command {command.method}")
        known = self._done[key] = _Done(command.method, task)
        task.add_done_callback(lambda task: self._forget_failed(key, task))
        return known

    async def _run(self, command: Command, work: Callable[[], Awaitable[bytes]]) -> bytes:
        stored = await self._database.commands.result(command.client_id, command.stored_id)
        if stored is not None:
            return stored.encode()
        try:
            await self._database.journal.probe()
        except CannotSave:
            if command.method not in _EVEN_SO:
                raise
            return await work()
        result = await work()
        self._database.journal.put(
            commands.save(command.client_id, command.stored_id, command.method, result.decode(), datetime.now(UTC))
        )
        # An acknowledged command is on disk, with all that it changed.
        await self._database.journal.flush()
        return result

    def _forget_failed(self, key: tuple[str, str], task: asyncio.Task[bytes]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._done.pop(key, None)
