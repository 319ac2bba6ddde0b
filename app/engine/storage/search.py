"""Full-text search over all nodes, newest first: FTS5 on SQLite, LIKE on other databases."""

from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Row, select, text
from sqlalchemy.sql.expression import Executable

from app.engine.storage.reader import Reader
from app.engine.storage.search_schema import index_word
from app.engine.storage.search_words import SearchWords, parse
from app.engine.storage.tables import conversations, nodes
from app.protocol.conversations import SearchHit

_MARK, _UNMARK = "\u2068", "\u2069"

_FTS = text(
    f"""
    SELECT nodes.conversation_id, conversations.title, conversations.archived, nodes.id, nodes.role, nodes.created_at,
           snippet(node_search, 1, '{_MARK}', '{_UNMARK}', '…', 16) AS snippet
    FROM node_search
    JOIN nodes ON nodes.number = node_search.rowid
    JOIN conversations ON conversations.id = nodes.conversation_id
    WHERE node_search MATCH :query ORDER BY node_search.rowid DESC LIMIT :limit
    """
)


class NodeSearch(Protocol):
    async def find(self, text: str, limit: int = 20, conversation_id: str | None = None) -> tuple[SearchHit, ...]:
        """Nodes that hold all words of `text`, newest first; whatever is typed, it is never an error."""
        ...


class FtsSearch:
    """Stops at the `limit`-th newest hit: nothing is ranked, so common words cost no more than rare ones."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, text: str, limit: int = 20, conversation_id: str | None = None) -> tuple[SearchHit, ...]:
        words = parse(text)
        if not words.phrases:
            return ()
        rows = await self._reader.rows(_FTS, {"query": _fts_query(words, conversation_id), "limit": limit})
        return tuple(_hit(row, row.snippet) for row in rows)


def _fts_query(words: SearchWords, conversation_id: str | None) -> str:
    # In FTS5 everything between quotes is text, never an operator.
    quoted = " AND ".join(f'"{phrase}"' for phrase in words.phrases)
    query = f"text : ({quoted}{'*' if words.unfinished else ''})"
    if conversation_id is None:
        return query
    return f'conversation : "{_quotable(index_word(conversation_id))}" AND {query}'


def _quotable(word: str) -> str:
    return word.replace('"', "").replace("\0", "")


class LikeSearch:
    """For databases without an index of ours: reads every node, finds parts of words too."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, text: str, limit: int = 20, conversation_id: str | None = None) -> tuple[SearchHit, ...]:
        words = parse(text)
        if not words.phrases:
            return ()
        rows = await self._reader.rows(_like_query(words, conversation_id, limit))
        return tuple(_hit(row, _around(row.body, words.phrases[0])) for row in rows)


def _like_query(words: SearchWords, conversation_id: str | None, limit: int) -> Executable:
    query = (
        select(
            nodes.c.conversation_id,
            conversations.c.title,
            conversations.c.archived,
            nodes.c.id,
            nodes.c.role,
            nodes.c.created_at,
            nodes.c.body,
        )
        .join_from(nodes, conversations, conversations.c.id == nodes.c.conversation_id)
        .where(*(nodes.c.body.icontains(phrase, autoescape=True) for phrase in words.phrases))
        .order_by(nodes.c.number.desc())
        .limit(limit)
    )
    if conversation_id is None:
        return query
    return query.where(nodes.c.conversation_id == conversation_id)


def _around(body: str, phrase: str) -> str:
    start = body.lower().find(phrase.lower())
    end = start + len(phrase)
    return f"…{body[max(0, start - 60) : start]}{_MARK}{body[start:end]}{_UNMARK}{body[end : end + 60]}…"


def _hit(row: Row[Any], snippet: str) -> SearchHit:
    return SearchHit(
        conversation_id=row.conversation_id,
        conversation_title=row.title,
        node_id=row.id,
        role=row.role,
        snippet=snippet,
        created_at=datetime.fromisoformat(row.created_at),
        conversation_archived=bool(row.archived),
    )
