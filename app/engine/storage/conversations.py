"""Conversations: the rows of the list."""

from sqlalchemy import bindparam, select, tuple_

from app.engine.errors import InvalidParams
from app.engine.storage.encoding import from_json, to_json, to_text
from app.engine.storage.reader import Reader
from app.engine.storage.tables import conversations
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write
from app.protocol.conversations import Conversation, ConversationListResult

_SAVE = Upsert(conversations, ["id"], ["title", "updated_at", "archived", "body"])
_ONE = select(conversations.c.body).where(conversations.c.id == bindparam("id"))
_COLUMNS = select(conversations.c.body, conversations.c.updated_at, conversations.c.id)
_FIRST_PAGE = (
    _COLUMNS.where(conversations.c.archived == bindparam("archived"))
    .order_by(conversations.c.updated_at.desc(), conversations.c.id.desc())
    .limit(bindparam("limit"))
)
_NEXT_PAGE = _FIRST_PAGE.where(
    tuple_(conversations.c.updated_at, conversations.c.id) < tuple_(bindparam("updated_at"), bindparam("id"))
)


def save(conversation: Conversation) -> Write:
    return Write(
        _SAVE,
        {
            "id": conversation.id,
            "title": conversation.title,
            "updated_at": to_text(conversation.updated_at),
            "archived": conversation.archived,
            "body": to_json(conversation),
        },
    )


class ConversationStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, conversation_id: str) -> Conversation | None:
        return await self._reader.struct(_ONE, Conversation, {"id": conversation_id})

    async def page(self, limit: int = 50, cursor: str | None = None, archived: bool = False) -> ConversationListResult:
        """Newest change first; a page costs the same wherever it lies. InvalidParams for a cursor that is not ours."""
        parameters = {"archived": archived, "limit": limit + 1}
        if cursor is not None:
            rows = await self._reader.rows(_NEXT_PAGE, parameters | _place(cursor))
        else:
            rows = await self._reader.rows(_FIRST_PAGE, parameters)
        shown = rows[:limit]
        return ConversationListResult(
            conversations=tuple(from_json(row.body, Conversation) for row in shown),
            next_cursor=f"{shown[-1].updated_at} {shown[-1].id}" if len(rows) > limit else None,
        )


def _place(cursor: str) -> dict[str, str]:
    updated_at, space, conversation_id = cursor.partition(" ")
    if not space or not conversation_id:
        raise InvalidParams("cursor: not one that a page of conversations gave")
    return {"updated_at": updated_at, "id": conversation_id}
