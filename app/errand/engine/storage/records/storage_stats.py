"""Sizes and counts of conversations, and the files they reference."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, func, select
from sqlalchemy.sql.expression import Executable

from errand.engine.storage.records.tasks import TASK_BODY
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import from_json, is_one_of, to_text
from errand.engine.storage.sql.tables import agents, conversations, nodes, tasks, tool_executions
from errand.protocol.blocks import Block, ImageBlock, ToolResultBlock
from errand.protocol.conversations import Conversation, Node
from errand.protocol.tasks.task import Task

_BATCH = 50  # bodies, each possibly megabytes long
_OLD = (conversations.c.archived.is_(True), conversations.c.updated_at < bindparam("before"))
_OLD_IDS = select(conversations.c.id).where(*_OLD)
_COUNTS = select(conversations.c.archived, func.count().label("amount")).group_by(conversations.c.archived)
_NODES_OF_OLD = select(func.count().label("amount"), func.sum(func.length(nodes.c.body)).label("size")).where(
    nodes.c.conversation_id.in_(_OLD_IDS)
)
_TASKS_OF_OLD = select(tasks.c.id).where(tasks.c.conversation_id.in_(_OLD_IDS))
_EXECUTIONS_OF_OLD = select(func.sum(func.length(tool_executions.c.body)).label("size")).where(
    tool_executions.c.task_id.in_(_TASKS_OF_OLD)
)
_HAS_AGENT = select(agents.c.id).where(agents.c.conversation_id == conversations.c.id).exists()
_HAS_ACTIVE_TASK = (
    select(tasks.c.id).where(tasks.c.conversation_id == conversations.c.id, tasks.c.ended_at.is_(None)).exists()
)
_ORPHANS = select(conversations.c.body).where(~_HAS_AGENT, ~_HAS_ACTIVE_TASK)
_SIZE = select(func.count().label("amount"), func.sum(func.length(nodes.c.body)).label("size")).where(
    nodes.c.conversation_id == bindparam("conversation_id")
)
_COUNT_NODES = select(func.count().label("amount")).where(nodes.c.conversation_id == bindparam("conversation_id"))
_TASK_IDS = select(tasks.c.id).where(tasks.c.conversation_id == bindparam("conversation_id"))
# Quotes in users' texts are escaped in JSON: only real images match these.
_IMAGE, _ATTACHED = '"type":"image"', '"attachments":["'
_PICTURES = (
    select(nodes.c.number, nodes.c.body)
    .where(nodes.c.number > bindparam("after"), nodes.c.body.like(f"%{_IMAGE}%"))
    .order_by(nodes.c.number)
    .limit(_BATCH)
)
_PICTURES_OF = _PICTURES.where(nodes.c.conversation_id == bindparam("conversation_id"))
_QUEUES = select(TASK_BODY).where(tasks.c.ended_at.is_(None), tasks.c.body.like(f"%{_ATTACHED}%"))
_QUEUES_OF = _QUEUES.where(tasks.c.conversation_id == bindparam("conversation_id"))


@dataclass(frozen=True, slots=True)
class StorageSize:
    """`task_ids` name the folders of long output; `bytes` covers the records only."""

    conversations: int
    nodes: int
    bytes: int
    task_ids: tuple[str, ...]


class StorageStatsStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def counts(self) -> tuple[int, int]:
        """Return the number of all conversations, and of archived ones."""
        rows = await self._reader.rows(_COUNTS)
        counted: dict[bool, int] = {bool(row.archived): row.amount for row in rows}
        return sum(counted.values()), counted.get(True, 0)

    async def archived_before(self, moment: datetime) -> tuple[str, ...]:
        """Ids of archived conversations that have not changed since."""
        return tuple(row.id for row in await self._reader.rows(_OLD_IDS, {"before": to_text(moment)}))

    async def size_before(self, moment: datetime) -> StorageSize:
        """Return the total size of all conversations in `archived_before`."""
        before = {"before": to_text(moment)}
        (of_nodes,) = await self._reader.rows(_NODES_OF_OLD, before)
        (of_executions,) = await self._reader.rows(_EXECUTIONS_OF_OLD, before)
        return StorageSize(
            conversations=len(await self._reader.rows(_OLD_IDS, before)),
            nodes=of_nodes.amount,
            bytes=(of_nodes.size or 0) + (of_executions.size or 0),
            task_ids=tuple(row.id for row in await self._reader.rows(_TASKS_OF_OLD, before)),
        )

    async def orphans(self) -> tuple[Conversation, ...]:
        """Conversations without agents."""
        return await self._reader.structs(_ORPHANS, Conversation)

    async def sizes(self, conversation_id: str) -> StorageSize:
        """Return the size of one conversation."""
        of = {"conversation_id": conversation_id}
        (of_nodes,) = await self._reader.rows(_SIZE, of)
        return StorageSize(
            conversations=1,
            nodes=of_nodes.amount,
            bytes=of_nodes.size or 0,
            task_ids=await self.task_ids(conversation_id),
        )

    async def count_nodes(self, conversation_id: str) -> int:
        (row,) = await self._reader.rows(_COUNT_NODES, {"conversation_id": conversation_id})
        return int(row.amount)

    async def task_ids(self, conversation_id: str) -> tuple[str, ...]:
        rows = await self._reader.rows(_TASK_IDS, {"conversation_id": conversation_id})
        return tuple(row.id for row in rows)

    async def known_tasks(self, task_ids: Sequence[str]) -> frozenset[str]:
        """Return the existing ones among up to some hundred ids."""
        rows = await self._reader.rows(select(tasks.c.id).where(is_one_of(tasks.c.id, task_ids)))
        return frozenset(row.id for row in rows)

    async def pictures(self, conversation_id: str | None = None) -> frozenset[str]:
        """Paths of the images in nodes and queued messages: of one conversation, or of all."""
        of = {} if conversation_id is None else {"conversation_id": conversation_id}
        pictures: set[str] = set()
        async for body in self._batches(_PICTURES if conversation_id is None else _PICTURES_OF, of):
            pictures.update(pictures_of(from_json(body, Node).blocks))
        queues = _QUEUES if conversation_id is None else _QUEUES_OF
        for task in await self._reader.structs(queues, Task, of):
            pictures.update(path for queued in task.queue for path in queued.attachments)
        return frozenset(pictures)

    async def _batches(self, statement: Executable, of: dict[str, str]) -> AsyncIterator[str]:
        after = 0
        while True:
            rows = await self._reader.rows(statement, {**of, "after": after})
            for row in rows:
                yield row.body
            if len(rows) < _BATCH:
                return
            after = rows[-1].number


def names_pictures(body: str) -> bool:
    """Return True if a stored node or task may reference images."""
    return _IMAGE in body or _ATTACHED in body


def pictures_of(blocks: Sequence[Block]) -> set[str]:
    """Paths of the images in a node's blocks."""
    images = [block for block in blocks if isinstance(block, ImageBlock)]
    images += [image for block in blocks if isinstance(block, ToolResultBlock) for image in block.images]
    return {image.path for image in images if image.path}
