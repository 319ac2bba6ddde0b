"""Handlers of memory."""

from app.engine.server.route import Route, page_size
from app.engine.server.services import Services
from app.engine.server.session import ClientSession
from app.protocol.memory import (
    MEMORY_FORGET,
    MEMORY_LOG,
    MEMORY_PREVIEW_FORGET,
    MemoryForgetParams,
    MemoryForgetResult,
    MemoryLogParams,
    MemoryLogResult,
    MemoryPreviewForgetParams,
    MemoryPreviewForgetResult,
)


async def log(services: Services, session: ClientSession, params: MemoryLogParams) -> MemoryLogResult:
    return await services.database.memory_log.page(page_size(params.limit), params.before_number)


async def preview_forget(
    services: Services, session: ClientSession, params: MemoryPreviewForgetParams
) -> MemoryPreviewForgetResult:
    return await services.forgetter.preview(params.node_ids)


async def forget(services: Services, session: ClientSession, params: MemoryForgetParams) -> MemoryForgetResult:
    return await services.forgetter.forget(params.node_ids, session.client_name)


HANDLERS = (Route(MEMORY_LOG, log), Route(MEMORY_PREVIEW_FORGET, preview_forget), Route(MEMORY_FORGET, forget))
