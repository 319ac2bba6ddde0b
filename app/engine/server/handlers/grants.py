"""Grants: remembered permission decisions."""

from datetime import UTC, datetime

import msgspec

from app.engine.errors import NotFound
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.events import GrantUpdate
from app.protocol.grants import GrantListParams, GrantListResult, GrantRevokeParams, GrantRevokeResult
from app.protocol.wire import GRANT_LIST, GRANT_REVOKE


async def list_grants(services: Services, session: Session, params: GrantListParams) -> GrantListResult:
    grants = services.database.grants
    return GrantListResult(grants=await (grants.all() if params.revoked else grants.valid()))


async def revoke(services: Services, session: Session, params: GrantRevokeParams) -> GrantRevokeResult:
    grant = await services.database.grants.get(params.grant_id)
    if grant is None:
        raise NotFound(f"There is no grant {params.grant_id!r}.")
    if grant.revoked_at is None:
        grant = msgspec.structs.replace(grant, revoked_at=datetime.now(UTC))
        services.grants.add(grant)
        services.log.publish(GrantUpdate(grant=grant))
    return GrantRevokeResult(grant=grant)


HANDLERS = (Route(GRANT_LIST, list_grants), Route(GRANT_REVOKE, revoke))
