"""Takes a conversation away for good, with all that belongs to it.

Its row in `removals` lets that through the guards of the audit, and stays until the files are gone too. Most rows go in
slices before the event that tells of it; while they go the conversation is not listed. One that is cut short by a
crash goes on at the next start, as does an import that was cut short: until it is whole it counts as being removed.
"""

from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Delete, Text, and_, bindparam, delete, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.engine.storage.sqlite.journal import Journal, in_slices
from app.engine.storage.sqlite.reader import Reader
from app.engine.storage.sqlite.statements import Upsert, Write, from_json, to_json
from app.engine.storage.sqlite.tables import (
    agents,
    asks,
    commands,
    conversations,
    events,
    grants,
    nodes,
    prompts,
    removals,
    tasks,
    tool_executions,
    turns,
)

_ID = bindparam("of_conversation", type_=Text())
_NAMED = bindparam("id_in_json", type_=Text())
_TASKS = select(tasks.c.id).where(tasks.c.conversation_id == _ID)

_BEGIN = Upsert(removals, ["conversation_id"], [])
_DONE = removals.delete().where(removals.c.conversation_id == _ID)
_PENDING = select(removals.c.conversation_id, removals.c.files)

# Rows before those that they point at. Grants for this conversation alone go with it, and what tells of them; and the
# answers kept for commands that come twice, which hold its texts.
_OF_ROWS = (
    tool_executions.delete().where(tool_executions.c.task_id.in_(_TASKS)),
    turns.delete().where(turns.c.task_id.in_(_TASKS)),
    prompts.delete().where(prompts.c.task_id.in_(_TASKS)),
    asks.delete().where(asks.c.task_id.in_(_TASKS)),
    tasks.delete().where(tasks.c.conversation_id == _ID),
    agents.delete().where(agents.c.conversation_id == _ID),
    nodes.delete().where(nodes.c.conversation_id == _ID),
    conversations.delete().where(conversations.c.id == _ID),
)
_THAT_NAME = (
    grants.delete().where(grants.c.body.like(_NAMED, escape="/")),
    commands.delete().where(commands.c.result.like(_NAMED, escape="/")),
)
# That it was deleted stays, for clients that come back. Texts cannot hold these words: their quotes are escaped. Ids
# are letters, digits, `-` and `_`, of which the last stands for any other in a pattern.
_DELETED = '"type":"conversationDeleted"'
_QUOTED = literal('%"') + func.replace(removals.c.conversation_id, "_", "/_") + literal('"%')
_NAMES_ONE = select(removals.c.conversation_id).where(events.c.body.like(_QUOTED, escape="/")).exists()
_SCRUB = events.delete().where(
    events.c.sequence > bindparam("after_sequence"),
    events.c.sequence <= bindparam("to_sequence"),
    or_(
        and_(events.c.conversation_id.in_(select(removals.c.conversation_id)), ~events.c.body.like(f"%{_DELETED}%")),
        and_(events.c.conversation_id.is_(None), _NAMES_ONE),
    ),
)
_ENDS_OF_LOG = select(func.min(events.c.sequence).label("first"), func.max(events.c.sequence).label("last"))

# Rows and events that are looked at in one step, which takes about a millisecond.
_PIECE = 20


def _some(key: Column[str] | Column[int], of: ColumnElement[bool]) -> Delete:
    """The newest rows of a conversation: those that nothing in its own table points at."""
    return delete(key.table).where(key.in_(select(key).where(of).order_by(key.desc()).limit(_PIECE)))


_IN_SLICES = (
    _some(tool_executions.c.number, tool_executions.c.task_id.in_(_TASKS)),
    _some(asks.c.id, asks.c.task_id.in_(_TASKS)),
    _some(nodes.c.number, nodes.c.conversation_id == _ID),
)


@dataclass(frozen=True, slots=True)
class Removal:
    """A conversation whose rows are gone and whose files may be there still: `files` are absolute paths of them."""

    conversation_id: str
    files: tuple[str, ...]


def begin(removal: Removal) -> Write:
    """To be put before the writes of the event that tells of it, in its group."""
    return Write(_BEGIN, {"conversation_id": removal.conversation_id, "files": to_json(removal.files)})


def writes(conversation_id: str) -> tuple[Write, ...]:
    """To be put in one group."""
    of_conversation = {"of_conversation": conversation_id}
    named = {"id_in_json": _holds(conversation_id)}
    return (
        begin(Removal(conversation_id, ())),
        *(Write(statement, of_conversation) for statement in _OF_ROWS),
        *(Write(statement, named) for statement in _THAT_NAME),
    )


async def empty(journal: Journal, conversation_id: str) -> None:
    """Take away, in slices, what makes up most of a conversation for which `begin` is committed."""
    left = list(_IN_SLICES)

    async def step(connection: AsyncConnection) -> bool:
        found = await connection.execute(left[0], {"of_conversation": conversation_id})
        if found.rowcount < _PIECE:
            left.pop(0)
        return bool(left)

    await in_slices(journal, step)


async def undo(journal: Journal, conversation_id: str) -> None:
    """Take away, in slices, all of a conversation that nobody was told of."""
    await empty(journal, conversation_id)
    journal.put(*writes(conversation_id), done(conversation_id))
    await journal.flush()


async def scrub(journal: Journal) -> None:
    """Take what tells of removed conversations out of the event log: in slices, since all of it is read."""
    ends: list[int] = []

    async def step(connection: AsyncConnection) -> bool:
        if not ends:
            (row,) = (await connection.execute(_ENDS_OF_LOG)).all()
            ends[:] = ((row.first or 1) - 1, row.last or 0)
        after = ends[0]
        ends[0] = after + _PIECE
        await connection.execute(_SCRUB, {"after_sequence": after, "to_sequence": ends[0]})
        return ends[0] < ends[1]

    await in_slices(journal, step)


def done(conversation_id: str) -> Write:
    """Its files are gone."""
    return Write(_DONE, {"of_conversation": conversation_id})


def _holds(value: str) -> str:
    """A pattern for JSON text with this as a value. Texts inside it cannot match: their quotes are escaped."""
    text = to_json(value)
    for special in "/%_":
        text = text.replace(special, f"/{special}")
    return f"%{text}%"


class RemovalStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def pending(self) -> tuple[Removal, ...]:
        rows = await self._reader.rows(_PENDING)
        return tuple(Removal(row.conversation_id, from_json(row.files, tuple[str, ...])) for row in rows)
