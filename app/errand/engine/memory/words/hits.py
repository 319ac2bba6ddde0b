"""Full text: the entries that have the words of a question, with their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from errand.engine.memory.index import WordIndex, sql_condition
from errand.engine.memory.vectors.base import VectorFilter

# Of a question, the words that the fewest entries have: common ones only blur the order.
_RAREST_WORDS = 8
_MAX_HITS = 300
_BEST = """
    SELECT rowid, -bm25({table}) AS score FROM {table} WHERE {table} MATCH ?{also} ORDER BY bm25({table}) LIMIT ?
"""
# Looks at the entry of each hit. The plus keeps SQLite from asking the full-text index once for each entry, which takes
# time with the square of their number; a list of all entries that pass (`+rowid IN …`) costs five times as much.
_AMONG = " AND EXISTS (SELECT 1 FROM entries WHERE number = +{table}.rowid AND {condition})"


@dataclass(frozen=True, slots=True)
class WordHits:
    """Scores (BM25) by the number of entries: of their own words, and of short entries with their neighbours.

    `exact` has the entries with rare identifiers of the question, and the share that they have of these, up to 1.
    """

    own: Mapping[int, float]
    window: Mapping[int, float]
    exact: Mapping[int, float] = field(default_factory=dict[int, float])


def word_hits(terms: Sequence[str], index: WordIndex, where: VectorFilter | None = None) -> WordHits:
    """Return the best for the rarest of these words, among the entries that the filter lets through."""
    match = " OR ".join(_quoted(word) for word in _rarest(terms, index))
    if not match:
        return WordHits({}, {})
    return WordHits(_best("entry_words", match, index, where), _best("window_words", match, index, where))


def _rarest(terms: Sequence[str], index: WordIndex) -> list[str]:
    counts = {word: _count(word, index) for word in dict.fromkeys(terms)}
    indexed_terms = [word for word, count in counts.items() if count]
    return sorted(indexed_terms, key=lambda word: counts[word])[:_RAREST_WORDS]


def _count(word: str, index: WordIndex) -> int:
    counted = "SELECT count(*) FROM entry_words WHERE entry_words MATCH ?"
    return int(index.connection.execute(counted, (_quoted(word),)).fetchone()[0])


def _best(
    table: Literal["entry_words", "window_words"], match: str, index: WordIndex, where: VectorFilter | None
) -> dict[int, float]:
    condition, values = sql_condition(where)
    query = _BEST.format(table=table, also=_AMONG.format(table=table, condition=condition) if condition else "")
    rows = index.connection.execute(query, (match, *values, _MAX_HITS))
    return {int(number): float(score) for number, score in rows}


def _quoted(word: str) -> str:
    return '"' + word.replace('"', " ") + '"'
