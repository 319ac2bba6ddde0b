"""Tasks: the moves are the runner's, the reads are storage's."""

from functools import partial

import msgspec

from app.engine.errors import NotFound
from app.engine.models.windows import window_of
from app.engine.record.make import Ground, make_record
from app.engine.server.limits import page_size
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.tasks import (
    TaskIdParams,
    TaskListParams,
    TaskListResult,
    TaskMessageParams,
    TaskNextResult,
    TaskPlansResult,
    TaskQueueChangeParams,
    TaskQueueRemoveParams,
    TaskRecordResult,
    TaskResult,
    TaskRetryParams,
    TaskSetModeParams,
    TaskStartParams,
    TaskStartResult,
)
from app.protocol.wire import (
    TASK_CHANGE_QUEUED,
    TASK_FOLLOW_UP,
    TASK_GET,
    TASK_LIST,
    TASK_NEXT,
    TASK_PAUSE,
    TASK_PLANS,
    TASK_RECORD,
    TASK_REMOVE_QUEUED,
    TASK_RESUME,
    TASK_RETRY,
    TASK_SET_MODE,
    TASK_START,
    TASK_STEER,
    TASK_STOP,
    TASK_TRY_NOW,
)


async def start(services: Services, session: Session, params: TaskStartParams) -> TaskStartResult:
    return TaskStartResult(task=await services.runner.start(params))


async def retry(services: Services, session: Session, params: TaskRetryParams) -> TaskResult:
    return TaskResult(task=await services.runner.retry(params))


async def stop(services: Services, session: Session, params: TaskIdParams) -> TaskResult:
    return TaskResult(task=await services.runner.stop(params.task_id, session.client_name))


async def pause(services: Services, session: Session, params: TaskIdParams) -> TaskResult:
    return TaskResult(task=await services.runner.pause(params.task_id))


async def resume(services: Services, session: Session, params: TaskIdParams) -> TaskResult:
    return TaskResult(task=await services.runner.resume(params.task_id))


async def try_now(services: Services, session: Session, params: TaskIdParams) -> TaskResult:
    return TaskResult(task=await services.runner.try_now(params.task_id))


async def set_mode(services: Services, session: Session, params: TaskSetModeParams) -> TaskResult:
    return TaskResult(task=await services.runner.set_mode(params))


async def steer(services: Services, session: Session, params: TaskMessageParams) -> TaskResult:
    return TaskResult(task=await services.runner.say(params, "steer"))


async def follow_up(services: Services, session: Session, params: TaskMessageParams) -> TaskResult:
    return TaskResult(task=await services.runner.say(params, "follow_up"))


async def change_queued(services: Services, session: Session, params: TaskQueueChangeParams) -> TaskResult:
    return TaskResult(task=await services.runner.change_queued(params))


async def remove_queued(services: Services, session: Session, params: TaskQueueRemoveParams) -> TaskResult:
    return TaskResult(task=await services.runner.remove_queued(params))


async def get(services: Services, session: Session, params: TaskIdParams) -> TaskResult:
    task = await services.database.tasks.get(params.task_id)
    if task is None:
        raise NotFound(f"There is no task {params.task_id!r}.")
    return TaskResult(task=task)


async def following(services: Services, session: Session, params: TaskIdParams) -> TaskNextResult:
    return TaskNextResult(task=await services.runner.after(params.task_id))


async def list_tasks(services: Services, session: Session, params: TaskListParams) -> TaskListResult:
    limit = page_size(params.limit)
    return await services.database.tasks.page(limit, params.conversation_id, active=params.active, cursor=params.cursor)


async def plans(services: Services, session: Session, params: TaskIdParams) -> TaskPlansResult:
    await get(services, session, params)
    return TaskPlansResult(plans=await services.database.turns.plans(params.task_id))


async def record(services: Services, session: Session, params: TaskIdParams) -> TaskRecordResult:
    values, windows = services.settings.values, partial(window_of, models=services.models, settings=services.settings)
    ground = Ground(services.version, values.max_minutes, values.max_tokens, values.summarise_at, windows)
    made = await make_record(services.database, params.task_id, ground)
    return TaskRecordResult(lines=made.lines())


def _named_start(params: TaskStartParams, name: str) -> TaskStartParams:
    return params if params.task_id is not None else msgspec.structs.replace(params, task_id=f"task_{name}")


def _named_retry(params: TaskRetryParams, name: str) -> TaskRetryParams:
    return params if params.task_id is not None else msgspec.structs.replace(params, task_id=f"task_{name}")


def _named_mode(params: TaskSetModeParams, name: str) -> TaskSetModeParams:
    return params if params.new_task_id is not None else msgspec.structs.replace(params, new_task_id=f"task_{name}")


def _named_words(params: TaskMessageParams, name: str) -> TaskMessageParams:
    return params if params.queued_id is not None else msgspec.structs.replace(params, queued_id=f"queued_{name}")


HANDLERS = (
    Route(TASK_START, start, _named_start),
    Route(TASK_RETRY, retry, _named_retry),
    Route(TASK_STOP, stop),
    Route(TASK_PAUSE, pause),
    Route(TASK_RESUME, resume),
    Route(TASK_TRY_NOW, try_now),
    Route(TASK_SET_MODE, set_mode, _named_mode),
    Route(TASK_STEER, steer, _named_words),
    Route(TASK_FOLLOW_UP, follow_up, _named_words),
    Route(TASK_CHANGE_QUEUED, change_queued),
    Route(TASK_REMOVE_QUEUED, remove_queued),
    Route(TASK_GET, get),
    Route(TASK_NEXT, following),
    Route(TASK_LIST, list_tasks),
    Route(TASK_PLANS, plans),
    Route(TASK_RECORD, record),
)
