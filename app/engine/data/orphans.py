"""Conversations that no agent takes part in any more, and how much room each takes."""

import asyncio

from app.engine.data.files import output_folders, size_of
from app.engine.storage.database import Database
from app.paths import Paths
from app.protocol.conversations import Conversation
from app.protocol.data import Orphan, OrphansResult


async def orphaned(database: Database, paths: Paths, limit: int) -> OrphansResult:
    """The `limit` largest ones, and the count and size of all."""
    found = [await _weighed(database, paths, one) for one in await database.holdings.orphans()]
    found.sort(key=lambda orphan: orphan.bytes, reverse=True)
    return OrphansResult(orphans=tuple(found[:limit]), count=len(found), bytes=sum(one.bytes for one in found))


async def _weighed(database: Database, paths: Paths, conversation: Conversation) -> Orphan:
    weight = await database.holdings.weigh(conversation.id)
    folders = output_folders(paths, weight.task_ids)
    size = await asyncio.to_thread(lambda: sum(size_of(folder)[0] for folder in folders)) if folders else 0
    return Orphan(conversation=conversation, nodes=weight.nodes, bytes=weight.bytes + size)
