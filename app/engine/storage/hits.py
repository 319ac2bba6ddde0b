"""The hits of a search: rows as records of the protocol, with what stands around them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Row

from app.engine.storage.encoding import to_text
from app.engine.storage.hit_context import Hit, HitContext
from app.engine.storage.reader import Reader
from app.engine.storage.search_query import SearchQuery
from app.engine.storage.write import Value
from app.protocol.conversations import SearchHit

MARK, UNMARK = "\u2068", "\u2069"


class NodeSearch(Protocol):
    async def find(self, text: str, limit: int = 20, conversation_id: str | None = None) -> tuple[SearchHit, ...]:
        """Nodes that hold all words of `text`, newest first; whatever is typed, it is never an error.

        Nothing where an operator's value means nothing: `parse_query` has the advice.
        """
        ...


class HitMaker:
    def __init__(self, reader: Reader) -> None:
        self._context = HitContext(reader)

    async def of(self, rows: Sequence[Row[Any]], snippets: Sequence[str]) -> tuple[SearchHit, ...]:
        """Rows have a node's columns, and the title and archived of its conversation."""
        places = [Hit(row.id, row.number, row.parent_id, row.conversation_id) for row in rows]
        around = await self._context.of(places)
        return tuple(
            SearchHit(
                conversation_id=row.conversation_id,
                conversation_title=row.title,
                node_id=row.id,
                role=row.role,
                snippet=snippet,
                created_at=datetime.fromisoformat(row.created_at),
                conversation_archived=bool(row.archived),
                before=one.before,
                after=one.after,
                place=one.place,
                of=one.of,
            )
            for row, snippet, one in zip(rows, snippets, around, strict=True)
        )


def moments(query: SearchQuery) -> dict[str, Value]:
    """As the database has times: from the first one on, and before the second; both are always there."""
    return {
        "after": to_text(query.after) if query.after is not None else "",
        "before": to_text(query.before) if query.before is not None else "~",
    }
