"""The same asked of several models, and two branches side by side."""

import msgspec

from app.engine.agent.sides import compare_branches
from app.engine.server.limits import page_size
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.comparisons import (
    ConversationCompareParams,
    ConversationCompareResult,
    TaskCompareModelsParams,
    TaskCompareModelsResult,
)
from app.protocol.wire import CONVERSATION_COMPARE, TASK_COMPARE_MODELS


async def ask(services: Services, session: Session, params: TaskCompareModelsParams) -> TaskCompareModelsResult:
    return await services.comparison.ask(params)


async def compare(services: Services, session: Session, params: ConversationCompareParams) -> ConversationCompareResult:
    page_size(params.limit)
    return await compare_branches(params, services.database)


def _named(params: TaskCompareModelsParams, name: str) -> TaskCompareModelsParams:
    if params.start.task_id is not None:
        return params
    return msgspec.structs.replace(params, start=msgspec.structs.replace(params.start, task_id=f"task_{name}"))


HANDLERS = (Route(TASK_COMPARE_MODELS, ask, _named), Route(CONVERSATION_COMPARE, compare))
