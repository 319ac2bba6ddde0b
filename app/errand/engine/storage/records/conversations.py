"""Conversations: the rows of the list."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

import msgspec
from sqlalchemy import bindparam, select, tuple_
from sqlalchemy.sql.expression import Executable

from errand.engine.storage.sql.reader import Reader, cursor_at, parse_cursor
from errand.engine.storage.sql.statements import Value, Write, from_json, is_one_of, to_json, to_text, upsert
from errand.engine.storage.sql.tables import conversations, removals
from errand.protocol.conversations import Conversation, ConversationListResult

_SAVE = upsert(conversations, ["id"], ["title", "updated_at", "archived", "pinned", "body"])
# Excludes conversations being removed or imported.
_IS_WHOLE = ~select(removals.c.conversation_id).where(removals.c.conversation_id == conversations.c.id).exists()
_ANY = select(conversations.c.id).where(conversations.c.id == bindparam("id"))
_ONE = select(conversations.c.body).where(conversations.c.id == bindparam("id"), _IS_WHOLE)
_NEWEST = (
    select(conversations.c.body, conversations.c.updated_at, conversations.c.id)
    .where(_IS_WHOLE)
    .order_by(conversations.c.updated_at.desc(), conversations.c.id.desc())
)


def save(conversation: Conversation) -> Write:
    return Write(
        _SAVE,
        {
            "id": conversation.id,
            "title": conversation.title,
            "updated_at": to_text(conversation.updated_at),
            "archived": conversation.archived,
            "pinned": conversation.pinned,
            "body": to_json(conversation),
        },
    )


async def conversations_read(
    reader: Reader, statement: Executable, parameters: Mapping[str, Value] | None = None
) -> tuple[Conversation, ...]:
    """Return the conversations in the statement's first column.

    Titles are the beginnings of messages: keys are redacted.
    """
    stored = await reader.structs(statement, Conversation, parameters)
    return tuple(with_redacted_title(conversation, reader.redact) for conversation in stored)


def with_redacted_title(conversation: Conversation, redact: Callable[[str], str]) -> Conversation:
    """Return the conversation without keys in its title."""
    title = redact(conversation.title)
    return conversation if title == conversation.title else msgspec.structs.replace(conversation, title=title)


class ConversationStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, conversation_id: str) -> Conversation | None:
        conversations = await conversations_read(self._reader, _ONE, {"id": conversation_id})
        return conversations[0] if conversations else None

    async def named(self, conversation_ids: Collection[str]) -> tuple[Conversation, ...]:
        """Return the conversations with these ids (some hundreds at most) that exist."""
        query = select(conversations.c.body).where(is_one_of(conversations.c.id, conversation_ids), _IS_WHOLE)
        return await conversations_read(self._reader, query) if conversation_ids else ()

    async def changes(self) -> list[tuple[str, datetime]]:
        """Return the ids of all conversations, and when each was changed."""
        query = select(conversations.c.id, conversations.c.updated_at).where(_IS_WHOLE)
        return [(row.id, datetime.fromisoformat(row.updated_at)) for row in await self._reader.rows(query)]

    async def exists(self, conversation_id: str) -> bool:
        """True also for a conversation being removed or imported."""
        return bool(await self._reader.rows(_ANY, {"id": conversation_id}))

    async def page(
        self,
        limit: int = 50,
        cursor: str | None = None,
        archived: bool | None = False,
        pinned: bool | None = None,
        *,
        id_part: str = "",
        title_part: str = "",
        workspace: str | None = None,
    ) -> ConversationListResult:
        """Newest change first. Without parts and folder the cost is the same for every page.

        Raises `InvalidParams` for an invalid cursor.
        """
        query = _NEWEST.limit(limit + 1)
        if archived is not None:
            query = query.where(conversations.c.archived == archived)
        if id_part:
            query = query.where(conversations.c.id.contains(id_part, autoescape=True))
        if title_part:
            query = query.where(conversations.c.title.icontains(title_part, autoescape=True))
        if workspace is not None:  # SQLite compares without regard to case: exactly below
            field = f'"workspace":{to_json(workspace)}'
            query = query.where(conversations.c.body.contains(field, autoescape=True))
        if pinned is not None:
            query = query.where(conversations.c.pinned == pinned)
        if cursor is not None:
            query = query.where(tuple_(conversations.c.updated_at, conversations.c.id) < parse_cursor(cursor))
        rows = await self._reader.rows(query)
        visible_rows = rows[:limit]
        listed = [with_redacted_title(from_json(row.body, Conversation), self._reader.redact) for row in visible_rows]
        return ConversationListResult(
            conversations=tuple(conversation for conversation in listed if workspace in (None, conversation.workspace)),
            next_cursor=cursor_at(visible_rows[-1].updated_at, visible_rows[-1].id) if len(rows) > limit else None,
        )
