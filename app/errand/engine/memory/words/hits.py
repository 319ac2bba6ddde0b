"""Full text: the entries that have the words of a question, with their scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from errand.engine.memory.index import WordIndex, sql_condition
from errand.engine.memory.vectors.base import VectorFilter
from errand.engine.memory.words.exact import exact_hits
from errand.engine.memory.words.stop_words import ENGLISH
from errand.engine.memory.words.terms import in_compounds, misspelt, queries_of

# Of a question, the words that the fewest entries have: common ones only blur the order.
_RAREST_WORDS = 8
_MAX_HITS = 300
# Fewer different scores among these are those of copies, which leave no room for others.
_MIN_DIFFERENT = 30
_MAX_HITS_WITH_COPIES = 3_000
_MAX_COPIES = 5
# A word of so few entries may be one that the filter lets none of through.
_HARDLY_ANY = 5
# Words that no entry has cost most.
_MAX_FORGIVEN = 3
_BEST = """
    SELECT rowid, bm25({table}) AS score FROM {table} WHERE {table} MATCH ?{also} ORDER BY score LIMIT ?
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


def word_hits(
    terms: Sequence[str],
    index: WordIndex,
    where: VectorFilter | None = None,
    text: str = "",
    language: str = ENGLISH,
) -> WordHits:
    """Return the best for the rarest of these words, among the entries that the filter lets through.

    `text` is the whole question, as it is written: with it, what has its identifiers is found, too.
    """
    exact = exact_hits(text, index, where)
    match = " OR ".join(_rarest(queries_of(terms, text, language, index.vocabulary), index, where, language))
    if not match:
        return WordHits({}, {}, exact)
    return WordHits(_best("entry_words", match, index, where), _best("window_words", match, index, where), exact)


def _rarest(
    queries_by_word: Iterable[tuple[str, tuple[str, ...]]],
    index: WordIndex,
    where: VectorFilter | None,
    language: str,
) -> list[str]:
    """Return the queries of the rarest words that entries have; for some that none has, those of similar words."""
    counts: dict[str, int] = {}
    forgiven = 0
    for word, queries in queries_by_word:
        match = " OR ".join(queries)
        count = _count(match, index) if match else 0
        if count <= _HARDLY_ANY and forgiven < _MAX_FORGIVEN and not (count and _passes(match, index, where)):
            forgiven += 1
            match = _similar(word, index, language, is_hidden=count > 0)
            count = _count(match, index) if match else 0
        if count:
            counts[match] = count
    return sorted(counts, key=lambda match: counts[match])[:_RAREST_WORDS]


def _similar(word: str, index: WordIndex, language: str, *, is_hidden: bool) -> str:
    """Return the query for words of which this one is a part, or else those that it may be a misspelling of.

    `is_hidden`: only entries that the filter does not let through have it, and compounds may be the word itself.
    """
    parts = tuple(in_compounds(word, language, index.vocabulary)) if language == ENGLISH else ()
    others = misspelt(word, index.vocabulary) if is_hidden or not parts else ()
    return " OR ".join((*parts, *others))


def _count(match: str, index: WordIndex) -> int:
    counted = "SELECT count(*) FROM entry_words WHERE entry_words MATCH ?"
    return int(index.connection.execute(counted, (match,)).fetchone()[0])


def _passes(match: str, index: WordIndex, where: VectorFilter | None) -> bool:
    """Return True if the filter lets an entry with a word through."""
    condition, values = sql_condition(where)
    if not condition:
        return True
    query = f"SELECT 1 FROM entry_words WHERE entry_words MATCH ?{_AMONG} LIMIT 1"
    query = query.format(table="entry_words", condition=condition)
    return index.connection.execute(query, (match, *values)).fetchone() is not None


def _best(
    table: Literal["entry_words", "window_words"], match: str, index: WordIndex, where: VectorFilter | None
) -> dict[int, float]:
    condition, values = sql_condition(where)
    query = _BEST.format(table=table, also=_AMONG.format(table=table, condition=condition) if condition else "")
    rows: list[tuple[int, float]] = index.connection.execute(query, (match, *values, _MAX_HITS)).fetchall()
    if len(rows) == _MAX_HITS and len({score for _, score in rows}) < _MIN_DIFFERENT:
        more = index.connection.execute(query, (match, *values, _MAX_HITS_WITH_COPIES))
        rows = _without_most_copies(more)
    return {number: -score for number, score in rows}


def _without_most_copies(rows: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the newest of the hits with equal scores, which equal texts have, best first."""
    by_score: dict[float, list[int]] = {}
    for number, score in rows:
        by_score.setdefault(score, []).append(number)
    hits = (
        (number, score) for score, numbers in by_score.items() for number in sorted(numbers, reverse=True)[:_MAX_COPIES]
    )
    return list(islice(hits, _MAX_HITS))
