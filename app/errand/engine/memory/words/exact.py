"""Entries that have the identifiers of a question exactly as they are written."""

from collections.abc import Sequence
from math import log

from errand.engine.memory.index import WordIndex, sql_condition
from errand.engine.memory.vectors.base import VectorFilter
from errand.engine.memory.words.identifiers import Identifier, identifiers_in

# What more entries have is not rare. Their texts are read.
_MAX_ENTRIES = 100
# What may be a mere number or word counts if hardly any entry has it.
_MAX_ENTRIES_OF_WEAK = 10
_MAX_IDENTIFIERS = 6
# A single one of several identifiers is worth this much.
_MIN_SHARE = 0.75
_MANY = 10_000
_HAVING = "SELECT rowid FROM entry_words WHERE entry_words MATCH ?{also} LIMIT ?"
_AMONG = " AND EXISTS (SELECT 1 FROM entries WHERE number = +entry_words.rowid AND {condition})"


def exact_hits(text: str, index: WordIndex, where: VectorFilter | None = None) -> dict[int, float]:
    """Return the share of the question's rare identifiers that entries have, by number: from 0.75 to 1."""
    weights: dict[int, float] = {}
    total = 0.0
    for identifier in identifiers_in(text)[:_MAX_IDENTIFIERS]:
        numbers = _entries_with(identifier, index, where)
        if not numbers:
            continue
        weight = log(_MANY / len(numbers))
        total += weight
        for number in numbers:
            weights[number] = weights.get(number, 0.0) + weight
    return {number: _MIN_SHARE + (1 - _MIN_SHARE) * weight / total for number, weight in weights.items()}


def _entries_with(identifier: Identifier, index: WordIndex, where: VectorFilter | None) -> Sequence[int]:
    """Return the numbers of the entries that have it; none if it is not rare."""
    condition, values = sql_condition(where)
    query = _HAVING.format(also=_AMONG.format(condition=condition) if condition else "")
    match = " OR ".join(identifier.phrases)
    rows = index.connection.execute(query, (match, *values, _MAX_ENTRIES + 1)).fetchall()
    if len(rows) > _MAX_ENTRIES:
        return ()
    texts = index.texts(row[0] for row in rows)
    numbers = [number for number, text in texts if identifier.pattern.search(text)]
    return numbers if not identifier.is_weak or len(numbers) <= _MAX_ENTRIES_OF_WEAK else ()
