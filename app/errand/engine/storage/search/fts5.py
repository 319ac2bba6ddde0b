"""Search in the FTS5 indexes of SQLite."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from sqlalchemy import Row, bindparam, func, literal, text
from sqlalchemy.sql.expression import Executable

from errand.engine.core.errors import CannotSave
from errand.engine.storage.records.conversations import conversations_read
from errand.engine.storage.search.full_text import COLUMNS
from errand.engine.storage.search.hits import MARK, UNMARK
from errand.engine.storage.search.query import QueryWords, SearchQuery, parse_words
from errand.engine.storage.search.scope import SearchScope
from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.journal import Journal
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Value
from errand.engine.storage.sql.tables import agents
from errand.engine.storage.sqlite.search_index import INDEX_WAITING, WITH_FORMER, facet, index_word
from errand.protocol.conversations import Conversation

_OF_AGENT = """
    AND EXISTS (
        SELECT 1 FROM agents WHERE agents.id = json_extract(nodes.body, '$.author')
        AND lower(json_extract(agents.body, '$.name')) = :named
    )
"""
_SPAN = "AND nodes.created_at >= :after AND nodes.created_at < :before"
_FTS = f"""
    SELECT {COLUMNS}, snippet(node_search, 2, '{MARK}', '{UNMARK}', '…', 16) AS snippet
    FROM node_search
    JOIN nodes ON nodes.number = node_search.rowid
    JOIN conversations ON conversations.id = nodes.conversation_id
    WHERE node_search MATCH :query AND node_search.rowid BETWEEN :first AND :last {{also}}
    ORDER BY node_search.rowid DESC LIMIT :limit
"""
# Without a term, sender, tool or conversation, only the time is left, which has an index.
_NEWEST = text(
    f"""
    SELECT {COLUMNS}, (SELECT substr(text, 1, 160) FROM node_texts WHERE number = nodes.number) AS snippet
    FROM nodes JOIN conversations ON conversations.id = nodes.conversation_id
    WHERE nodes.number BETWEEN :first AND :last {_SPAN} AND nodes.status <> 'streaming'
    ORDER BY nodes.number DESC LIMIT :limit
    """
)
_TITLES = text(
    """
    SELECT conversations.body FROM title_search
    JOIN conversations ON conversations.id = title_search.id
    WHERE title_search MATCH :query ORDER BY title_search.rowid DESC LIMIT :limit
    """
)


_IS_ANY_WAITING = text("SELECT 1 FROM node_unindexed LIMIT 1")


class Fts5Index:
    def __init__(self, reader: Reader, journal: Journal) -> None:
        self._reader = reader
        self._journal = journal

    # Both must match the expressions of the indexes literally.
    is_named = func.lower(func.json_extract(agents.c.body, literal("$.name", literal_execute=True))) == bindparam(
        "name"
    )
    has_former = text(WITH_FORMER)

    async def complete(self) -> None:
        """While nothing can be saved, which every client is told, the newest nodes stay out."""
        if await self._reader.rows(_IS_ANY_WAITING):
            with suppress(CannotSave):
                await self._journal.transact(_index_waiting, durable=False)

    def query(
        self, query: SearchQuery, words: QueryWords, scope: SearchScope
    ) -> tuple[Executable, Mapping[str, Value]]:
        terms: list[str] = []
        if scope.conversation_ids is not None:
            terms.append(
                f"conversation : ({_any(index_word(conversation_id) for conversation_id in scope.conversation_ids)})"
            )
        if query.senders:
            listed = () if scope.named else scope.author_ids
            senders = (*(facet("from", role) for role in scope.roles), *(facet("by", author) for author in listed))
            terms.append(f"facets : ({_any(senders)})")
        if query.tools:
            terms.append(f"facets : ({_any(facet('tool', tool) for tool in query.tools)})")
        if words.phrases:
            # In FTS5, quoted text never contains operators.
            quoted = " AND ".join(f'"{phrase}"' for phrase in words.phrases)
            terms.append(f"text : ({quoted}{'*' if words.unfinished else ''})")
        if not terms:
            return _NEWEST, {}
        also = (_OF_AGENT if scope.named else "") + (_SPAN if query.has_period else "")
        match: dict[str, Value] = {"query": " AND ".join(terms)}
        return text(_FTS.format(also=also)), match | ({"named": scope.named} if scope.named else {})

    def snippet(self, row: Row[Any], words: QueryWords) -> str:
        return row.snippet or ""


async def _index_waiting(connection: AsyncConnection) -> None:
    for statement in INDEX_WAITING:
        await connection.exec_driver_sql(statement)


def _any(words: Iterable[str]) -> str:
    return " OR ".join(f'"{_quotable(word)}"' for word in words)


def _quotable(word: str) -> str:
    return word.replace('"', "").replace("\0", "")


class Fts5Titles:
    """Stops at the `limit`-th newest hit, like the search over nodes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, text: str, limit: int = 20) -> tuple[Conversation, ...]:
        parsed = parse_words(text)
        if not parsed.phrases:
            return ()
        quoted = " AND ".join(f'"{phrase}"' for phrase in parsed.phrases)
        query = f"title : ({quoted}{'*' if parsed.is_open else ''})"
        return await conversations_read(self._reader, _TITLES, {"query": query, "limit": limit})
