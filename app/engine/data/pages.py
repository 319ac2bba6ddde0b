"""Writes conversations out as Markdown: one file for a single one, a folder of files for more."""

import asyncio
from pathlib import Path

from app.engine.data.export import chosen
from app.engine.data.markdown import file_name, page
from app.engine.data.new_file import NewFile, check_place
from app.engine.errors import Conflict, InvalidParams
from app.engine.storage.database import Database
from app.protocol.conversations import Conversation, Node
from app.protocol.data import DataExportParams, DataExportResult


async def export_markdown(database: Database, params: DataExportParams) -> DataExportResult:
    path = Path(params.path)
    is_single = params.conversation_ids is not None and len(set(params.conversation_ids)) == 1
    if is_single:
        await asyncio.to_thread(check_place, path, overwrite=params.overwrite)
    else:
        await asyncio.to_thread(_make_folder, path, overwrite=params.overwrite)
    conversations = nodes = size = 0
    async for conversation_id in chosen(database, params.conversation_ids):
        conversation = await database.conversations.get(conversation_id)
        if conversation is not None:
            count, written = await _write(database, conversation, path if is_single else path / file_name(conversation))
            conversations, nodes, size = conversations + 1, nodes + count, size + written
    return DataExportResult(path=str(path), conversations=conversations, nodes=nodes, bytes=size)


async def _write(database: Database, conversation: Conversation, path: Path) -> tuple[int, int]:
    """The number of messages and of bytes."""
    heads = [agent.head_id for agent in await database.agents.list(conversation.id) if agent.head_id]
    nodes: tuple[Node, ...] = await database.nodes.path(heads[-1]) if heads else ()
    others = await database.holdings.count_nodes(conversation.id) - len(nodes)
    async with NewFile(path) as file:
        for text in page(conversation, nodes, others=others):
            await file.write(text)
    return len(nodes), file.size


def _make_folder(path: Path, *, overwrite: bool) -> None:
    if not path.is_absolute():
        raise InvalidParams(f"path: {str(path)!r} must be an absolute path.")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        if any(path.iterdir()) and not overwrite:
            raise Conflict(f"The folder {path} is not empty. Choose another, or overwrite what is in it.")
    except OSError as error:
        raise InvalidParams(f"The folder {path} cannot be used: {error.strerror}. Choose another.") from error
