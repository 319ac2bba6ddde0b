"""Search over conversation titles."""

from typing import Protocol

from sqlalchemy import select, text

from app.engine.storage.search.query import parse_words
from app.engine.storage.sqlite.reader import Reader
from app.engine.storage.sqlite.tables import conversations
from app.protocol.conversations import Conversation

_FTS = text(
    """
    SELECT conversations.body FROM title_search
    JOIN conversations ON conversations.id = title_search.id
    WHERE title_search MATCH :query ORDER BY title_search.rowid DESC LIMIT :limit
    """
)
_NEWEST = select(conversations.c.body).order_by(conversations.c.updated_at.desc(), conversations.c.id.desc())


class TitleSearch(Protocol):
    async def find(self, text: str, limit: int = 20) -> tuple[Conversation, ...]:
        """Conversations whose title contains all words of `text`, also archived; the last word may be incomplete."""
        ...


class FtsTitleSearch:
    """Stops at the `limit`-th newest hit, like the search over nodes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, text: str, limit: int = 20) -> tuple[Conversation, ...]:
        words = parse_words(text)
        if not words.phrases:
            return ()
        quoted = " AND ".join(f'"{phrase}"' for phrase in words.phrases)
        query = f"title : ({quoted}{'*' if words.is_open else ''})"
        return await self._reader.structs(_FTS, Conversation, {"query": query, "limit": limit})


class LikeTitleSearch:
    """For databases without our index: scans all titles, and also matches parts of words."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, text: str, limit: int = 20) -> tuple[Conversation, ...]:
        words = parse_words(text)
        if not words.phrases:
            return ()
        holds = (conversations.c.title.icontains(phrase, autoescape=True) for phrase in words.phrases)
        return await self._reader.structs(_NEWEST.where(*holds).limit(limit), Conversation)
