"""Grants: an append-only record of grants given, used and revoked. The newest row is a grant's state."""

from sqlalchemy import bindparam, func, select

from app.engine.storage.sqlite.reader import Reader
from app.engine.storage.sqlite.statements import Write, to_json
from app.engine.storage.sqlite.tables import grants
from app.protocol.asks import Grant

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
        """All grants that are not revoked."""
        return await self._reader.structs(_VALID, Grant)

    async def all(self) -> tuple[Grant, ...]:
        """The current state of each grant, including revoked ones."""
        return await self._reader.structs(_ALL, Grant)

    async def history(self, grant_id: str) -> tuple[Grant, ...]:
        """Every state of a grant, oldest first."""
        return await self._reader.structs(_HISTORY, Grant, {"grant_id": grant_id})
