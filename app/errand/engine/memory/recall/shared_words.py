"""The words that a message shares with entries, as far as few entries have them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from errand.engine.memory.index import WordIndex, sql_condition
from errand.engine.memory.recall.message import ParsedMessage
from errand.engine.memory.vectors.base import VectorFilter
from errand.engine.memory.words.stop_words import ENGLISH
from errand.engine.memory.words.terms import queries_of, quoted

# A word that more entries have says nothing of one.
_MAX_ENTRIES = 50
# A name that more entries have is that of somebody who is always there.
_MAX_ENTRIES_WITH_NAME = 6
# A word of at most this many entries is rare, and an identifier among these is enough by itself.
_MAX_RARE = 3
_HITS = "SELECT rowid FROM entry_words WHERE entry_words MATCH ?{also} LIMIT ?"
_AMONG = " AND EXISTS (SELECT 1 FROM entries WHERE number = +entry_words.rowid AND {condition})"


@dataclass(slots=True)
class SharedWords:
    """The words that one entry shares with a message, with the weight of each; a word of one entry weighs most.

    `names` are those of few entries that have a capital within a sentence of the message.
    """

    weights: dict[str, float] = field(default_factory=dict[str, float])
    identifiers: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])

    def weight(self, count: int) -> float:
        """Return the weight of the `count` rarest words together: many common words make no evidence."""
        return sum(sorted(self.weights.values(), reverse=True)[:count])

    def rarest(self, count: int) -> tuple[str, ...]:
        return tuple(sorted(self.weights, key=lambda word: -self.weights[word])[:count])


def shared_words(message: ParsedMessage, index: WordIndex, where: VectorFilter | None) -> Mapping[int, SharedWords]:
    """Return, by number, what entries share with the message. The weight of a word is the logarithm of its rarity."""
    total = index.last_number()
    shared: dict[int, SharedWords] = {}
    for term, queries in queries_of(message.terms, message.parts[0], ENGLISH, index.vocabulary):
        numbers = _entries_with(" OR ".join(queries), index, where, _MAX_ENTRIES + 1)
        if 0 < len(numbers) <= _MAX_ENTRIES:
            for number in numbers:
                weight = math.log((total + 1) / len(numbers))
                entry_words = shared.setdefault(number, SharedWords())
                entry_words.weights[term] = weight
                if term in message.names and len(numbers) <= _MAX_ENTRIES_WITH_NAME:
                    entry_words.names.append(term)
    for identifier in message.identifiers:
        numbers = _entries_with(quoted(identifier), index, where, _MAX_RARE + 1)
        if len(numbers) <= _MAX_RARE:
            for number in numbers:
                shared.setdefault(number, SharedWords()).identifiers.append(identifier)
    return shared


def _entries_with(match: str, index: WordIndex, where: VectorFilter | None, limit: int) -> list[int]:
    condition, values = sql_condition(where)
    query = _HITS.format(also=_AMONG.format(condition=condition) if condition else "")
    return [int(row[0]) for row in index.connection.execute(query, (match, *values, limit))]
