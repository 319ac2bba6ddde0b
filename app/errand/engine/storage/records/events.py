"""The event log: the newest events, for clients that reconnect."""

import msgspec
from sqlalchemy import bindparam, func, or_, select

from errand.engine.storage.records.conversations import with_redacted_title
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, to_json
from errand.engine.storage.sql.tables import events
from errand.protocol.events import ConversationUpdate, EventRecord, LogRecord, conversation_of

_ADD = events.insert()
_newest = select(func.max(events.c.sequence)).scalar_subquery()
_PRUNE = events.delete().where(events.c.sequence <= _newest - bindparam("keep"))
_RANGE = select(func.min(events.c.sequence).label("oldest"), func.max(events.c.sequence).label("newest"))
_AFTER = (
    select(events.c.body)
    .where(events.c.sequence > bindparam("sequence"))
    .order_by(events.c.sequence)
    .limit(bindparam("limit"))
)
_OF_CONVERSATION = _AFTER.where(
    or_(events.c.conversation_id == bindparam("conversation_id"), events.c.conversation_id.is_(None))
)

# Most events belong to a conversation. Texts cannot contain these patterns: their quotes are escaped.
_OF_FACT = select(events.c.sequence).where(
    events.c.conversation_id.is_(None),
    events.c.body.like('%"type":"factUpdate"%'),
    events.c.body.like(bindparam("fact"), escape="/"),
)
_DELETE = events.delete().where(events.c.sequence == bindparam("deleted"))


def save(record: LogRecord | EventRecord) -> Write:
    return Write(
        _ADD,
        {
            "sequence": record.sequence,
            "conversation_id": conversation_of(record.event),
            "body": to_json(record),
        },
    )


def prune(keep: int) -> Write:
    """Drop all but about the newest `keep` events."""
    return Write(_PRUNE, {"keep": keep})


def delete(sequence: int) -> Write:
    return Write(_DELETE, {"deleted": sequence})


class EventStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def after(
        self, sequence: int, limit: int = 1000, conversation_id: str | None = None
    ) -> tuple[LogRecord, ...]:
        """Events after `sequence`, oldest first; with a conversation, only its events and the global ones."""
        parameters = {"sequence": sequence, "limit": limit}
        if conversation_id is None:
            records = await self._reader.structs(_AFTER, LogRecord, parameters)
        else:
            of_conversation = parameters | {"conversation_id": conversation_id}
            records = await self._reader.structs(_OF_CONVERSATION, LogRecord, of_conversation)
        return tuple(self._with_redacted_title(record) for record in records)

    def _with_redacted_title(self, record: LogRecord) -> LogRecord:
        """Return the record as other records of conversations are read."""
        if not isinstance(record.event, ConversationUpdate):
            return record
        conversation = with_redacted_title(record.event.conversation, self._reader.redact)
        return msgspec.structs.replace(record, event=ConversationUpdate(conversation=conversation))

    async def of_fact(self, fact_id: str) -> tuple[int, ...]:
        """Return the numbers of the events with states of a fact. Reads the whole log, which may take 0.1 s."""
        rows = await self._reader.rows(_OF_FACT, {"fact": f'%"id":"{fact_id.replace("_", "/_")}"%'})
        return tuple(row.sequence for row in rows)

    async def bounds(self) -> tuple[int, int]:
        """Return the oldest and the newest stored sequence number; (0, 0) without events."""
        (row,) = await self._reader.rows(_RANGE)
        return row.oldest or 0, row.newest or 0

    async def head(self) -> int:
        """Return the newest sequence number, 0 before the first event."""
        return (await self.bounds())[1]
