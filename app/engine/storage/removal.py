"""Takes a conversation away for good, with all that belongs to it.

Its row in `removals` lets that through the guards of the audit, and stays until the files are gone too.
"""

from dataclasses import dataclass

from sqlalchemy import Text, and_, bindparam, func, literal, or_, select

from app.engine.storage.encoding import from_json, to_json
from app.engine.storage.reader import Reader
from app.engine.storage.tables import (
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
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write

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
    or_(
        and_(events.c.conversation_id.in_(select(removals.c.conversation_id)), ~events.c.body.like(f"%{_DELETED}%")),
        and_(events.c.conversation_id.is_(None), _NAMES_ONE),
    )
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


def scrub() -> Write:
    """Take what tells of removed conversations out of the event log: of all in one reading of it, which is long."""
    return Write(_SCRUB, {})


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
