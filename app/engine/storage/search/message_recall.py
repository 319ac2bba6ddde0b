"""Finds earlier messages for a task by full text: all words first, then the rarest ones."""

from collections import defaultdict
from datetime import datetime

from app.engine.storage.search.hits import NodeSearch
from app.engine.storage.search.query import parse_query, parse_words
from app.protocol.conversations import SearchHit
from app.protocol.tasks import Task

_MOST_WORDS = 8
# Hits per word: more of them make a word common, which then counts little.
_PER_WORD = 60
_SHORTEST_WORD = 3
# Hits of the task itself are dropped afterwards.
_SPARE = 40
_COMMON_WORDS = """
the and for was were are you that this with what when where which who how did does had has have from not but can could
would should will about into than then them they there their our your his her its any all some out been
"""
_COMMON = frozenset(_COMMON_WORDS.split())


class MessageRecall:
    """The messages that a task may find: all but those since its start in its own conversation."""

    def __init__(self, search: NodeSearch, task: Task) -> None:
        self._search = search
        self._conversation_id = task.conversation_id
        self._since: datetime = task.started_at

    async def find(self, query: str, limit: int) -> tuple[SearchHit, ...]:
        """Those with all the words, newest first; then those with the rarest words."""
        found = {hit.node_id: hit for hit in await self._hits(query, limit + _SPARE)}
        words = parse_query(query)
        if len(found) < limit and not words.has_operators:
            for hit in await self._with_some(words.words):
                found.setdefault(hit.node_id, hit)
        return tuple(found.values())[:limit]

    async def _hits(self, query: str, limit: int) -> list[SearchHit]:
        return [hit for hit in await self._search.find(query, limit) if not self._is_of_task(hit)]

    async def _with_some(self, text: str) -> list[SearchHit]:
        """The score of a message is the sum over its words of one through the number of messages with the word."""
        words = [word for word in parse_words(text).phrases if _is_telling(word)][:_MOST_WORDS]
        scores, hits = defaultdict[str, float](float), dict[str, SearchHit]()
        for word in words if len(words) > 1 else ():
            found = await self._hits(f'"{word}"', _PER_WORD)
            for hit in found:
                scores[hit.node_id] += 1 / len(found)
                hits.setdefault(hit.node_id, hit)
        return sorted(hits.values(), key=lambda hit: (-scores[hit.node_id], -hit.created_at.timestamp()))

    def _is_of_task(self, hit: SearchHit) -> bool:
        return hit.conversation_id == self._conversation_id and hit.created_at >= self._since


def _is_telling(word: str) -> bool:
    return len(word) >= _SHORTEST_WORD and word.lower() not in _COMMON
