"""Handlers of comparisons."""

from errand.engine.agent.tasks.comparison import compare_branches
from errand.engine.server.route import Route, checked_limit
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.comparisons import (
    CONVERSATION_COMPARE,
    TASK_COMPARE_MODELS,
    ConversationCompareParams,
    ConversationCompareResult,
    TaskCompareModelsParams,
    TaskCompareModelsResult,
)


async def ask(services: Services, session: ClientSession, params: TaskCompareModelsParams) -> TaskCompareModelsResult:
    return await services.models.comparison.ask(params)


async def compare(
    services: Services, session: ClientSession, params: ConversationCompareParams
) -> ConversationCompareResult:
    checked_limit(params.limit)
    return await compare_branches(params, services.database)


HANDLERS = (Route(TASK_COMPARE_MODELS, ask), Route(CONVERSATION_COMPARE, compare))
