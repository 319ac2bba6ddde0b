"""Full-text search over nodes: the query, its scope and period; the index itself is that of the database."""

from collections.abc import Mapping
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Row, TextClause, bindparam, func, select
from sqlalchemy.sql.expression import Executable

from errand.engine.storage.search.hits import HitBuilder, day_of, period_parameters
from errand.engine.storage.search.query import QueryWords, SearchQuery, parse_query, parse_words
from errand.engine.storage.search.scope import ScopeFinder, SearchScope
from errand.engine.storage.search.titles import TitleSearch
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Value
from errand.engine.storage.sql.tables import node_days
from errand.protocol.conversations import SearchHit

# Columns of a hit, for the statements of an index.
COLUMNS = (
    "nodes.conversation_id, conversations.title, conversations.archived, nodes.id, nodes.role, nodes.created_at, "
    "nodes.number"
)
_BOUNDS = select(func.min(node_days.c.first).label("first"), func.max(node_days.c.last).label("last")).where(
    node_days.c.day >= bindparam("first_day"), node_days.c.day <= bindparam("last_day")
)
_MAX_ROWID = 2**63 - 1


class NodeIndex(Protocol):
    """The full-text index of one kind of database."""

    @property
    def is_named(self) -> ColumnElement[bool] | TextClause:
        """Compares an agent's lower-case name with the parameter `name`."""
        ...

    @property
    def has_former(self) -> ColumnElement[bool] | TextClause:
        """True for all conversations with deleted agents, maybe for others."""
        ...

    async def complete(self) -> None:
        """Take in the nodes that wait for the index, so that a search finds them."""
        ...

    def query(
        self, query: SearchQuery, words: QueryWords, scope: SearchScope
    ) -> tuple[Executable, Mapping[str, Value]]:
        """Return a statement for the newest hits, and its parameters beside `limit`, `first` and `last` (numbers of
        nodes), and `after` and `before` if the query has a period. Its rows have `COLUMNS` and `snippet`.
        """
        ...

    def snippet(self, row: Row[Any], words: QueryWords) -> str:
        """Return the words around the first matches, which are marked."""
        ...


class FullTextSearch:
    """Stops at the `limit`-th newest hit: without ranking, common terms cost no more than rare ones.

    A phrase of common words that hardly stand together is the exception: the index looks at all nodes that have each.
    """

    def __init__(self, reader: Reader, titles: TitleSearch, index: NodeIndex) -> None:
        self._reader = reader
        self._index = index
        self._scopes = ScopeFinder(reader, titles, index.is_named, index.has_former)
        self._hits = HitBuilder(reader)

    async def find(self, text: str, limit: int = 20, conversation_id: str | None = None) -> tuple[SearchHit, ...]:
        """Nodes that contain all words of `text`, newest first; no input raises an error.

        Empty if an operator has an invalid value: `parse_query` returns advice.
        """
        query = parse_query(text)
        parsed = parse_words(query.text)
        if query.advice or not (parsed.phrases or query.has_operators):
            return ()
        await self._index.complete()
        scope = await self._scopes.find(query, conversation_id)
        first, last = await self._span(query) if query.has_period else (0, _MAX_ROWID)
        if scope.is_empty or last < first:
            return ()
        statement, own = self._index.query(query, parsed, scope)
        parameters: dict[str, Value] = {"limit": limit, "first": first, "last": last, **own}
        parameters |= period_parameters(query) if query.has_period else {}
        rows = await self._reader.rows(statement, parameters)
        return await self._hits.build(rows, [self._index.snippet(row, parsed) for row in rows])

    async def _span(self, query: SearchQuery) -> tuple[int, int]:
        """Return the range of numbers of the period's days; after an import it may include nodes of other times."""
        period = period_parameters(query)
        days = {"first_day": day_of(period["after"]), "last_day": day_of(period["before"])}
        (row,) = await self._reader.rows(_BOUNDS, days)
        return (0, -1) if row.first is None else (row.first, row.last)
