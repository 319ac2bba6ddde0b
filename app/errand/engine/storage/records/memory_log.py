"""The audit of memory: what was done with it, by whom. Append-only; it never holds what was forgotten."""

from datetime import UTC, datetime

from sqlalchemy import bindparam, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, to_text
from errand.engine.storage.sql.tables import memory_log
from errand.protocol.memory import MemoryAction, MemoryLogEntry, MemoryLogResult

_ADD = memory_log.insert()
_newest_first = select(memory_log).order_by(memory_log.c.number.desc()).limit(bindparam("most"))
_BEFORE = _newest_first.where(memory_log.c.number < bindparam("before"))


def add(action: MemoryAction, by: str, about: str) -> Write:
    """Return a line of the audit, as of now. Put it together with the change itself.

    `about` names what was changed, by ids, counts and places: never its text, which may have to be forgotten later.
    """
    now = to_text(datetime.now(UTC))
    return Write(_ADD, {"at": now, "action": action, "actor": by, "about": about})


class MemoryLogStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def page(self, limit: int, before_number: int | None = None) -> MemoryLogResult:
        """Newest first."""
        if before_number is None:
            rows = await self._reader.rows(_newest_first, {"most": limit + 1})
        else:
            rows = await self._reader.rows(_BEFORE, {"most": limit + 1, "before": before_number})
        entries = tuple(
            MemoryLogEntry(
                number=row.number,
                at=datetime.fromisoformat(row.at),
                action=row.action,
                by=row.actor,
                about=row.about,
            )
            for row in rows[:limit]
        )
        return MemoryLogResult(entries=entries, has_more=len(rows) > limit)
