"""Search in the `tsvector` indexes of PostgreSQL, whose functions are in postgres/schema.py."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import sqlalchemy as sql
from sqlalchemy import BigInteger, Row, bindparam
from sqlalchemy.sql.expression import Executable

from errand.engine.storage.records.conversations import conversations_read
from errand.engine.storage.search.full_text import COLUMNS
from errand.engine.storage.search.hits import MARK, UNMARK
from errand.engine.storage.search.query import QueryWords, SearchQuery, parse_words
from errand.engine.storage.search.scope import SearchScope
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Value
from errand.engine.storage.sqlite.search_index import facet
from errand.protocol.conversations import Conversation

_NODES = f"""
    SELECT {COLUMNS}, node_texts.text AS snippet
    FROM node_texts
    JOIN nodes ON nodes.number = node_texts.number
    JOIN conversations ON conversations.id = nodes.conversation_id
    WHERE node_texts.number BETWEEN :first AND :last {{also}}
    ORDER BY node_texts.number DESC LIMIT :limit
"""
_SPAN = "nodes.created_at >= :after AND nodes.created_at < :before"
_OF_AGENT = """
    EXISTS (SELECT 1 FROM agents WHERE agents.id = errand_json(nodes.body) ->> 'author'
    AND errand_name(agents.body) = :named)
"""
_TITLES = """
    SELECT body FROM conversations WHERE {matches} ORDER BY updated_at DESC, id DESC LIMIT :limit
"""
_NUMBERS = (bindparam("first", type_=BigInteger), bindparam("last", type_=BigInteger))
_WORD = re.compile(r"[^\W_]+")
# Words of a snippet, and characters on both sides of a match in which they are looked for.
_LENGTH = 16
_NEAR = 400
# Matches of a word that are looked at.
_MAX_MATCHES = 50


class TextVectorIndex:
    is_named = sql.text("errand_name(agents.body) = :name")
    has_former = sql.text("""strpos(conversations.body, '"former":[{') > 0""")

    async def complete(self) -> None:
        """Nothing waits: the database keeps a list of its own of what its index has not taken in."""

    def query(
        self, query: SearchQuery, words: QueryWords, scope: SearchScope
    ) -> tuple[Executable, Mapping[str, Value]]:
        matches, parameters = _matches("node_texts.words", words.phrases, words.unfinished)
        conditions = [_SPAN] if query.has_period else []
        if words.phrases:
            conditions.append(matches)
        if scope.conversation_ids is not None:
            conditions.append(f"nodes.conversation_id IN ({_names('c', scope.conversation_ids, parameters)})")
        if query.senders:
            listed = () if scope.named else scope.author_ids
            senders = [*(facet("from", role) for role in scope.roles), *(facet("by", author) for author in listed)]
            conditions.append(f"facets && ARRAY[{_names('s', map(str.lower, senders), parameters)}]")
        if query.tools:
            tools = (facet("tool", tool).lower() for tool in query.tools)
            conditions.append(f"facets && ARRAY[{_names('t', tools, parameters)}]")
        if scope.named:
            conditions.append(_OF_AGENT)
            parameters["named"] = scope.named
        also = "".join(f" AND {condition}" for condition in conditions)
        return sql.text(_NODES.format(also=also)).bindparams(*_NUMBERS), parameters

    def snippet(self, row: Row[Any], words: QueryWords) -> str:
        snippet: str = row.snippet or ""
        return marked_snippet(snippet, words.phrases, words.unfinished) if words.phrases else snippet[:160]


class TextVectorTitles:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, text: str, limit: int = 20) -> tuple[Conversation, ...]:
        parsed = parse_words(text)
        if not parsed.phrases:
            return ()
        matches, parameters = _matches("errand_vector(title)", parsed.phrases, parsed.is_open)
        statement = sql.text(_TITLES.format(matches=matches))
        return await conversations_read(self._reader, statement, {**parameters, "limit": limit})


def _matches(vector: str, phrases: Sequence[str], unfinished: bool) -> tuple[str, dict[str, Value]]:
    """Return a condition that all phrases occur; the last word of the last may be incomplete."""
    last = len(phrases) - 1
    queries = (
        f"errand_query(:w{number}, {'true' if unfinished and number == last else 'false'})"
        for number in range(len(phrases))
    )
    return f"{vector} @@ ({' && '.join(queries)})", {f"w{number}": phrase for number, phrase in enumerate(phrases)}


def _names(kind: str, values: Iterable[str], parameters: dict[str, Value]) -> str:
    """Return a list of parameters for these values."""
    own: dict[str, Value] = {f"{kind}{number}": value for number, value in enumerate(values)}
    parameters |= own
    return ", ".join(f":{name}" for name in own)


class _Folding(dict[int, int]):
    """Each character without case and diacritics, one for one, so that places stay the same."""

    def __missing__(self, code: int) -> int:
        base = unicodedata.normalize("NFD", chr(code))[0].lower()
        self[code] = ord(base) if len(base) == 1 else code
        return self[code]


_folding = _Folding()


def marked_snippet(text: str, phrases: Sequence[str], unfinished: bool) -> str:
    """Sixteen words where most of the phrases stand together, with marks around these, like FTS5's `snippet`."""
    folded = text.lower() if text.isascii() else text.translate(_folding)
    patterns = [_pattern(phrase, unfinished and phrase is phrases[-1]) for phrase in phrases]
    hits = sorted(
        (match.start(), match.end(), number)
        for number, pattern in enumerate(patterns)
        for match in islice(pattern.finditer(folded), _MAX_MATCHES)
    )
    if not hits:
        return text[:160]
    starts = [begin for begin, _, _ in hits]
    ends = (bisect_left(starts, begin + _NEAR) for begin in starts)
    near = [{number for _, _, number in hits[first:end]} for first, end in enumerate(ends)]
    best = max(range(len(hits)), key=lambda place: (len(near[place]), -place))
    origin = max(0, hits[best][0] - _NEAR)
    spans = [match.span() for match in _WORD.finditer(folded, origin, hits[best][0] + _NEAR)]
    hit_index = next(number for number, (start, _) in enumerate(spans) if start >= hits[best][0])
    last = min(len(spans), max(0, hit_index - (_LENGTH - len(near[best])) // 2) + _LENGTH)
    first = max(0, last - _LENGTH)
    start, lead = (0, "") if first == 0 and origin == 0 else (spans[first][0], "…")
    is_end = last == len(spans) and _WORD.search(folded, spans[-1][1]) is None
    end, trail = (len(text), "") if is_end else (spans[last - 1][1], "…")
    return lead + _marked(text, start, end, hits) + trail


def _marked(text: str, start: int, end: int, found: Iterable[tuple[int, int, int]]) -> str:
    pieces: list[str] = []
    at = start
    for begin, until, _ in found:
        if begin >= at and until <= end:
            pieces += (text[at:begin], MARK, text[begin:until], UNMARK)
            at = until
    return "".join((*pieces, text[at:end]))


def _pattern(phrase: str, unfinished: bool) -> re.Pattern[str]:
    escaped = [re.escape(word) for word in _WORD.findall(phrase.translate(_folding))]
    tail = r"[^\W_]*" if unfinished else r"(?![^\W_])"
    return re.compile(r"(?<![^\W_])" + r"[\W_]+".join(escaped) + tail)
