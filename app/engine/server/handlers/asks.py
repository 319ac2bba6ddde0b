"""Asks: what waits for a person."""

from app.engine.server.limits import limit_count
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.asks import AskAnswerParams, AskAnswerResult, AskListParams, AskListResult
from app.protocol.wire import ASK_ANSWER, ASK_LIST

# Far more than a page of a transcript has asked for, and still a frame of bearable size.
_MOST = 2_000


async def answer(services: Services, session: Session, params: AskAnswerParams) -> AskAnswerResult:
    return await services.runner.answer(params, session.client_name)


async def list_asks(services: Services, session: Session, params: AskListParams) -> AskListResult:
    task_ids = params.task_ids
    if task_ids is not None:
        limit_count("task_ids", len(task_ids))
    elif params.task_id is not None:
        task_ids = (params.task_id,)
    if params.waiting:
        return AskListResult(asks=await services.database.asks.waiting(task_ids))
    return AskListResult(asks=await services.database.asks.page(_MOST, task_ids))


HANDLERS = (Route(ASK_ANSWER, answer), Route(ASK_LIST, list_asks))
