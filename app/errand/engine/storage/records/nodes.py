"""Nodes: the trees of all conversations, read branch by branch."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sqlalchemy import ColumnElement, bindparam, func, literal, select

from errand.engine.core.errors import StorageError
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, from_json, is_one_of, to_json, to_text, upsert
from errand.engine.storage.sql.tables import nodes
from errand.protocol.conversations import Node

_logger = logging.getLogger(__name__)

# Batch size for reading a path: a batch blocks the event loop for a few milliseconds.
_BATCH = 500

# Limits for `recent`: few models read more.
_MAX_RECENT_NODES = 5_000
_MAX_BRANCH_LENGTH = 10_000_000
_MAX_MESSAGES_LENGTH = 2_000_000
# Limit of a page, which a client receives in one message.
_MAX_PAGE_LENGTH = 8_000_000
# Characters of bodies decoded at once.
_MAX_BATCH_LENGTH = 256 * 1024
_ENDLESS = 1_000_000_000

# The tree's structure never changes: an existing node only gets its final content.
_SAVE = upsert(nodes, ["id"], ["status", "body"])
_ONE = select(nodes.c.body).where(nodes.c.id == bindparam("id"))
_STREAMING = select(nodes.c.body).where(nodes.c.status == literal("streaming", literal_execute=True))

_start = select(nodes.c.id, nodes.c.parent_id, literal(1).label("depth")).where(nodes.c.id == bindparam("leaf_id"))
_walk = _start.cte("walk", recursive=True)
_walk = _walk.union_all(
    select(nodes.c.id, nodes.c.parent_id, _walk.c.depth + 1)
    .join_from(_walk, nodes, nodes.c.id == _walk.c.parent_id)
    .where(_walk.c.depth < bindparam("limit"))
)
_BRANCH = select(nodes.c.body).join_from(_walk, nodes, nodes.c.id == _walk.c.id).order_by(_walk.c.depth.desc())
_OF_ENGINE = _BRANCH.where(nodes.c.role == literal("system", literal_execute=True))
_SIZES = (
    select(nodes.c.id, func.length(nodes.c.body).label("size"))
    .join_from(_walk, nodes, nodes.c.id == _walk.c.id)
    .order_by(_walk.c.depth)
)
_USER_MESSAGES = (
    select(nodes.c.id, func.length(nodes.c.body).label("size"))
    .join_from(_walk, nodes, nodes.c.id == _walk.c.id)
    .where(nodes.c.role == literal("user", literal_execute=True))
    .order_by(_walk.c.depth)
)
_LINKS = (
    select(nodes.c.id, nodes.c.parent_id)
    .where(nodes.c.conversation_id == bindparam("conversation_id"))
    .order_by(nodes.c.number)
)
_NEWEST = (
    select(nodes.c.id)
    .where(nodes.c.conversation_id == bindparam("conversation_id"))
    .order_by(nodes.c.number.desc())
    .limit(1)
)
_PARENT = select(nodes.c.parent_id).where(nodes.c.id == bindparam("id"))
_SIZES_AFTER = (
    select(nodes.c.number, func.length(nodes.c.body).label("size"))
    .where(nodes.c.number > bindparam("number"))
    .order_by(nodes.c.number)
    .limit(bindparam("limit"))
)
_UP_TO = (
    select(nodes.c.number, nodes.c.id)
    .where(nodes.c.number <= bindparam("number"))
    .order_by(nodes.c.number.desc())
    .limit(1)
)
_COUNT_AFTER = select(func.count().label("total")).where(nodes.c.number > bindparam("number"))


def save(node: Node) -> Write:
    return Write(
        _SAVE,
        {
            "id": node.id,
            "conversation_id": node.conversation_id,
            "parent_id": node.parent_id,
            "role": node.role,
            "status": node.status,
            "created_at": to_text(node.created_at),
            "body": to_json(node),
        },
    )


@dataclass(frozen=True, slots=True)
class NumberedNode:
    """Numbers grow in the order of first storage. Those of deleted nodes may be given again."""

    number: int
    node: Node


class NodeStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, node_id: str) -> Node | None:
        return await self._reader.struct(_ONE, Node, {"id": node_id})

    async def branch(
        self, leaf_id: str, limit: int = 50, before_id: str | None = None
    ) -> tuple[tuple[Node, ...], bool]:
        """One page of a branch, oldest first, and whether older nodes exist.

        It ends with `leaf_id`, or with the parent of `before_id` to continue above a page. The cost depends on the
        page, not on the branch; a page of large nodes has fewer. Empty if the node does not exist.
        """
        last = leaf_id if before_id is None else await self._parent(before_id)
        if last is None:
            return (), False
        sizes = await self._reader.rows(_SIZES, {"leaf_id": last, "limit": limit + 1})
        sums = accumulate(row.size for row in sizes[:limit])
        count = max(1, sum(size <= _MAX_PAGE_LENGTH for size in sums))
        branch = await self._reader.structs(_BRANCH, Node, {"leaf_id": last, "limit": count})
        return branch, len(sizes) > count

    async def path(self, leaf_id: str) -> tuple[Node, ...]:
        """Return the whole branch from the root to `leaf_id`, which forms a model's context."""
        piece, has_more = await self.branch(leaf_id, _BATCH)
        pieces = [piece]
        while has_more:
            piece, has_more = await self.branch(leaf_id, _BATCH, piece[0].id)
            pieces.append(piece)
        return tuple(node for piece in reversed(pieces) for node in piece)

    async def recent(self, leaf_id: str) -> tuple[Node, ...]:
        """Return the end of the branch to `leaf_id`, as much as a model may read; the size does not depend on the
        branch.
        """
        rows = await self._reader.rows(_SIZES, {"leaf_id": leaf_id, "limit": _MAX_RECENT_NODES})
        groups: list[list[str]] = []
        size = total = 0
        for row in rows:
            total += row.size
            if total > _MAX_BRANCH_LENGTH and groups:
                break
            if not groups or size + row.size > _MAX_BATCH_LENGTH or len(groups[-1]) >= _BATCH:
                groups.append([])
                size = 0
            groups[-1].append(row.id)
            size += row.size
        parts = [await self.several(group) for group in groups]
        return tuple(node for group in reversed(parts) for node in reversed(group))

    async def recent_of_engine(self, leaf_id: str) -> tuple[Node, ...]:
        """Notices, summaries and what was recalled, in the part of the branch that a model may read."""
        return await self._reader.structs(_OF_ENGINE, Node, {"leaf_id": leaf_id, "limit": _MAX_RECENT_NODES})

    async def on_path(self, leaf_id: str, node_ids: Collection[str]) -> tuple[Node, ...]:
        """Return those of the given nodes that are on the branch to `leaf_id`, in branch order."""
        if not node_ids:
            return ()
        chosen = _BRANCH.where(is_one_of(nodes.c.id, node_ids))
        return await self._reader.structs(chosen, Node, {"leaf_id": leaf_id, "limit": _ENDLESS})

    async def user_messages(self, leaf_id: str, limit: int) -> tuple[str, ...]:
        """Return the ids of the first message of a user on the branch to `leaf_id`, and of the newest, up to
        `limit`.
        """
        rows = await self._reader.rows(_USER_MESSAGES, {"leaf_id": leaf_id, "limit": _ENDLESS})
        sums = accumulate(row.size for row in rows[:limit])
        count = max(1, sum(size <= _MAX_MESSAGES_LENGTH for size in sums))
        return tuple(dict.fromkeys(row.id for row in (*rows[:count], *rows[-1:])))

    async def links(self, conversation_id: str) -> tuple[tuple[str, str | None], ...]:
        """Id and parent id of all nodes of a conversation, in the order of writing."""
        rows = await self._reader.rows(_LINKS, {"conversation_id": conversation_id})
        return tuple((row.id, row.parent_id) for row in rows)

    async def newest(self, conversation_id: str) -> str | None:
        """Return the id of the newest node in a conversation."""
        rows = await self._reader.rows(_NEWEST, {"conversation_id": conversation_id})
        return rows[0].id if rows else None

    async def several(self, node_ids: Sequence[str]) -> tuple[Node, ...]:
        """Up to some hundred nodes, in the order of the given ids; missing ones are left out."""
        unordered = await self._reader.structs(select(nodes.c.body).where(is_one_of(nodes.c.id, node_ids)), Node)
        by_id = {node.id: node for node in unordered}
        return tuple(by_id[node_id] for node_id in node_ids if node_id in by_id)

    async def streaming(self) -> tuple[Node, ...]:
        """Unfinished nodes: after a crash these are cut."""
        return await self._reader.structs(_STREAMING, Node)

    async def after(self, number: int, limit: int) -> tuple[int, tuple[NumberedNode, ...], bool]:
        """Return the next nodes of all conversations in order of their numbers; fewer if they are large.

        With the number up to which they were read, since nodes that cannot be read are passed over, and whether there
        may be more.
        """
        sizes = await self._reader.rows(_SIZES_AFTER, {"number": number, "limit": limit})
        sums = accumulate(row.size for row in sizes)
        count = max(1, sum(size <= _MAX_BATCH_LENGTH for size in sums))
        numbers = [row.number for row in sizes[:count]]
        has_more = count < len(sizes) or len(sizes) == limit
        return max(numbers, default=number), await self._numbered(is_one_of(nodes.c.number, numbers)), has_more

    async def ids_up_to(self, number: int, node_ids: Collection[str]) -> list[str]:
        """Return those of these nodes (some hundreds at most) with a number up to this one, in order of numbers."""
        query = (
            select(nodes.c.id).where(is_one_of(nodes.c.id, node_ids), nodes.c.number <= number).order_by(nodes.c.number)
        )
        return [row.id for row in await self._reader.rows(query)] if node_ids else []

    async def numbered(self, node_ids: Collection[str]) -> tuple[NumberedNode, ...]:
        """These nodes, in order of their numbers. Unreadable ones are left out."""
        return await self._numbered(is_one_of(nodes.c.id, node_ids)) if node_ids else ()

    async def first_numbers(self, conversation_ids: Collection[str]) -> list[int]:
        """Return the lowest number of a node of each of these conversations (some hundreds at most) that has nodes."""
        first = func.min(nodes.c.number).label("first")
        of_these = is_one_of(nodes.c.conversation_id, conversation_ids)
        query = select(first).where(of_these).group_by(nodes.c.conversation_id)
        return [row.first for row in await self._reader.rows(query)] if conversation_ids else []

    async def newest_up_to(self, number: int) -> tuple[int, str] | None:
        """Return the number and id of the node with this number, or of the one before it."""
        rows = await self._reader.rows(_UP_TO, {"number": number})
        return (rows[0].number, rows[0].id) if rows else None

    async def count_after(self, number: int) -> int:
        (row,) = await self._reader.rows(_COUNT_AFTER, {"number": number})
        return int(row.total)

    async def _numbered(self, wanted: ColumnElement[bool]) -> tuple[NumberedNode, ...]:
        chosen = select(nodes.c.number, nodes.c.body).where(wanted).order_by(nodes.c.number)
        numbered: list[NumberedNode] = []
        for row in await self._reader.rows(chosen):
            try:
                numbered.append(NumberedNode(row.number, from_json(row.body, Node)))
            except StorageError as error:
                _logger.warning("node number %d is passed over: %s", row.number, error)
        return tuple(numbered)

    async def _parent(self, node_id: str) -> str | None:
        rows = await self._reader.rows(_PARENT, {"id": node_id})
        return rows[0].parent_id if rows else None
