"""Executed commands and their results, so that a command sent twice is executed once, also across restarts."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, bindparam, or_, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, to_text, upsert
from errand.engine.storage.sql.tables import commands
from errand.protocol.settings import SETTINGS_SET
from errand.text.url_secrets import MASK

# The first result wins.
_SAVE = upsert(commands, ["client_id", "command_id"])
_PRUNE = commands.delete().where(commands.c.at < bindparam("before"))
_result = commands.c.result
_FORGET_PASSWORDS = commands.delete().where(
    commands.c.method == SETTINGS_SET.name,
    or_(
        and_(_result.like('%"value":"postgresql%://%:%@%'), _result.not_like(f"%:{MASK}@%")),
        and_(_result.like('%"value":"postgresql%password=%'), _result.not_like(f"%password={MASK}%")),
    ),
)
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


def forget_passwords() -> Write:
    """Delete answers of earlier versions with the password of a database: later ones have none."""
    return Write(_FORGET_PASSWORDS, {})


@dataclass(frozen=True, slots=True)
class AnsweredCommand:
    """A command's method, and the JSON text of its result."""

    method: str
    result: str


class CommandStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def answered(self, client_id: str, command_id: str) -> AnsweredCommand | None:
        """Return the stored result; None for a command not seen yet."""
        rows = await self._reader.rows(_ANSWERED, {"client_id": client_id, "command_id": command_id})
        return AnsweredCommand(rows[0].method, rows[0].result) if rows else None
