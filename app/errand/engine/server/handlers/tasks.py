"""Handlers of tasks."""

import asyncio
from functools import partial

from errand.engine.core.errors import NotFound
from errand.engine.data.export_redaction import ExportRedaction
from errand.engine.models.router import window_of
from errand.engine.record.make_record import RecordContext, make_record
from errand.engine.server.route import Route, checked_limit, checked_part
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.tasks.methods import (
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


async def start(services: Services, session: ClientSession, params: TaskStartParams) -> TaskStartResult:
    return TaskStartResult(task=await services.runner.start(params))


async def retry(services: Services, session: ClientSession, params: TaskRetryParams) -> TaskResult:
    return TaskResult(task=await services.runner.retry(params))


async def stop(services: Services, session: ClientSession, params: TaskIdParams) -> TaskResult:
    return TaskResult(task=await services.runner.stop(params.task_id, session.client_name))


async def pause(services: Services, session: ClientSession, params: TaskIdParams) -> TaskResult:
    return TaskResult(task=await services.runner.pause(params.task_id))


async def resume(services: Services, session: ClientSession, params: TaskIdParams) -> TaskResult:
    return TaskResult(task=await services.runner.resume(params.task_id))


async def try_now(services: Services, session: ClientSession, params: TaskIdParams) -> TaskResult:
    return TaskResult(task=await services.runner.try_now(params.task_id))


async def set_mode(services: Services, session: ClientSession, params: TaskSetModeParams) -> TaskResult:
    return TaskResult(task=await services.runner.set_mode(params))


async def steer(services: Services, session: ClientSession, params: TaskMessageParams) -> TaskResult:
    return TaskResult(task=await services.runner.messages.add(params, "steer"))


async def follow_up(services: Services, session: ClientSession, params: TaskMessageParams) -> TaskResult:
    return TaskResult(task=await services.runner.messages.add(params, "follow_up"))


async def change_queued(services: Services, session: ClientSession, params: TaskQueueChangeParams) -> TaskResult:
    return TaskResult(task=await services.runner.messages.change(params))


async def remove_queued(services: Services, session: ClientSession, params: TaskQueueRemoveParams) -> TaskResult:
    return TaskResult(task=await services.runner.messages.remove(params))


async def get(services: Services, session: ClientSession, params: TaskIdParams) -> TaskResult:
    task = await services.database.tasks.get(params.task_id)
    if task is None:
        raise NotFound(f"There is no task {params.task_id!r}.")
    return TaskResult(task=task)


async def next_in_round(services: Services, session: ClientSession, params: TaskIdParams) -> TaskNextResult:
    return TaskNextResult(task=await services.runner.next_in_round(params.task_id))


async def list_tasks(services: Services, session: ClientSession, params: TaskListParams) -> TaskListResult:
    limit, id_part = checked_limit(params.limit), checked_part("idPart", params.id_part)
    return await services.database.tasks.page(
        limit, params.conversation_id, active=params.active, cursor=params.cursor, id_part=id_part
    )


async def plans(services: Services, session: ClientSession, params: TaskIdParams) -> TaskPlansResult:
    await get(services, session, params)
    return TaskPlansResult(plans=await services.database.turns.plans(params.task_id))


async def record(services: Services, session: ClientSession, params: TaskIdParams) -> TaskRecordResult:
    values, windows = (
        services.settings.values,
        partial(window_of, models=services.models.router, settings=services.settings),
    )
    ground = RecordContext(
        services.instance.version, values.max_minutes, values.max_tokens, values.summarise_at, windows
    )
    task_record = await make_record(services.database, params.task_id, ground)
    redaction = ExportRedaction(services.keys.redactor, keep_secrets=False)
    lines = await asyncio.to_thread(lambda: tuple(map(redaction.json, task_record.lines())))
    return TaskRecordResult(lines=lines)


HANDLERS = (
    Route(TASK_START, start),
    Route(TASK_RETRY, retry),
    Route(TASK_STOP, stop),
    Route(TASK_PAUSE, pause),
    Route(TASK_RESUME, resume),
    Route(TASK_TRY_NOW, try_now),
    Route(TASK_SET_MODE, set_mode),
    Route(TASK_STEER, steer),
    Route(TASK_FOLLOW_UP, follow_up),
    Route(TASK_CHANGE_QUEUED, change_queued),
    Route(TASK_REMOVE_QUEUED, remove_queued),
    Route(TASK_GET, get),
    Route(TASK_NEXT, next_in_round),
    Route(TASK_LIST, list_tasks),
    Route(TASK_PLANS, plans),
    Route(TASK_RECORD, record),
)
