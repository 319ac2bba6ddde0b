"""Asks: what waits for a person."""

from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.asks import AskAnswerParams, AskAnswerResult, AskListParams, AskListResult
from app.protocol.wire import ASK_ANSWER, ASK_LIST


async def answer(services: Services, session: Session, params: AskAnswerParams) -> AskAnswerResult:
    return await services.runner.answer(params, session.client_name)


async def list_asks(services: Services, session: Session, params: AskListParams) -> AskListResult:
    if params.waiting:
        return AskListResult(asks=await services.database.asks.waiting(params.task_id))
    return AskListResult(asks=await services.database.asks.page(task_id=params.task_id))


HANDLERS = (Route(ASK_ANSWER, answer), Route(ASK_LIST, list_asks))
