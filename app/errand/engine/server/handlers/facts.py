"""Handlers of facts."""

import re
from pathlib import Path

from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.memory.facts import FactDraft, checked_folder, checked_text
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.tools.plain_text import is_text
from errand.protocol.base import EmptyResult
from errand.protocol.facts import (
    MEMORY_FACTS,
    MEMORY_PIN,
    MEMORY_UNPIN,
    MemoryFactsParams,
    MemoryFactsResult,
    MemoryPinParams,
    MemoryPinResult,
    MemoryUnpinParams,
)

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


async def list_facts(services: Services, session: ClientSession, params: MemoryFactsParams) -> MemoryFactsResult:
    return MemoryFactsResult(facts=await services.facts.all())


async def pin(services: Services, session: ClientSession, params: MemoryPinParams) -> MemoryPinResult:
    text = None if params.text is None else checked_text(params.text)
    folder = await in_workspace(Path(given), lambda: _real_folder(given)) if (given := params.folder) else None
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


def _real_folder(given: str) -> str:
    """The real path of a folder. Blocking: call it in a thread."""
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
    """The conversation where the fact was said. Raises `NotFound` for what is not there."""
    if node_id:
        node = await services.database.nodes.get(node_id)
        if node is None or conversation_id not in ("", node.conversation_id):
            raise NotFound(f"There is no entry {node_id!r} in that conversation.")
        return node.conversation_id
    if conversation_id and await services.database.conversations.get(conversation_id) is None:
        raise NotFound(f"There is no conversation {conversation_id!r}.")
    return conversation_id


HANDLERS = (
    Route(MEMORY_FACTS, list_facts),
    Route(MEMORY_PIN, pin),
    Route(MEMORY_UNPIN, unpin),
)
