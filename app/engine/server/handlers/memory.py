"""Handlers of memory."""

from app.engine.server.route import Route, page_size
from app.engine.server.services import Services
from app.engine.server.session import ClientSession
from app.protocol.memory import MEMORY_LOG, MemoryLogParams, MemoryLogResult


async def log(services: Services, session: ClientSession, params: MemoryLogParams) -> MemoryLogResult:
    return await services.database.memory_log.page(page_size(params.limit), params.before_number)


HANDLERS = (Route(MEMORY_LOG, log),)
