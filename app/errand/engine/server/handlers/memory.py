"""Handlers of memory and of facts."""

import re
from pathlib import Path

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.memory.facts import FactDraft, checked_folder, checked_text
from errand.engine.server.route import Route, checked_limit
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.tools.plain_text import is_text
from errand.protocol.base import EmptyResult
from errand.protocol.memory import (
    MEMORY_FACTS,
    MEMORY_FOLDERS,
    MEMORY_FORGET,
    MEMORY_GET,
    MEMORY_GIVE,
    MEMORY_LIST,
    MEMORY_LOG,
    MEMORY_MODEL,
    MEMORY_PIN,
    MEMORY_PREVIEW_FORGET,
    MEMORY_PRUNE,
    MEMORY_REBUILD,
    MEMORY_SEARCH,
    MEMORY_SHARE,
    MEMORY_STATS,
    MEMORY_UNPIN,
    MEMORY_WARM_UP,
    MemoryFactsParams,
    MemoryFactsResult,
    MemoryFoldersParams,
    MemoryFoldersResult,
    MemoryForgetParams,
    MemoryForgetResult,
    MemoryGetParams,
    MemoryGetResult,
    MemoryGiveParams,
    MemoryListParams,
    MemoryListResult,
    MemoryLogParams,
    MemoryLogResult,
    MemoryModelParams,
    MemoryPinParams,
    MemoryPinResult,
    MemoryPreviewForgetParams,
    MemoryPreviewForgetResult,
    MemoryPruneParams,
    MemoryPruneResult,
    MemoryRebuildParams,
    MemorySearchParams,
    MemorySearchResult,
    MemoryShareParams,
    MemoryStatsParams,
    MemoryStatsResult,
    MemoryUnpinParams,
    MemoryWarmUpParams,
    SharedFolders,
)

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


async def search(services: Services, session: ClientSession, params: MemorySearchParams) -> MemorySearchResult:
    return await services.memory.reader.search(params, CancelSignal())


async def list_entries(services: Services, session: ClientSession, params: MemoryListParams) -> MemoryListResult:
    return await services.memory.reader.page(msgspec.structs.replace(params, limit=checked_limit(params.limit)))


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
    match params.action:
        case "download":
            services.memory.download_model()
        case "cancel":
            await services.memory.download.cancel()
        case "decline":
            services.memory.decline_model()
    return EmptyResult()


async def prune(services: Services, session: ClientSession, params: MemoryPruneParams) -> MemoryPruneResult:
    return await services.memory.prune(params, session.client_name)


async def log(services: Services, session: ClientSession, params: MemoryLogParams) -> MemoryLogResult:
    return await services.database.memory_log.page(checked_limit(params.limit), params.before_number)


async def preview_forget(
    services: Services, session: ClientSession, params: MemoryPreviewForgetParams
) -> MemoryPreviewForgetResult:
    return await services.forgetter.preview(params.node_ids)


async def forget(services: Services, session: ClientSession, params: MemoryForgetParams) -> MemoryForgetResult:
    return await services.forgetter.forget(params.node_ids, session.client_name)


async def list_facts(services: Services, session: ClientSession, params: MemoryFactsParams) -> MemoryFactsResult:
    return MemoryFactsResult(facts=await services.database.facts.all())


async def pin(services: Services, session: ClientSession, params: MemoryPinParams) -> MemoryPinResult:
    text = None if params.text is None else checked_text(params.text)
    folder = await in_workspace(Path(path), lambda: _real_folder(path)) if (path := params.folder) else None
    if params.id is not None:
        fact = await services.facts.change(params.id, session.client_name, text=text, scope=params.scope, folder=folder)
        return MemoryPinResult(fact=fact)
    if text is None:
        raise InvalidParams("text: a new fact needs one.")
    if params.new_id is None or not _ID.fullmatch(params.new_id):
        raise InvalidParams("newId: 1 to 100 letters, digits, `-` and `_`.")
    conversation_id = await _conversation(services, params.conversation_id, params.node_id)
    scope = params.scope or "always"
    draft = FactDraft(text, scope, checked_folder(scope, folder), conversation_id, params.node_id)
    return MemoryPinResult(fact=await services.facts.pin(draft, params.new_id, session.client_name))


async def unpin(services: Services, session: ClientSession, params: MemoryUnpinParams) -> EmptyResult:
    await services.facts.unpin(params.id, session.client_name)
    return EmptyResult()


async def list_folders(services: Services, session: ClientSession, params: MemoryFoldersParams) -> MemoryFoldersResult:
    values = services.settings.values
    pairs = (SharedFolders(first=pair.first, second=pair.second, shares=pair.shares) for pair in values.folder_pairs)
    return MemoryFoldersResult(mode=values.other_folders, pairs=tuple(pairs), not_given=values.not_given_again)


async def share(services: Services, session: ClientSession, params: MemoryShareParams) -> EmptyResult:
    services.memory.sharing.decide(params.folder, params.other, params.choice)
    return EmptyResult()


async def give(services: Services, session: ClientSession, params: MemoryGiveParams) -> EmptyResult:
    if not _ID.fullmatch(params.node_id):
        raise InvalidParams("nodeId: 1 to 100 letters, digits, `-` and `_`.")
    services.memory.set_given(params.node_id, again=params.again)
    return EmptyResult()


def _real_folder(given: str) -> str:
    """Return the real path of a folder. Blocking: call it in a thread."""
    folder = Path(given)
    try:
        is_folder = folder.is_absolute() and folder.is_dir()
        real = str(folder.resolve()) if is_folder else ""
    except OSError as error:
        raise InvalidParams(f"folder: {given[:500]!r} cannot be looked at: {error.strerror}.") from error
    if not is_folder:
        raise InvalidParams(f"folder: {given[:500]!r} is no folder. Name it by its absolute path.")
    if not is_text(real):
        raise InvalidParams(f"folder: {given!r} leads to a folder whose name is not UTF-8. Rename that folder.")
    return real


async def _conversation(services: Services, conversation_id: str, node_id: str) -> str:
    """Return the conversation where the fact was said. Raises `NotFound` for what is not there."""
    if node_id:
        node = await services.database.nodes.get(node_id)
        if node is None or conversation_id not in ("", node.conversation_id):
            raise NotFound(f"There is no entry {node_id!r} in that conversation.")
        return node.conversation_id
    if conversation_id and await services.database.conversations.get(conversation_id) is None:
        raise NotFound(f"There is no conversation {conversation_id!r}.")
    return conversation_id


HANDLERS = (
    Route(MEMORY_FOLDERS, list_folders),
    Route(MEMORY_SHARE, share),
    Route(MEMORY_GIVE, give),
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
    Route(MEMORY_FACTS, list_facts),
    Route(MEMORY_PIN, pin),
    Route(MEMORY_UNPIN, unpin),
)
