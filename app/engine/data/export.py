"""Writes conversations out, lossless: records go from the database to the file in pieces, as the JSON they are."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

from app.engine.data.branch_records import BranchRecords
from app.engine.data.lines import VERSION, EndLine, Header, PictureLine
from app.engine.data.new_file import NewFile, check_target
from app.engine.data.stored_picture import read_copy
from app.engine.errors import InvalidParams, NotFound
from app.engine.storage.database import Database
from app.engine.storage.encoding import to_json
from app.engine.storage.holdings import names_pictures
from app.engine.workspace_threads import in_workspace
from app.paths import Paths
from app.protocol.data import DataExportParams, DataExportResult


async def export_json(database: Database, paths: Paths, params: DataExportParams) -> DataExportResult:
    """`NotFound` for a conversation that is not there; nothing is written then."""
    path = Path(params.path)
    await in_workspace(path.parent, lambda: check_target(path, paths, overwrite=params.overwrite))
    await check_leaf(database, params)
    conversations = nodes = 0
    async with NewFile(path, overwrite=params.overwrite) as file:
        header = Header(errand_export=VERSION, exported_at=datetime.now(UTC), home=str(paths.home))
        await file.write(to_json(header) + "\n")
        async for conversation_id in chosen(database, params.conversation_ids):
            count = await _write_one(database, paths, conversation_id, params.leaf_id, file)
            conversations, nodes = conversations + 1, nodes + count
        await file.write(to_json(EndLine(conversations=conversations, nodes=nodes)) + "\n")
    return DataExportResult(path=str(path), conversations=conversations, nodes=nodes, bytes=file.size)


async def chosen(database: Database, conversation_ids: tuple[str, ...] | None) -> AsyncIterator[str]:
    """Each id once; all there are for None."""
    if conversation_ids is None:
        async for conversation_id in database.transfer.ids():
            yield conversation_id
        return
    for conversation_id in dict.fromkeys(conversation_ids):
        if await database.conversations.get(conversation_id) is None:
            raise NotFound(f"There is no conversation {conversation_id!r}.")
        yield conversation_id


async def check_leaf(database: Database, params: DataExportParams) -> None:
    """`InvalidParams` or `NotFound` unless a branch that is asked for is one of a single conversation."""
    if params.leaf_id is None:
        return
    if params.conversation_ids is None or len(set(params.conversation_ids)) != 1:
        raise InvalidParams("leaf_id: a branch is taken of a single conversation. Name that one alone.")
    leaf = await database.nodes.get(params.leaf_id)
    if leaf is None or leaf.conversation_id != params.conversation_ids[0]:
        raise NotFound(f"There is no node {params.leaf_id!r} in conversation {params.conversation_ids[0]!r}.")


async def _write_one(database: Database, paths: Paths, conversation_id: str, leaf_id: str | None, file: NewFile) -> int:
    """The number of its nodes that were written: all, or those of one branch."""
    nodes, has_pictures = 0, False
    branch = None if leaf_id is None else BranchRecords(await database.nodes.path(leaf_id))
    async for record in database.transfer.records(conversation_id):
        kind, body = record if branch is None else (record[0], branch.fitted(record))
        if body is None:
            continue
        await file.write(f'{{"type":"{kind}","record":{body}}}\n')
        nodes += kind == "node"
        has_pictures = has_pictures or names_pictures(body)
    pictures = await database.holdings.pictures(conversation_id) if has_pictures else frozenset[str]()
    if branch is not None:
        pictures &= branch.pictures
    for picture in sorted(pictures):
        data = await asyncio.to_thread(read_copy, Path(picture), paths.attachments)
        if data is not None:
            await file.write(to_json(PictureLine(path=picture, name=Path(picture).name, data=data)) + "\n")
    return nodes
