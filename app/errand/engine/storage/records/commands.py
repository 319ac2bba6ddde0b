"""Executed commands and their results, so that a command sent twice is executed once, also across restarts."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, to_text, upsert
from errand.engine.storage.sql.tables import commands

# The first result wins.
_SAVE = upsert(commands, ["client_id", "command_id"])
_PRUNE = commands.delete().where(commands.c.at < bindparam("before"))
_ANSWERED = select(commands.c.method, commands.c.result).where(
    commands.c.client_id == bindparam("client_id"), commands.c.command_id == bindparam("command_id")
)


def save(client_id: str, command_id: str, method: str, result: str, at: datetime) -> Write:
    """`result` is the JSON text of the response."""
    return Write(
        _SAVE,
        {"client_id": client_id, "command_id": command_id, "method": method, "result": result, "at": to_text(at)},
    )


def prune(before: datetime) -> Write:
    """Delete commands older than `before`."""
    return Write(_PRUNE, {"before": to_text(before)})


@dataclass(frozen=True, slots=True)
class AnsweredCommand:
    """A command's method, and the JSON text of its result."""

    method: str
    result: str


class CommandStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def answered(self, client_id: str, command_id: str) -> AnsweredCommand | None:
        """The stored result; None for a command not seen yet."""
        rows = await self._reader.rows(_ANSWERED, {"client_id": client_id, "command_id": command_id})
        return AnsweredCommand(rows[0].method, rows[0].result) if rows else None
