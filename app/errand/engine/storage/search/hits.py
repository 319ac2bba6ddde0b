"""Search hits with their context."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, text

from errand.engine.storage.records.conversation_tree import first_words
from errand.engine.storage.search.query import SearchQuery
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import to_text
from errand.protocol.conversations import SearchHit
from errand.text.key_formats import looks_random
from errand.text.redaction import REMOVED

# What surrounds each hit, in one statement: each waits for its thread on a busy machine. Nodes of a conversation are
# counted once, from hit to hit, in the index only; `after` is the count after the last hit.
_AROUND = text(
    """
    WITH hits AS (
        SELECT number, id, parent_id, conversation_id,
            lag(number, 1, 0) OVER (PARTITION BY conversation_id ORDER BY number) AS hit_before,
            lead(number) OVER (PARTITION BY conversation_id ORDER BY number) AS hit_after
        FROM nodes WHERE number IN :numbers
    )
    SELECT hits.number, hits.conversation_id, (
        SELECT count(*) FROM nodes WHERE nodes.conversation_id = hits.conversation_id
        AND nodes.number > hits.hit_before AND nodes.number <= hits.number
    ) AS amount, CASE WHEN hits.hit_after IS NULL THEN (
        SELECT count(*) FROM nodes WHERE nodes.conversation_id = hits.conversation_id
        AND nodes.number > hits.number
    ) END AS after, (
        SELECT parents.body FROM nodes AS parents WHERE parents.id = hits.parent_id
    ) AS parent, (
        SELECT children.body FROM nodes AS children
        WHERE children.parent_id = hits.id AND children.conversation_id = hits.conversation_id
        ORDER BY children.number DESC LIMIT 1
    ) AS child
    FROM hits ORDER BY hits.conversation_id, hits.number
    """
).bindparams(bindparam("numbers", expanding=True))

MARK, UNMARK = "\u2068", "\u2069"
# The word behind the ellipsis at the beginning, and that before the one at the end.
_CUT_WORD = re.compile(r"(?<=\A…)[\w+/=-]{5,}+|(?<![\w+/=-])[\w+/=-]{5,}+(?=…\Z)")


@dataclass(frozen=True, slots=True)
class HitSurroundings:
    """The neighbours of a hit as one line each; the hit is the `position`-th of `of` nodes."""

    before: str
    after: str
    position: int
    of: int


class HitContext:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def surroundings_of(self, numbers: Sequence[int]) -> Mapping[int, HitSurroundings]:
        """Return the surroundings by the numbers of the hits."""
        if not numbers:
            return {}
        rows = await self._reader.rows(_AROUND.bindparams(numbers=list(numbers)))
        positions: dict[int, int] = {}
        totals: dict[str, int] = {}
        for row in rows:
            positions[row.number] = totals.get(row.conversation_id, 0) + row.amount
            totals[row.conversation_id] = positions[row.number] + (row.after or 0)
        return {
            row.number: HitSurroundings(
                before=first_words(row.parent, self._reader.redact) if row.parent else "",
                after=first_words(row.child, self._reader.redact) if row.child else "",
                position=positions[row.number],
                of=totals[row.conversation_id],
            )
            for row in rows
        }


class HitBuilder:
    def __init__(self, reader: Reader) -> None:
        self._redact = reader.redact
        self._context = HitContext(reader)

    async def build(self, rows: Sequence[Row[Any]], snippets: Sequence[str]) -> tuple[SearchHit, ...]:
        """Rows have a node's columns, and the title and archived of its conversation."""
        around = await self._context.surroundings_of([row.number for row in rows])
        return tuple(
            SearchHit(
                conversation_id=row.conversation_id,
                conversation_title=self._redact(row.title),
                node_id=row.id,
                role=row.role,
                snippet=_redacted_snippet(snippet, self._redact),
                created_at=datetime.fromisoformat(row.created_at),
                conversation_archived=bool(row.archived),
                before=around[row.number].before,
                after=around[row.number].after,
                place=around[row.number].position,
                of=around[row.number].of,
            )
            for row, snippet in zip(rows, snippets, strict=True)
        )


def _redacted_snippet(snippet: str, redact: Callable[[str], str]) -> str:
    """Return the snippet without keys.

    It may begin and end within a key: outer words that look like a part of one go too.
    """
    plain = snippet.replace(MARK, "").replace(UNMARK, "")
    cleaned = _CUT_WORD.sub(lambda word: REMOVED if looks_random(word[0]) else word[0], redact(plain))
    return snippet if cleaned == plain else cleaned


def period_parameters(query: SearchQuery) -> dict[str, str]:
    """Return the period in database format, from the first (inclusive) to the second (exclusive); always both."""
    return {
        "after": to_text(query.after) if query.after is not None else "",
        "before": to_text(query.before) if query.before is not None else "~",
    }


def day_of(moment: str) -> str:
    """Return the key of `node_days` for a moment in database format."""
    return moment[:10]
