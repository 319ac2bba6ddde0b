"""What stands around the hits of a search: how their neighbours begin, and their place in the conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, select, text

from app.engine.storage.reader import Reader
from app.engine.storage.tables import nodes
from app.engine.storage.trees import beginning

# Each conversation is counted through once, from hit to hit, in the index alone; the last row is what follows them.
_PLACES = text(
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


@dataclass(frozen=True, slots=True)
class Hit:
    id: str
    number: int
    parent_id: str | None
    conversation_id: str


@dataclass(frozen=True, slots=True)
class Around:
    """`before` and `after` are one line each; it is the `place`-th of `of` nodes."""

    before: str
    after: str
    place: int
    of: int


class HitContext:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def of(self, hits: Sequence[Hit]) -> tuple[Around, ...]:
        if not hits:
            return ()
        children = await self._children([hit.id for hit in hits])
        lines = await self._lines({*children.values(), *(hit.parent_id for hit in hits if hit.parent_id is not None)})
        places = await self._places([hit.number for hit in hits])
        totals: dict[str, int] = {}
        for conversation_id, _, reached in places:
            totals[conversation_id] = reached
        reached_at = {(conversation_id, number): reached for conversation_id, number, reached in places}
        return tuple(
            Around(
                before=lines.get(hit.parent_id or "", ""),
                after=lines.get(children.get(hit.id, ""), ""),
                place=reached_at.get((hit.conversation_id, hit.number), 0),
                of=totals.get(hit.conversation_id, 0),
            )
            for hit in hits
        )

    async def _children(self, node_ids: Sequence[str]) -> Mapping[str, str]:
        """Of each node the child that was written last."""
        links = select(nodes.c.parent_id, nodes.c.id).where(nodes.c.parent_id.in_(node_ids)).order_by(nodes.c.number)
        return {row.parent_id: row.id for row in await self._reader.rows(links)}

    async def _lines(self, node_ids: set[str]) -> Mapping[str, str]:
        found = await self._reader.rows(select(nodes.c.id, nodes.c.body).where(nodes.c.id.in_(sorted(node_ids))))
        return {row.id: beginning(row.body) for row in found}

    async def _places(self, numbers: Sequence[int]) -> list[tuple[str, int, int]]:
        """Conversation, number, and how many nodes there are up to it; in each conversation all of them at the end."""
        counted: list[tuple[str, int, int]] = []
        for row in await self._reader.rows(_PLACES.bindparams(numbers=list(numbers))):
            before = counted[-1][2] if counted and counted[-1][0] == row.conversation_id else 0
            counted.append((row.conversation_id, row.number, before + row.amount))
        return counted
