"""Grants: an append-only record of grants given, used and revoked. The newest row is a grant's state."""

import logging

from sqlalchemy import bindparam, func, select
from sqlalchemy.sql.expression import Executable

from errand.engine.core.errors import StorageError
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, from_json, to_json
from errand.engine.storage.sql.tables import grants
from errand.protocol.asks import Grant

_log = logging.getLogger(__name__)

_ADD = grants.insert()
_newest = select(func.max(grants.c.number)).group_by(grants.c.grant_id)
_ALL = select(grants.c.body).where(grants.c.number.in_(_newest)).order_by(grants.c.number)
_VALID = _ALL.where(grants.c.action != "revoked")
_ONE = select(grants.c.body).where(grants.c.grant_id == bindparam("grant_id")).order_by(grants.c.number.desc()).limit(1)
_HISTORY = select(grants.c.body).where(grants.c.grant_id == bindparam("grant_id")).order_by(grants.c.number)


def save(grant: Grant) -> Write:
    """Adds a row: given, used or revoked, depending on the grant."""
    action = "given" if grant.last_used_at is None else "used"
    if grant.revoked_at is not None:
        action = "revoked"
    return Write(_ADD, {"grant_id": grant.id, "action": action, "body": to_json(grant)})


class GrantStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, grant_id: str) -> Grant | None:
        return await self._reader.struct(_ONE, Grant, {"grant_id": grant_id})

    async def valid(self) -> tuple[Grant, ...]:
        """Return all grants that are not revoked, those that have expired among them; without unreadable ones."""
        return (await self._readable(_VALID))[0]

    async def all(self) -> tuple[Grant, ...]:
        """Return the current state of each grant, including revoked ones."""
        return (await self._readable(_ALL))[0]

    async def count_unreadable(self) -> int:
        return (await self._readable(_VALID))[1]

    async def _readable(self, statement: Executable) -> tuple[tuple[Grant, ...], int]:
        """Return the grants that can be read, and the number of the others: a broken grant covers nothing."""
        readable_grants: list[Grant] = []
        rows = await self._reader.rows(statement)
        for row in rows:
            try:
                readable_grants.append(from_json(row[0], Grant))
            except StorageError as error:
                _log.warning("a stored grant cannot be read, so it covers nothing: %s", error)
        return tuple(readable_grants), len(rows) - len(readable_grants)

    async def history(self, grant_id: str) -> tuple[Grant, ...]:
        """Return every state of a grant, oldest first."""
        return await self._reader.structs(_HISTORY, Grant, {"grant_id": grant_id})
