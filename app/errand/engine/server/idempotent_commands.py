"""Runs each command once: a repeated request of a client gets the first answer, also after a restart."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b

import msgspec

from errand.engine.core.errors import Busy, CannotSave, Conflict
from errand.engine.storage.database import Database
from errand.engine.storage.records import commands
from errand.engine.storage.sql.journal import begin_ownership
from errand.engine.storage.sql.statements import to_json
from errand.protocol.engine import ENGINE_SHUTDOWN
from errand.protocol.tasks.methods import TASK_STOP
from errand.text.redaction import redact_json
from errand.text.url_secrets import without_url_secrets

_MAX_RUNNING_COMMANDS = 1_000
# Longer answers are searched for keys in a thread.
_MAX_INLINE_BYTES = 16 * 1024
# Commands that must work even if nothing can be saved.
_WITHOUT_STORAGE = frozenset({TASK_STOP.name, ENGINE_SHUTDOWN.name})


@dataclass(frozen=True, slots=True)
class ClientCommand:
    client_id: str
    request_id: str | int
    method: str

    @property
    def stored_id(self) -> str:
        """The id as stored in the table: 7 and "7" differ."""
        return repr(self.request_id)

    @property
    def name(self) -> str:
        """A stable id for what the command creates, so that a repeated command finds the existing object."""
        return blake2b(repr((self.client_id, self.request_id)).encode(), digest_size=10).hexdigest()


@dataclass(frozen=True, slots=True)
class _RunningCommand:
    method: str
    task: asyncio.Task[bytes]


class IdempotentCommands:
    """Owns the running commands: they continue if the client disconnects.

    Answers are stored without keys and passwords: who repeats a command gets its answer without them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running: dict[tuple[str, str], _RunningCommand] = {}

    async def once(self, command: ClientCommand, work: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the result of `work`, which runs only if this command never ran. An error of `work` is not stored."""
        key = (command.client_id, command.stored_id)
        running = self._running.get(key)
        if running is None:
            if len(self._running) >= _MAX_RUNNING_COMMANDS:
                raise Busy("Too many commands are under way. Try again shortly.")
            task = asyncio.get_running_loop().create_task(self._run(command, work), name=f"command {command.method}")
            running = self._running[key] = _RunningCommand(command.method, task)
            task.add_done_callback(lambda task: self._on_done(key, task))
        else:
            _check(command, running.method)
        return await asyncio.shield(running.task)

    async def wait_running(self, seconds: float) -> None:
        """Wait for running commands, at most `seconds`."""
        running = [command.task for command in self._running.values() if not command.task.done()]
        if not running:
            return
        _, late = await asyncio.wait(running, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _on_done(self, key: tuple[str, str], task: asyncio.Task[bytes]) -> None:
        """The answer is in the database, or the command failed and may be sent again."""
        del self._running[key]
        if not task.cancelled():
            task.exception()  # delivered to the waiting caller; its client may have disconnected

    async def _run(self, command: ClientCommand, work: Callable[[], Awaitable[bytes]]) -> bytes:
        begin_ownership()
        answered = await self._database.commands.answered(command.client_id, command.stored_id)
        if answered is not None:
            _check(command, answered.method)
            return answered.result.encode()
        if command.method in _WITHOUT_STORAGE:
            result = await work()  # run at once: a stop does not wait for the disk
            try:
                await self._database.journal.probe()
            except CannotSave:
                return result
        else:
            await self._database.journal.probe()
            result = await work()
        is_long = len(result) > _MAX_INLINE_BYTES
        stored = await asyncio.to_thread(self._stored, result) if is_long else self._stored(result)
        self._database.journal.put(
            commands.save(command.client_id, command.stored_id, command.method, stored, datetime.now(UTC))
        )
        # An acknowledged command is on disk, with everything that it changed.
        await self._database.journal.flush()
        return result

    def _stored(self, result: bytes) -> str:
        """Return the answer as it is stored."""
        text, redact = result.decode(), self._database.redact
        if redact(text) == text and without_url_secrets(text) == text:
            return text
        return to_json(redact_json(msgspec.json.decode(result), lambda value: redact(without_url_secrets(value))))


def _check(command: ClientCommand, method: str) -> None:
    if method != command.method:
        raise Conflict(f"The id {command.request_id!r} was used for {method}; choose a new id.")
