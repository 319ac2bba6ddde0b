"""Exports and imports all rows of one conversation, as the stored JSON."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

from sqlalchemy import Row, Table, Text, bindparam, select
from sqlalchemy.sql.expression import Executable

from errand.engine.storage.records import agents, asks, conversations, executions, nodes, tasks
from errand.engine.storage.records.executions import ExecutionEnd, ExecutionStart
from errand.engine.storage.records.turns import TurnRow, columns_of, turn_of
from errand.engine.storage.sql import tables
from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Value, Write, to_json
from errand.protocol.agents import Agent
from errand.protocol.asks import Ask
from errand.protocol.conversations import Conversation, Node
from errand.protocol.tasks.task import Task

RecordKind = Literal["conversation", "agent", "task", "turn", "started", "finished", "ask", "node"]
Record: TypeAlias = tuple[RecordKind, str]

# Short ids, and rows whose bodies may be megabytes long.
_IDS_AT_ONCE = 500
_BATCH = 50
# Number of rows per insert.
_ROWS_PER_INSERT = 10
_ID = bindparam("conversation_id", type_=Text())
_TASK_IDS = select(tables.tasks.c.id).where(tables.tasks.c.conversation_id == _ID)
_IDS = (
    select(tables.conversations.c.id)
    .where(tables.conversations.c.id > bindparam("after"))
    .order_by(tables.conversations.c.id)
    .limit(_IDS_AT_ONCE)
)
_CONVERSATION = select(tables.conversations.c.body).where(tables.conversations.c.id == _ID)
_AGENTS = select(tables.agents.c.body).where(tables.agents.c.conversation_id == _ID).order_by(tables.agents.c.id)
_TASKS = select(tasks.TASK_BODY).where(tables.tasks.c.conversation_id == _ID).order_by(tables.tasks.c.id)
_TURNS = (
    select(tables.turns)
    .where(tables.turns.c.task_id.in_(_TASK_IDS))
    .order_by(tables.turns.c.task_id, tables.turns.c.turn)
)
_ASKS = select(tables.asks.c.body).where(tables.asks.c.task_id.in_(_TASK_IDS)).order_by(tables.asks.c.id)
_EXECUTIONS = (
    select(tables.tool_executions.c.number, tables.tool_executions.c.phase, tables.tool_executions.c.body)
    .where(tables.tool_executions.c.task_id.in_(_TASK_IDS), tables.tool_executions.c.number > bindparam("after"))
    .order_by(tables.tool_executions.c.number)
    .limit(_BATCH)
)
_NODES = (
    select(tables.nodes.c.number, tables.nodes.c.body)
    .where(tables.nodes.c.conversation_id == _ID, tables.nodes.c.number > bindparam("after"))
    .order_by(tables.nodes.c.number)
    .limit(_BATCH)
)


@dataclass(slots=True)
class Bundle:
    """A conversation with all its records; a node comes after its parent."""

    conversation: Conversation
    agents: list[Agent] = field(default_factory=list[Agent])
    tasks: list[Task] = field(default_factory=list[Task])
    turns: list[TurnRow] = field(default_factory=list[TurnRow])
    executions: list[ExecutionStart | ExecutionEnd] = field(default_factory=list[ExecutionStart | ExecutionEnd])
    asks: list[Ask] = field(default_factory=list[Ask])
    nodes: list[Node] = field(default_factory=list[Node])


class TransferStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def ids(self) -> AsyncIterator[str]:
        """Yield the ids of all conversations, oldest first if the ids were generated here."""
        after = ""
        while True:
            rows = await self._reader.rows(_IDS, {"after": after})
            for row in rows:
                yield row.id
            if len(rows) < _IDS_AT_ONCE:
                return
            after = rows[-1].id

    async def records(self, conversation_id: str) -> AsyncIterator[Record]:
        """Yield the records as JSON. Nodes come last, so that all referenced nodes are included even if a task is
        running.

        Empty if the conversation does not exist.
        """
        of = {"conversation_id": conversation_id}
        for row in await self._reader.rows(_CONVERSATION, of):
            yield "conversation", row.body
        for row in await self._reader.rows(_AGENTS, of):
            yield "agent", row.body
        tasks = await self._reader.rows(_TASKS, of)
        for row in tasks:
            yield "task", row.body
        if tasks:
            async for record in self._of_tasks(conversation_id):
                yield record
        async for row in self._batches(_NODES, of):
            yield "node", row.body

    async def _of_tasks(self, conversation_id: str) -> AsyncIterator[Record]:
        of = {"conversation_id": conversation_id}
        for row in await self._reader.rows(_TURNS, of):
            yield "turn", to_json(turn_of(row))
        async for row in self._batches(_EXECUTIONS, of):
            yield row.phase, row.body
        for row in await self._reader.rows(_ASKS, of):
            yield "ask", row.body

    async def _batches(self, statement: Executable, of: dict[str, str]) -> AsyncIterator[Row[Any]]:
        """Yield all rows of a paginated statement, read in batches."""
        after = 0
        while True:
            rows = await self._reader.rows(statement, {**of, "after": after})
            for row in rows:
                yield row
            if len(rows) < _BATCH:
                return
            after = rows[-1].number


class Insertion:
    """Imports a bundle: `begin` in a separate transaction, then `step` until nothing is left.

    In between, the conversation counts as being removed: it is not listed, and is deleted after a crash. The caller
    ends this state with `removal.done`. Raises `IntegrityError` if an id exists already.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._batches = self._all_batches()

    async def begin(self, connection: AsyncConnection) -> None:
        conversation = self._bundle.conversation
        own = tables.removals.c.conversation_id == conversation.id
        await connection.execute(tables.removals.delete().where(own))
        await connection.execute(tables.conversations.insert(), _parameters([conversations.save(conversation)]))
        await connection.execute(tables.removals.insert(), {"conversation_id": conversation.id, "files": "[]"})

    async def step(self, connection: AsyncConnection) -> bool:
        """Insert the next rows; False if none are left."""
        piece = next(self._batches, None)
        if piece is None:
            return False
        table, rows = piece
        await connection.execute(table.insert(), rows)
        return True

    def _all_batches(self) -> Iterator[tuple[Table, list[dict[str, Value]]]]:
        """Rows after the rows they reference, in batches that take a millisecond or two."""
        bundle = self._bundle
        rows: tuple[tuple[Table, Iterable[Mapping[str, Value]]], ...] = (
            (tables.nodes, (nodes.save(node).parameters for node in bundle.nodes)),
            (tables.agents, (agents.save_agent(agent).parameters for agent in bundle.agents)),
            (tables.tasks, (tasks.save(task).parameters for task in bundle.tasks)),
            (tables.task_requests, (tasks.save_request(task).parameters for task in bundle.tasks)),
            (tables.turns, (columns_of(turn) for turn in bundle.turns)),
            (tables.tool_executions, (_execution(execution).parameters for execution in bundle.executions)),
            (tables.asks, (asks.save(ask).parameters for ask in bundle.asks)),
        )
        for table, of_table in rows:
            left = iter(of_table)
            while piece := [dict(row) for row in islice(left, _ROWS_PER_INSERT)]:
                yield table, piece


def _parameters(writes: Sequence[Write]) -> list[dict[str, Value]]:
    return [dict(write.parameters) for write in writes]


def _execution(one: ExecutionStart | ExecutionEnd) -> Write:
    return executions.started(one) if isinstance(one, ExecutionStart) else executions.finished(one)
