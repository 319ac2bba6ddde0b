"""Full-text search over nodes with SQLite's FTS5."""

from collections.abc import Iterable

from sqlalchemy import bindparam, func, select, text
from sqlalchemy.sql.expression import Executable

from app.engine.storage.search.hits import MARK, UNMARK, HitBuilder, period_parameters
from app.engine.storage.search.query import QueryWords, SearchQuery, parse_query, parse_words
from app.engine.storage.search.scope import FORMER_INDEXED, NAME_INDEXED, ScopeFinder, SearchScope
from app.engine.storage.search.titles import TitleSearch
from app.engine.storage.sqlite.reader import Reader
from app.engine.storage.sqlite.search_index import facet, index_word
from app.engine.storage.sqlite.statements import Value, to_text
from app.engine.storage.sqlite.tables import nodes
from app.protocol.conversations import SearchHit

_COLUMNS = (
    "nodes.conversation_id, conversations.title, conversations.archived, nodes.id, nodes.role, nodes.created_at, "
    "nodes.number, nodes.parent_id"
)
_OF_AGENT = """
    AND EXISTS (
        SELECT 1 FROM agents WHERE agents.id = json_extract(nodes.body, '$.author')
        AND lower(json_extract(agents.body, '$.name')) = :named
    )
"""
_SPAN = "AND nodes.created_at >= :after AND nodes.created_at < :before"
_FTS = f"""
    SELECT {_COLUMNS}, snippet(node_search, 2, '{MARK}', '{UNMARK}', '…', 16) AS snippet
    FROM node_search
    JOIN nodes ON nodes.number = node_search.rowid
    JOIN conversations ON conversations.id = nodes.conversation_id
    WHERE node_search MATCH :query AND node_search.rowid BETWEEN :first AND :last {{also}}
    ORDER BY node_search.rowid DESC LIMIT :limit
"""
# Without a term, sender, tool or conversation, only the time is left, which has an index.
_NEWEST = text(
    f"""
    SELECT {_COLUMNS}, (SELECT substr(text, 1, 160) FROM node_texts WHERE number = nodes.number) AS snippet
    FROM nodes JOIN conversations ON conversations.id = nodes.conversation_id
    WHERE nodes.number BETWEEN :first AND :last {_SPAN} AND nodes.status <> 'streaming'
    ORDER BY nodes.number DESC LIMIT :limit
    """
)
_FIRST = select(func.min(nodes.c.number).label("number")).where(nodes.c.created_at >= bindparam("after"))
_LAST = select(func.max(nodes.c.number).label("number")).where(nodes.c.created_at < bindparam("before"))
_LARGEST = 2**63 - 1


class FtsSearch:
    """Stops at the `limit`-th newest hit: without ranking, common terms cost no more than rare ones."""

    def __init__(self, reader: Reader, titles: TitleSearch) -> None:
        self._reader = reader
        self._scopes = ScopeFinder(reader, titles, NAME_INDEXED, FORMER_INDEXED)
        self._hits = HitBuilder(reader)

    async def find(self, text: str, limit: int = 20, conversation_id: str | None = None) -> tuple[SearchHit, ...]:
        query = parse_query(text)
        words = parse_words(query.words)
        if query.advice or not (words.phrases or query.has_operators):
            return ()
        scope = await self._scopes.find(query, conversation_id)
        first, last = await self._span(query)
        if scope.is_empty or last < first:
            return ()
        statement, match = _fts_query(query, words, scope)
        parameters: dict[str, Value] = {"limit": limit, "first": first, "last": last}
        parameters |= {"query": match} if match else {}
        parameters |= {"named": scope.named} if scope.named else {}
        parameters |= period_parameters(query) if query.has_period else {}
        rows = await self._reader.rows(statement, parameters)
        return await self._hits.build(rows, [row.snippet or "" for row in rows])

    async def _span(self, query: SearchQuery) -> tuple[int, int]:
        """The range of numbers for the period; after an import it may include nodes of other times."""
        first, last = 0, _LARGEST
        if query.after is not None:
            (row,) = await self._reader.rows(_FIRST, {"after": to_text(query.after)})
            first = _LARGEST if row.number is None else row.number
        if query.before is not None:
            (row,) = await self._reader.rows(_LAST, {"before": to_text(query.before)})
            last = row.number or 0
        return first, last


def _fts_query(query: SearchQuery, words: QueryWords, scope: SearchScope) -> tuple[Executable, str]:
    """The statement and its FTS5 match expression; "" if there is nothing to match."""
    terms: list[str] = []
    if scope.conversation_ids is not None:
        terms.append(f"conversation : ({_any(index_word(one) for one in scope.conversation_ids)})")
    if query.senders:
        listed = () if scope.named else scope.author_ids
        senders = (*(facet("from", role) for role in scope.roles), *(facet("by", one) for one in listed))
        terms.append(f"facets : ({_any(senders)})")
    if query.tools:
        terms.append(f"facets : ({_any(facet('tool', tool) for tool in query.tools)})")
    if words.phrases:
        # In FTS5, quoted text never contains operators.
        quoted = " AND ".join(f'"{phrase}"' for phrase in words.phrases)
        terms.append(f"text : ({quoted}{'*' if words.unfinished else ''})")
    if not terms:
        return _NEWEST, ""
    also = (_OF_AGENT if scope.named else "") + (_SPAN if query.has_period else "")
    return text(_FTS.format(also=also)), " AND ".join(terms)


def _any(words: Iterable[str]) -> str:
    return " OR ".join(f'"{_quotable(word)}"' for word in words)


def _quotable(word: str) -> str:
    return word.replace('"', "").replace("\0", "")
