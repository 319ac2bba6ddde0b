"""Handlers of asks and grants."""

from datetime import UTC, datetime

import msgspec

from errand.engine.agent.tasks.grant_rules import covered_calls, draft_grant, made_grants
from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.server.route import Route, check_count
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.asks import (
    ASK_ANSWER,
    ASK_LIST,
    GRANT_ADD,
    GRANT_COVERED,
    GRANT_LIST,
    GRANT_REVOKE,
    AskAnswerParams,
    AskAnswerResult,
    AskListParams,
    AskListResult,
    GrantAddParams,
    GrantAddResult,
    GrantCoveredParams,
    GrantCoveredResult,
    GrantListParams,
    GrantListResult,
    GrantRevokeParams,
    GrantRevokeResult,
)
from errand.protocol.events import GrantUpdate

# Far more than a page of a transcript contains, in a frame of acceptable size.
_MAX_ASKS = 2_000


async def answer(services: Services, session: ClientSession, params: AskAnswerParams) -> AskAnswerResult:
    result = await services.asks.answer(params, session.client_name)
    if result.won:
        await services.runner.resumption.go_on_after_answer(result.ask.task_id)
    return result


async def list_asks(services: Services, session: ClientSession, params: AskListParams) -> AskListResult:
    task_ids = params.task_ids
    if task_ids is not None:
        check_count("task_ids", len(task_ids))
    elif params.task_id is not None:
        task_ids = (params.task_id,)
    if params.waiting:
        return AskListResult(asks=await services.database.asks.waiting(task_ids))
    return AskListResult(asks=await services.database.asks.page(_MAX_ASKS, task_ids))


async def list_grants(services: Services, session: ClientSession, params: GrantListParams) -> GrantListResult:
    grants = services.database.grants
    listed = await (grants.all() if params.revoked else grants.valid())
    return GrantListResult(grants=listed, unreadable=await grants.count_unreadable())


async def revoke(services: Services, session: ClientSession, params: GrantRevokeParams) -> GrantRevokeResult:
    grant = await services.database.grants.get(params.grant_id)
    if grant is None:
        raise NotFound(f"There is no grant {params.grant_id!r}.")
    if grant.revoked_at is None:
        grant = msgspec.structs.replace(grant, revoked_at=datetime.now(UTC))
        services.grants.add(grant)
        services.log.publish(GrantUpdate(grant=grant))
    return GrantRevokeResult(grant=grant)


async def add(services: Services, session: ClientSession, params: GrantAddParams) -> GrantAddResult:
    new_grants = await made_grants(params.rules, session.client_name, services.grants, services.database)
    existing_ids = {grant.id for grant in services.grants.all()}
    for grant in new_grants:
        if grant.id not in existing_ids:
            services.grants.add(grant)
            services.log.publish(GrantUpdate(grant=grant))
    return GrantAddResult(grants=new_grants)


async def covered(services: Services, session: ClientSession, params: GrantCoveredParams) -> GrantCoveredResult:
    if (params.grant_id is None) == (params.rule is None):
        raise InvalidParams("Say `grantId` or `rule`.")
    if params.rule is not None:
        grant = await draft_grant(params.rule, services.database)
    else:
        stored = await services.database.grants.get(params.grant_id or "")
        if stored is None:
            raise NotFound(f"There is no grant {params.grant_id!r}.")
        # What it would decide, whether it has ended or not.
        grant = msgspec.structs.replace(stored, expires_at=None, revoked_at=None)
    return await covered_calls(grant, params.most, services.database, services.paths)


HANDLERS = (
    Route(ASK_ANSWER, answer),
    Route(ASK_LIST, list_asks),
    Route(GRANT_LIST, list_grants),
    Route(GRANT_REVOKE, revoke),
    Route(GRANT_ADD, add),
    Route(GRANT_COVERED, covered),
)
