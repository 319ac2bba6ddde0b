"""Search hits with their context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, select, text

from errand.engine.storage.records.conversation_tree import first_words
from errand.engine.storage.search.query import SearchQuery
from errand.engine.storage.sqlite.reader import Reader
from errand.engine.storage.sqlite.statements import Value, to_text
from errand.engine.storage.sqlite.tables import nodes
from errand.protocol.conversations import SearchHit

# Counts each conversation once, from hit to hit, in the index only; its last row counts the nodes after the hits.
_POSITIONS = text(
    """
    WITH hits AS (
        SELECT number, conversation_id,
            lag(number, 1, 0) OVER (PARTITION BY conversation_id ORDER BY number) AS hit_before
        FROM nodes WHERE number IN :numbers
    )
    SELECT conversation_id, number, (
        SELECT count(*) FROM nodes WHERE nodes.conversation_id = hits.conversation_id
        AND nodes.number > hits.hit_before AND nodes.number <= hits.number
    ) AS amount FROM hits
    UNION ALL
    SELECT conversation_id, max(number) + 1, (
        SELECT count(*) FROM nodes WHERE nodes.conversation_id = hits.conversation_id
        AND nodes.number > max(hits.number)
    ) FROM hits GROUP BY conversation_id
    ORDER BY 1, 2
    """
).bindparams(bindparam("numbers", expanding=True))

MARK, UNMARK = "\u2068", "\u2069"


@dataclass(frozen=True, slots=True)
class Hit:
    id: str
    number: int
    parent_id: str | None
    conversation_id: str


@dataclass(frozen=True, slots=True)
class HitSurroundings:
    """The neighbours of a hit as one line each; the hit is the `place`-th of `of` nodes."""

    before: str
    after: str
    place: int
    of: int


class HitContext:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def surroundings_of(self, hits: Sequence[Hit]) -> tuple[HitSurroundings, ...]:
        if not hits:
            return ()
        children = await self._children([hit.id for hit in hits])
        lines = await self._lines({*children.values(), *(hit.parent_id for hit in hits if hit.parent_id is not None)})
        places = await self._positions([hit.number for hit in hits])
        totals: dict[str, int] = {}
        for conversation_id, _, reached in places:
            totals[conversation_id] = reached
        reached_at = {(conversation_id, number): reached for conversation_id, number, reached in places}
        return tuple(
            HitSurroundings(
                before=lines.get(hit.parent_id or "", ""),
                after=lines.get(children.get(hit.id, ""), ""),
                place=reached_at.get((hit.conversation_id, hit.number), 0),
                of=totals.get(hit.conversation_id, 0),
            )
            for hit in hits
        )

    async def _children(self, node_ids: Sequence[str]) -> Mapping[str, str]:
        """The newest child of each node."""
        links = select(nodes.c.parent_id, nodes.c.id).where(nodes.c.parent_id.in_(node_ids)).order_by(nodes.c.number)
        return {row.parent_id: row.id for row in await self._reader.rows(links)}

    async def _lines(self, node_ids: set[str]) -> Mapping[str, str]:
        found = await self._reader.rows(select(nodes.c.id, nodes.c.body).where(nodes.c.id.in_(sorted(node_ids))))
        return {row.id: first_words(row.body) for row in found}

    async def _positions(self, numbers: Sequence[int]) -> list[tuple[str, int, int]]:
        """Conversation, number, and the count of nodes up to it; each conversation's last row has its total."""
        counted: list[tuple[str, int, int]] = []
        for row in await self._reader.rows(_POSITIONS.bindparams(numbers=list(numbers))):
            before = counted[-1][2] if counted and counted[-1][0] == row.conversation_id else 0
            counted.append((row.conversation_id, row.number, before + row.amount))
        return counted


class HitBuilder:
    def __init__(self, reader: Reader) -> None:
        self._context = HitContext(reader)

    async def build(self, rows: Sequence[Row[Any]], snippets: Sequence[str]) -> tuple[SearchHit, ...]:
        """Rows have a node's columns, and the title and archived of its conversation."""
        places = [Hit(row.id, row.number, row.parent_id, row.conversation_id) for row in rows]
        around = await self._context.surroundings_of(places)
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


def period_parameters(query: SearchQuery) -> dict[str, Value]:
    """The period in database format, from the first (inclusive) to the second (exclusive); always both."""
    return {
        "after": to_text(query.after) if query.after is not None else "",
        "before": to_text(query.before) if query.before is not None else "~",
    }
