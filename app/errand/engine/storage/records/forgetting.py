"""Rewrites the stored bodies of rows without a text that is forgotten.

A row in `forgets` lets the audit trigger of tool executions pass, and stays until everything is done: an interrupted
forgetting is completed at the next start. Nodes and other records that clients know are changed by events instead.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, Update, bindparam, func, or_, select

from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.journal import Journal
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.slices import in_slices
from errand.engine.storage.sql.statements import Write, from_json, to_json, upsert
from errand.engine.storage.sql.tables import (
    asks,
    commands,
    events,
    forgets,
    nodes,
    tool_executions,
    turns,
)
from errand.protocol.asks import Ask
from errand.protocol.conversations import Node, Role
from errand.protocol.tasks.task import AgentPlan

# Rows per step, which takes about a millisecond.
_BATCH = 20
# Rows read at once, and ids in one statement.
_READ = 500
# The kind of a node's first block and the name of its tool stand among these first characters of its body; what comes
# after them is not read from the disk.
_HEAD = 1_000

_BEGIN = upsert(forgets, ["conversation_id"], ["node_ids", "files", "actor"])
_DONE = forgets.delete().where(forgets.c.conversation_id == bindparam("of_conversation"))
_PLAN = (
    turns.update()
    .where(turns.c.task_id == bindparam("of_task"), turns.c.turn == bindparam("of_turn"))
    .values(plan=bindparam("new_plan"))
)
_RESULT = (
    commands.update()
    .where(commands.c.client_id == bindparam("of_client"), commands.c.command_id == bindparam("of_command"))
    .values(result=bindparam("new_result"))
)
_ASK = asks.update().where(asks.c.id == bindparam("of_ask")).values(body=bindparam("new_body"))
_head = func.substr(nodes.c.body, 1, _HEAD)
_QUOTING = (
    select(nodes.c.number, nodes.c.body)
    .where(
        nodes.c.number > bindparam("after"),
        or_(
            (nodes.c.role == "system") & _head.like('%"type":"recall"%'),
            (nodes.c.role == "tool_result") & _head.like('%"tool":"search\\_memory"%', escape="\\"),
        ),
    )
    .order_by(nodes.c.number)
    .limit(_BATCH)
)
_SUMMARIES = select(nodes.c.body).where(
    nodes.c.conversation_id == bindparam("conversation_id"),
    nodes.c.role == "system",
    _head.like('%"type":"summary"%'),
)
_ORDERS = select(nodes.c.body).where(
    nodes.c.conversation_id == bindparam("conversation_id"), nodes.c.parent_id.is_(None), nodes.c.role == "user"
)
_SHAPE = (
    select(nodes.c.id, nodes.c.parent_id, nodes.c.role)
    .where(nodes.c.conversation_id == bindparam("conversation_id"))
    .order_by(nodes.c.number)
)


@dataclass(frozen=True, slots=True)
class Forget:
    """The nodes of a conversation whose text is being removed, by whom, and the files that go with them."""

    conversation_id: str
    node_ids: tuple[str, ...]
    files: tuple[str, ...]
    by: str


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The stored result of a client's command."""

    client_id: str
    command_id: str
    method: str
    result: str


def begin(forget: Forget) -> Write:
    return Write(
        _BEGIN,
        {
            "conversation_id": forget.conversation_id,
            "node_ids": to_json(forget.node_ids),
            "files": to_json(forget.files),
            "actor": forget.by,
        },
    )


def done(conversation_id: str) -> Write:
    return Write(_DONE, {"of_conversation": conversation_id})


def save_plan(plan: AgentPlan) -> Write:
    return Write(_PLAN, {"of_task": plan.task_id, "of_turn": plan.turn, "new_plan": to_json(plan)})


def save_ask(ask: Ask) -> Write:
    """Also of an ask that is settled, unlike `asks.save`."""
    return Write(_ASK, {"of_ask": ask.id, "new_body": to_json(ask)})


def save_result(stored: StoredResult, result: str) -> Write:
    return Write(_RESULT, {"of_client": stored.client_id, "of_command": stored.command_id, "new_result": result})


async def rewrite_events(
    journal: Journal, conversation_ids: Collection[str], change: Callable[[str], str | None]
) -> None:
    """Replace the body of each event of these conversations by that which `change` returns, unless it is None."""
    for group in _groups(conversation_ids):
        await _rewrite(journal, events.c.sequence, events.c.body, events.c.conversation_id.in_(group), change)


async def rewrite_executions(journal: Journal, task_ids: Collection[str], change: Callable[[str], str | None]) -> None:
    """The same with the rows of tool executions. `begin` must be committed for their conversations."""
    for group in _groups(task_ids):
        where = tool_executions.c.task_id.in_(group)
        await _rewrite(journal, tool_executions.c.number, tool_executions.c.body, where, change)


async def _rewrite(
    journal: Journal,
    key: Column[int],
    body: Column[str],
    where: ColumnElement[bool],
    change: Callable[[str], str | None],
) -> None:
    page = select(key, body).where(where, key > bindparam("after")).order_by(key).limit(_BATCH)
    update: Update = key.table.update().where(key == bindparam("of_row")).values({body.name: bindparam("new_body")})
    after = 0

    async def step(connection: AsyncConnection) -> bool:
        nonlocal after
        rows = (await connection.execute(page, {"after": after})).all()
        for number, stored in rows:
            after = number
            changed = change(stored)
            if changed is not None:
                await connection.execute(update, {"of_row": number, "new_body": changed})
        return len(rows) == _BATCH

    await in_slices(journal, step)


def _groups(ids: Collection[str]) -> list[list[str]]:
    every = sorted(ids)
    return [every[at : at + _READ] for at in range(0, len(every), _READ)]


class NodeTree:
    """The position of each node of a conversation in its tree, by id."""

    def __init__(self, nodes: Mapping[str, tuple[str | None, Role]]) -> None:
        """`nodes` are the parent and the role of each."""
        self._nodes = nodes
        self._children: dict[str, list[str]] = {}
        for node_id, (parent_id, _) in nodes.items():
            if parent_id is not None:
                self._children.setdefault(parent_id, []).append(node_id)

    def below(self, node_ids: Collection[str]) -> set[str]:
        """These nodes and all below them."""
        below = set(node_ids)
        for node_id, (parent_id, _) in self._nodes.items():
            if parent_id in below:
                below.add(node_id)
        return below

    def results(self, reply_id: str) -> list[str]:
        """Results follow their reply, one after the other, with remarks of the engine between them."""
        result_ids: list[str] = []
        level = [reply_id]
        while level:
            below = (child for node_id in level for child in self._children.get(node_id, ()))
            level = [node_id for node_id in below if self._nodes[node_id][1] in ("tool_result", "system")]
            result_ids += [node_id for node_id in level if self._nodes[node_id][1] == "tool_result"]
        return result_ids

    def reply_above(self, result_id: str) -> str | None:
        node_id: str | None = result_id
        while node_id is not None and self._nodes[node_id][1] in ("tool_result", "system"):
            node_id = self._nodes[node_id][0]
        return node_id if node_id is not None and self._nodes[node_id][1] == "assistant" else None


class ForgetStore:
    """Finds where a text may stand."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def pending(self) -> tuple[Forget, ...]:
        rows = await self._reader.rows(select(forgets))
        return tuple(
            Forget(
                row.conversation_id,
                from_json(row.node_ids, tuple[str, ...]),
                from_json(row.files, tuple[str, ...]),
                row.actor,
            )
            for row in rows
        )

    async def nodes(self, node_ids: Sequence[str]) -> tuple[Node, ...]:
        """Any number of them; missing ones are left out."""
        read_nodes: list[Node] = []
        for group in _groups(frozenset(node_ids)):
            read_nodes += await self._reader.structs(select(nodes.c.body).where(nodes.c.id.in_(group)), Node)
        return tuple(read_nodes)

    async def tree(self, conversation_id: str) -> "NodeTree":
        """Return the shape of a conversation; a parent comes before its children."""
        rows = await self._reader.rows(_SHAPE, {"conversation_id": conversation_id})
        return NodeTree({row.id: (row.parent_id, row.role) for row in rows})

    async def summaries(self, conversation_id: str) -> tuple[Node, ...]:
        """Return the nodes with a summary of a branch."""
        return await self._reader.structs(_SUMMARIES, Node, {"conversation_id": conversation_id})

    async def orders(self, conversation_id: str) -> tuple[Node, ...]:
        """Return the first nodes of all branches, among them the tasks that were given to sub-agents."""
        return await self._reader.structs(_ORDERS, Node, {"conversation_id": conversation_id})

    async def quoting(self) -> AsyncIterator[Node]:
        """Yield all nodes that quote others: what an agent was given from memory, or found there."""
        after = 0
        while True:
            rows: Sequence[Row[Any]] = await self._reader.rows(_QUOTING, {"after": after})
            for row in rows:
                yield from_json(row.body, Node)
            if len(rows) < _BATCH:
                return
            after = rows[-1].number

    async def plans(self, task_ids: Collection[str]) -> tuple[AgentPlan, ...]:
        plans: list[AgentPlan] = []
        for group in _groups(task_ids):
            chosen = select(turns.c.plan).where(turns.c.task_id.in_(group), turns.c.plan.is_not(None))
            plans += await self._reader.structs(chosen, AgentPlan)
        return tuple(plans)

    async def asks(self, task_ids: Collection[str]) -> tuple[Ask, ...]:
        found_asks: list[Ask] = []
        for group in _groups(task_ids):
            found_asks += await self._reader.structs(select(asks.c.body).where(asks.c.task_id.in_(group)), Ask)
        return tuple(found_asks)

    async def results(self, record_ids: Collection[str]) -> tuple[StoredResult, ...]:
        """Return the results of client commands that name one of these conversations or facts."""
        if not record_ids:
            return ()
        names = or_(*(commands.c.result.contains(to_json(record_id), autoescape=True) for record_id in record_ids))
        rows = await self._reader.rows(select(commands).where(names))
        return tuple(StoredResult(row.client_id, row.command_id, row.method, row.result) for row in rows)
