"""Removes a conversation permanently, with all its records.

Its row in `removals` lets the audit triggers pass, and stays until its files are deleted too. Most rows are deleted in
slices before the event is published; meanwhile the conversation is not listed. An interrupted removal continues at the
next start; so does that of an interrupted import, which counts as being removed until it is complete.
"""

from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Delete, Text, and_, bindparam, delete, func, literal, or_, select

from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.journal import Journal
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.slices import in_slices
from errand.engine.storage.sql.statements import Write, from_json, to_json, upsert
from errand.engine.storage.sql.tables import (
    agents,
    asks,
    changes,
    commands,
    conversations,
    events,
    grants,
    nodes,
    prompts,
    removals,
    task_requests,
    tasks,
    tool_executions,
    turns,
)

_ID = bindparam("of_conversation", type_=Text())
_NAMED = bindparam("id_in_json", type_=Text())
_TASKS = select(tasks.c.id).where(tasks.c.conversation_id == _ID)

_BEGIN = upsert(removals, ["conversation_id"])
_DONE = removals.delete().where(removals.c.conversation_id == _ID)
_PENDING = select(removals.c.conversation_id, removals.c.files)

# Referencing rows before the rows they reference. Grants for this conversation only, and stored command results with
# its texts, are deleted too.
_DELETE_ROWS = (
    tool_executions.delete().where(tool_executions.c.task_id.in_(_TASKS)),
    turns.delete().where(turns.c.task_id.in_(_TASKS)),
    prompts.delete().where(prompts.c.task_id.in_(_TASKS)),
    task_requests.delete().where(task_requests.c.task_id.in_(_TASKS)),
    asks.delete().where(asks.c.task_id.in_(_TASKS)),
    changes.delete().where(changes.c.conversation_id == _ID),
    tasks.delete().where(tasks.c.conversation_id == _ID),
    agents.delete().where(agents.c.conversation_id == _ID),
    nodes.delete().where(nodes.c.conversation_id == _ID),
    conversations.delete().where(conversations.c.id == _ID),
)
_DELETE_REFERENCES = (
    grants.delete().where(grants.c.body.like(_NAMED, escape="/")),
    commands.delete().where(commands.c.result.like(_NAMED, escape="/")),
)
# The deletion event stays, for clients that reconnect, and so do facts, which outlive their conversation. Texts cannot
# contain these patterns: their quotes are escaped. Ids consist of letters, digits, `-` and `_`, which is a LIKE
# wildcard.
_DELETED = '"type":"conversationDeleted"'
_FACT = '"type":"factUpdate"'
_QUOTED = literal('%"') + func.replace(removals.c.conversation_id, "_", "/_") + literal('"%')
_MENTIONS_REMOVED = select(removals.c.conversation_id).where(events.c.body.like(_QUOTED, escape="/")).exists()
_SCRUB = events.delete().where(
    events.c.sequence > bindparam("after_sequence"),
    events.c.sequence <= bindparam("to_sequence"),
    or_(
        and_(events.c.conversation_id.in_(select(removals.c.conversation_id)), ~events.c.body.like(f"%{_DELETED}%")),
        and_(events.c.conversation_id.is_(None), _MENTIONS_REMOVED, ~events.c.body.like(f"%{_FACT}%")),
    ),
)
_ENDS_OF_LOG = select(func.min(events.c.sequence).label("first"), func.max(events.c.sequence).label("last"))

# Rows and events per step, which takes about a millisecond.
_BATCH = 20


def _delete_newest(key: Column[str] | Column[int], of: ColumnElement[bool]) -> Delete:
    """Return the newest rows of a conversation, which no row of the same table references."""
    return delete(key.table).where(key.in_(select(key).where(of).order_by(key.desc()).limit(_BATCH)))


_IN_SLICES = (
    _delete_newest(tool_executions.c.number, tool_executions.c.task_id.in_(_TASKS)),
    _delete_newest(asks.c.id, asks.c.task_id.in_(_TASKS)),
    _delete_newest(changes.c.number, changes.c.conversation_id == _ID),
    _delete_newest(nodes.c.number, nodes.c.conversation_id == _ID),
)


@dataclass(frozen=True, slots=True)
class Removal:
    """A conversation whose rows are deleted and whose files may still exist: `files` are their absolute paths."""

    conversation_id: str
    files: tuple[str, ...]


def begin(removal: Removal) -> Write:
    """Put this before the writes of the deletion event, in the same group."""
    return Write(_BEGIN, {"conversation_id": removal.conversation_id, "files": to_json(removal.files)})


def writes(conversation_id: str) -> tuple[Write, ...]:
    """Put these as one group."""
    of_conversation = {"of_conversation": conversation_id}
    named = {"id_in_json": _json_pattern(conversation_id)}
    return (
        begin(Removal(conversation_id, ())),
        *(Write(statement, of_conversation) for statement in _DELETE_ROWS),
        *(Write(statement, named) for statement in _DELETE_REFERENCES),
    )


async def delete_rows(journal: Journal, conversation_id: str) -> None:
    """Delete, in slices, most rows of a conversation for which `begin` is committed."""
    left = list(_IN_SLICES)

    async def step(connection: AsyncConnection) -> bool:
        removed = await connection.execute(left[0], {"of_conversation": conversation_id})
        if removed.rowcount < _BATCH:
            left.pop(0)
        return bool(left)

    await in_slices(journal, step)


async def undo(journal: Journal, conversation_id: str) -> None:
    """Delete, in slices, all of a conversation that was never announced."""
    await delete_rows(journal, conversation_id)
    journal.put(*writes(conversation_id), done(conversation_id))
    await journal.flush()


async def scrub(journal: Journal) -> None:
    """Delete the events of removed conversations, in slices, since it reads the whole event log."""
    ends: list[int] = []

    async def step(connection: AsyncConnection) -> bool:
        if not ends:
            (row,) = (await connection.execute(_ENDS_OF_LOG)).all()
            ends[:] = ((row.first or 1) - 1, row.last or 0)
        after = ends[0]
        ends[0] = after + _BATCH
        await connection.execute(_SCRUB, {"after_sequence": after, "to_sequence": ends[0]})
        return ends[0] < ends[1]

    await in_slices(journal, step)


def done(conversation_id: str) -> Write:
    """Return the write that removes the note once the conversation's files are deleted."""
    return Write(_DONE, {"of_conversation": conversation_id})


def _json_pattern(value: str) -> str:
    """Return a LIKE pattern for JSON text with this value. Texts inside cannot match: their quotes are escaped."""
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
