"""The shape of a conversation: forks, newest leaf, outline."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import bindparam, case, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import from_json, is_one_of
from errand.engine.storage.sql.tables import nodes
from errand.protocol.base import Timestamp
from errand.protocol.conversations import ConversationFindNodesResult, Fork, FoundNode, Node, NodeStatus, Role, TreeNode
from errand.protocol.tasks.task import Task
from errand.text.redaction import short_line

_MAX_TEXT_LENGTH = 120
# Longer than the text shown, since whitespace is collapsed.
_MAX_READ_LENGTH = 180
# Number of bodies in memory at a time.
_BATCH = 200

_LINKS = select(nodes.c.parent_id, nodes.c.id).order_by(nodes.c.number)
# The branches of sub-agents begin with an order from the engine: they are no other form of the first message.
_ROOTS = _LINKS.where(
    nodes.c.conversation_id == bindparam("conversation_id"),
    nodes.c.parent_id.is_(None),
    nodes.c.body.not_like('%"author":"engine"%'),
)

_below = select(nodes.c.id, nodes.c.number).where(nodes.c.id == bindparam("id")).cte("below", recursive=True)
_below = _below.union_all(select(nodes.c.id, nodes.c.number).join_from(_below, nodes, nodes.c.parent_id == _below.c.id))
_NEWEST_BELOW = select(_below.c.id).order_by(_below.c.number.desc()).limit(1)

# Tool results are long and not shown: their bodies are not loaded.
_IS_WRITTEN = nodes.c.role.in_(("user", "assistant"))
_WRITTEN_BODY = case((_IS_WRITTEN, nodes.c.body), else_=None).label("body")
_FOUND = select(nodes.c.id, nodes.c.conversation_id, nodes.c.role, nodes.c.created_at, _WRITTEN_BODY).order_by(
    nodes.c.number.desc()
)
_PAGE = (
    select(nodes.c.number, nodes.c.id, nodes.c.parent_id, _WRITTEN_BODY)
    .where(nodes.c.conversation_id == bindparam("conversation_id"), nodes.c.number > bindparam("after"))
    .order_by(nodes.c.number)
    .limit(_BATCH)
)


class _Block(msgspec.Struct, rename="camel"):
    type: str
    text: str = ""
    tool: str = ""
    task_from: str = ""


class _NodeOutline(msgspec.Struct, rename="camel"):
    """The fields of a stored node that the outline shows: decoding all takes twice as long."""

    role: Role
    author: str
    status: NodeStatus
    created_at: Timestamp
    blocks: list[_Block]
    task_id: str | None = None
    turn: int = 0
    error: str | None = None

    @property
    def task_from(self) -> str:
        """The name of the agent that gave a sub-agent its task; empty for other messages."""
        return self.blocks[0].task_from if self.blocks else ""


@dataclass(frozen=True, slots=True)
class Outline:
    """All nodes written by users and agents, oldest first; the parent of each is its nearest such ancestor.

    The first message of a sub-agent, which begins a branch, has the reply that called the sub-agent as its parent.
    `nearest` maps every node of the conversation to itself or, if it is left out, to its nearest shown ancestor.
    """

    nodes: tuple[TreeNode, ...]
    nearest: dict[str, str | None]


class TreeStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def forks(self, page: Sequence[Node]) -> tuple[Fork, ...]:
        """Return the forks at a page's nodes with siblings, and after its last node.

        The cost depends only on the page.
        """
        if not page:
            return ()
        last = page[-1].id
        parents = [node.parent_id for node in page if node.parent_id is not None]
        links = [*await self._reader.rows(_LINKS.where(is_one_of(nodes.c.parent_id, [*parents, last])))]
        if page[0].parent_id is None and page[0].author != "engine":
            links += await self._reader.rows(_ROOTS, {"conversation_id": page[0].conversation_id})
        children: dict[str | None, list[str]] = {}
        for link in links:
            children.setdefault(link.parent_id, []).append(link.id)
        parent_ids = (*(node.parent_id for node in page), last)
        return tuple(
            Fork(parent_id=parent_id, child_ids=tuple(children[parent_id]))
            for parent_id in parent_ids
            if parent_id in children and (len(children[parent_id]) > 1 or parent_id == last)
        )

    async def newest_leaf(self, node_id: str) -> str:
        """Return the newest node below a node; the node itself if it has no children."""
        rows = await self._reader.rows(_NEWEST_BELOW, {"id": node_id})
        return rows[0].id if rows else node_id

    async def find(self, id_part: str, conversation_id: str | None, limit: int) -> ConversationFindNodesResult:
        """Nodes with this part in their id, newest first."""
        query = _FOUND.where(nodes.c.id.contains(id_part, autoescape=True)).limit(limit + 1)
        if conversation_id is not None:
            query = query.where(nodes.c.conversation_id == conversation_id)
        rows = await self._reader.rows(query)
        found_nodes = await asyncio.to_thread(lambda: tuple(_found(row, self._reader.redact) for row in rows[:limit]))
        return ConversationFindNodesResult(nodes=found_nodes, has_more=len(rows) > limit)

    async def outline(self, conversation_id: str, tasks: Iterable[Task] = ()) -> Outline:
        """`tasks` are those of the conversation; without them nothing is known of calls of sub-agents."""
        drawn, after = _OutlineBuilder(tasks, self._reader.redact), 0
        while True:
            rows = await self._reader.rows(_PAGE, {"conversation_id": conversation_id, "after": after})
            await asyncio.to_thread(drawn.add, rows)
            if len(rows) < _BATCH:
                return Outline(tuple(drawn.written), drawn.nearest)
            after = rows[-1].number


class _OutlineBuilder:
    """Builds an outline from batches of rows."""

    def __init__(self, tasks: Iterable[Task], redact: Callable[[str], str]) -> None:
        self._redact = redact
        self.nearest: dict[str, str | None] = {}
        self.written: list[TreeNode] = []
        self._calls = {
            task.id: (task.origin.parent_id, task.origin.call_turn)
            for task in tasks
            if task.origin.parent_id is not None
        }
        self._replies: dict[tuple[str | None, int], str] = {}

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        for _, node_id, parent_id, body in rows:
            above = self.nearest.get(parent_id)
            sketch = from_json(body, _NodeOutline) if body is not None else None
            if sketch is None or (sketch.author == "engine" and not sketch.task_from):
                self.nearest[node_id] = above
                continue
            self.nearest[node_id] = node_id
            if sketch.role == "assistant":
                self._replies[sketch.task_id, sketch.turn] = node_id
            elif sketch.task_from:
                above = self._replies.get(self._calls.get(sketch.task_id or "", (None, 0)))
            self.written.append(
                TreeNode(
                    id=node_id,
                    parent_id=above,
                    role=sketch.role,
                    status=sketch.status,
                    created_at=sketch.created_at,
                    text=_beginning(sketch.blocks, self._redact) or sketch.error or "",
                    task_id=sketch.task_id,
                    task_from=sketch.task_from,
                )
            )


def _found(row: Sequence[Any], redact: Callable[[str], str]) -> FoundNode:
    node_id, conversation_id, role, created_at, body = row
    text = first_words(body, redact) if body is not None else ""
    at = datetime.fromisoformat(created_at)
    return FoundNode(id=node_id, conversation_id=conversation_id, role=role, created_at=at, text=text)


def first_words(body: str, redact: Callable[[str], str]) -> str:
    """Return the beginning of a stored node in one line: its first text, else its tool calls or results.

    Keys are redacted.
    """
    blocks = from_json(body, _NodeOutline).blocks
    as_text = (msgspec.structs.replace(block, type="text") if block.type == "toolResult" else block for block in blocks)
    return _beginning(as_text, redact)


def _beginning(blocks: Iterable[_Block], redact: Callable[[str], str]) -> str:
    """Return the first text, else the names of the called tools."""
    calls: list[str] = []
    for block in blocks:
        if block.type == "toolCall":
            calls.append(block.tool)
        if block.type == "text" and (text := block.text.lstrip()):
            return short_line(text, _MAX_TEXT_LENGTH, redact, _MAX_READ_LENGTH)
    return ", ".join(calls)
