"""Handlers of changed files."""

from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.changes import (
    CHANGE_DIFF,
    CHANGE_LIST,
    CHANGE_REDO,
    CHANGE_UNDO,
    ChangeDiffParams,
    ChangeDiffResult,
    ChangeListParams,
    ChangeListResult,
    ChangeUndoParams,
    ChangeUndoResult,
)


async def list_changes(services: Services, session: ClientSession, params: ChangeListParams) -> ChangeListResult:
    return await services.checkpoints.changes(params.task_id, params.conversation_id)


async def diff(services: Services, session: ClientSession, params: ChangeDiffParams) -> ChangeDiffResult:
    return await services.checkpoints.diff(params)


async def undo(services: Services, session: ClientSession, params: ChangeUndoParams) -> ChangeUndoResult:
    return await services.checkpoints.undo(params, session.client_name)


async def redo(services: Services, session: ClientSession, params: ChangeUndoParams) -> ChangeUndoResult:
    return await services.checkpoints.redo(params, session.client_name)


HANDLERS = (
    Route(CHANGE_LIST, list_changes),
    Route(CHANGE_DIFF, diff),
    Route(CHANGE_UNDO, undo),
    Route(CHANGE_REDO, redo),
)
