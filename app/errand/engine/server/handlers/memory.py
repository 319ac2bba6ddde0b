"""Handlers of memory."""

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.server.route import Route, page_size
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.base import EmptyResult
from errand.protocol.memory import (
    MEMORY_FORGET,
    MEMORY_GET,
    MEMORY_LIST,
    MEMORY_LOG,
    MEMORY_MODEL,
    MEMORY_PREVIEW_FORGET,
    MEMORY_PRUNE,
    MEMORY_REBUILD,
    MEMORY_SEARCH,
    MEMORY_STATS,
    MEMORY_WARM_UP,
    MemoryForgetParams,
    MemoryForgetResult,
    MemoryGetParams,
    MemoryGetResult,
    MemoryListParams,
    MemoryListResult,
    MemoryLogParams,
    MemoryLogResult,
    MemoryModelParams,
    MemoryPreviewForgetParams,
    MemoryPreviewForgetResult,
    MemoryPruneParams,
    MemoryPruneResult,
    MemoryRebuildParams,
    MemorySearchParams,
    MemorySearchResult,
    MemoryStatsParams,
    MemoryStatsResult,
    MemoryWarmUpParams,
)


async def search(services: Services, session: ClientSession, params: MemorySearchParams) -> MemorySearchResult:
    return await services.memory.reader.search(params, CancelSignal())


async def list_entries(services: Services, session: ClientSession, params: MemoryListParams) -> MemoryListResult:
    return await services.memory.reader.page(msgspec.structs.replace(params, limit=page_size(params.limit)))


async def get(services: Services, session: ClientSession, params: MemoryGetParams) -> MemoryGetResult:
    return MemoryGetResult(item=await services.memory.reader.get(params.number))


async def warm_up(services: Services, session: ClientSession, params: MemoryWarmUpParams) -> EmptyResult:
    services.memory.warm_up()
    return EmptyResult()


async def stats(services: Services, session: ClientSession, params: MemoryStatsParams) -> MemoryStatsResult:
    return await services.memory.stats()


async def rebuild(services: Services, session: ClientSession, params: MemoryRebuildParams) -> EmptyResult:
    await services.memory.rebuild(session.client_name)
    return EmptyResult()


async def model(services: Services, session: ClientSession, params: MemoryModelParams) -> EmptyResult:
    if params.download:
        services.memory.download_model()
    else:
        await services.memory.download.cancel()
    return EmptyResult()


async def prune(services: Services, session: ClientSession, params: MemoryPruneParams) -> MemoryPruneResult:
    return MemoryPruneResult(removed=await services.memory.prune(params, session.client_name))


async def log(services: Services, session: ClientSession, params: MemoryLogParams) -> MemoryLogResult:
    return await services.database.memory_log.page(page_size(params.limit), params.before_number)


async def preview_forget(
    services: Services, session: ClientSession, params: MemoryPreviewForgetParams
) -> MemoryPreviewForgetResult:
    return await services.forgetter.preview(params.node_ids)


async def forget(services: Services, session: ClientSession, params: MemoryForgetParams) -> MemoryForgetResult:
    return await services.forgetter.forget(params.node_ids, session.client_name)


HANDLERS = (
    Route(MEMORY_SEARCH, search),
    Route(MEMORY_LIST, list_entries),
    Route(MEMORY_GET, get),
    Route(MEMORY_WARM_UP, warm_up),
    Route(MEMORY_STATS, stats),
    Route(MEMORY_REBUILD, rebuild),
    Route(MEMORY_MODEL, model),
    Route(MEMORY_PRUNE, prune),
    Route(MEMORY_LOG, log),
    Route(MEMORY_PREVIEW_FORGET, preview_forget),
    Route(MEMORY_FORGET, forget),
)
