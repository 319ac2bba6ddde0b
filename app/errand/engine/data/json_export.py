"""Exports conversations without loss, all branches or one, as JSON lines."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.data.atomic_file import AtomicFile, check_target
from errand.engine.data.export_format import VERSION, EndLine, Header, PictureLine
from errand.engine.data.export_redaction import ExportRedaction
from errand.engine.data.pictures import read_copy
from errand.engine.storage.database import Database
from errand.engine.storage.records.storage_stats import names_pictures, pictures_of
from errand.engine.storage.records.transfer import Record
from errand.engine.storage.sql.statements import from_json, to_json
from errand.protocol.agents import Agent
from errand.protocol.conversations import Node
from errand.protocol.data import DataExportParams, DataExportResult
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.redaction import Redactor


class _TaskReference(msgspec.Struct):
    """Stored turns and executions use Python names, asks use wire names."""

    task_id: str = ""
    wire_task_id: str = msgspec.field(default="", name="taskId")


class BranchRecords:
    """Selects the records of one branch. `pictures` are the copies that its nodes name."""

    def __init__(self, branch: Sequence[Node]) -> None:
        self._node_ids = {node.id for node in branch}
        self._task_ids = {node.task_id for node in branch if node.task_id is not None}
        self._leaf_id = branch[-1].id
        self.pictures = frozenset(path for node in branch for path in pictures_of(node.blocks))

    def record_json(self, record: Record) -> str | None:
        """Return its JSON; None for a record of another branch.

        An agent elsewhere in the tree moves to the branch's end, but a sub-agent belongs to its own branch.
        """
        kind, body = record
        match kind:
            case "conversation":
                return body
            case "node":
                return body if from_json(body, Node).id in self._node_ids else None
            case "task":
                return body if from_json(body, Task).id in self._task_ids else None
            case "agent":
                agent = from_json(body, Agent)
                if agent.head_id in self._node_ids:
                    return body
                moved = msgspec.structs.replace(agent, head_id=self._leaf_id)
                return to_json(moved) if agent.called_by is None else None
            case _:
                of = from_json(body, _TaskReference)
                return body if (of.task_id or of.wire_task_id) in self._task_ids else None


async def export_json(
    database: Database, paths: Paths, redactor: Redactor, params: DataExportParams
) -> DataExportResult:
    """Write the export. Raises `NotFound` for an unknown conversation, and writes nothing then."""
    path = Path(params.path)
    await in_workspace(path.parent, lambda: check_target(path, paths, overwrite=params.overwrite))
    await check_leaf(database, params)
    conversations = nodes = 0
    redaction = ExportRedaction(redactor, keep_secrets=params.keep_secrets)
    async with AtomicFile(path, overwrite=params.overwrite) as file:
        header = Header(errand_export=VERSION, exported_at=datetime.now(UTC), home=str(paths.home))
        await file.write(to_json(header) + "\n")
        async for conversation_id in selected_ids(database, params.conversation_ids):
            count = await _write_one(database, paths, redaction, conversation_id, params.leaf_id, file)
            conversations, nodes = conversations + 1, nodes + count
        await file.write(to_json(EndLine(conversations=conversations, nodes=nodes)) + "\n")
    return DataExportResult(
        path=str(path), conversations=conversations, nodes=nodes, bytes=file.size, removed=redaction.removed
    )


async def selected_ids(database: Database, conversation_ids: tuple[str, ...] | None) -> AsyncIterator[str]:
    """Yield each id once; all conversations for None."""
    if conversation_ids is None:
        async for conversation_id in database.transfer.ids():
            yield conversation_id
        return
    for conversation_id in dict.fromkeys(conversation_ids):
        if await database.conversations.get(conversation_id) is None:
            raise NotFound(f"There is no conversation {conversation_id!r}.")
        yield conversation_id


async def check_leaf(database: Database, params: DataExportParams) -> None:
    """Check the branch. Raises `InvalidParams` or `NotFound` unless it belongs to the conversation."""
    if params.leaf_id is None:
        return
    if params.conversation_ids is None or len(set(params.conversation_ids)) != 1:
        raise InvalidParams("leaf_id: a branch is taken of a single conversation. Name that one alone.")
    leaf = await database.nodes.get(params.leaf_id)
    if leaf is None or leaf.conversation_id != params.conversation_ids[0]:
        raise NotFound(f"There is no node {params.leaf_id!r} in conversation {params.conversation_ids[0]!r}.")


async def _write_one(
    database: Database,
    paths: Paths,
    redaction: ExportRedaction,
    conversation_id: str,
    leaf_id: str | None,
    file: AtomicFile,
) -> int:
    """Write all nodes, or those of one branch, and return their number."""
    nodes, has_pictures = 0, False
    branch = None if leaf_id is None else BranchRecords(await database.nodes.path(leaf_id))
    async for record in database.transfer.records(conversation_id):
        kind, body = record if branch is None else (record[0], branch.record_json(record))
        if body is None:
            continue
        body = await asyncio.to_thread(redaction.json, body)
        await file.write(f'{{"type":"{kind}","record":{body}}}\n')
        nodes += kind == "node"
        has_pictures = has_pictures or names_pictures(body)
    pictures = await database.storage_stats.pictures(conversation_id) if has_pictures else frozenset[str]()
    if branch is not None:
        pictures &= branch.pictures
    for picture in sorted(pictures):
        data = await asyncio.to_thread(read_copy, Path(picture), paths.attachments)
        if data is not None:
            await file.write(to_json(PictureLine(path=picture, name=Path(picture).name, data=data)) + "\n")
    return nodes
