"""The same search without an index, for databases other than SQLite."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, not_, or_, select
from sqlalchemy.sql.expression import Executable

from app.engine.storage.search.hits import MARK, UNMARK, HitBuilder, period_parameters
from app.engine.storage.search.query import QueryWords, SearchQuery, parse_query, parse_words
from app.engine.storage.search.scope import FORMER_ANYWHERE, NAME_ANYWHERE, ScopeFinder, SearchScope
from app.engine.storage.search.titles import TitleSearch
from app.engine.storage.sqlite.reader import Reader
from app.engine.storage.sqlite.tables import conversations, nodes
from app.protocol.conversations import SearchHit

_ROLES = {"user": "user", "agent": "assistant"}


class LikeSearch:
    """Also matches parts of words."""

    def __init__(self, reader: Reader, titles: TitleSearch) -> None:
        self._reader = reader
        self._scopes = ScopeFinder(reader, titles, NAME_ANYWHERE, FORMER_ANYWHERE)
        self._hits = HitBuilder(reader)

    async def find(self, text: str, limit: int = 20, conversation_id: str | None = None) -> tuple[SearchHit, ...]:
        query = parse_query(text)
        words = parse_words(query.words)
        if query.advice or not (words.phrases or query.has_operators):
            return ()
        scope = await self._scopes.find(query, conversation_id)
        if scope.is_empty:
            return ()
        rows = await self._reader.rows(_like_query(query, words, scope, limit))
        return await self._hits.build(rows, [_around(row.body, words.phrases) for row in rows])


def _like_query(query: SearchQuery, words: QueryWords, scope: SearchScope, limit: int) -> Executable:
    span = period_parameters(query)
    conditions: list[ColumnElement[bool]] = [
        nodes.c.created_at >= span["after"],
        nodes.c.created_at < span["before"],
        *(nodes.c.body.icontains(phrase, autoescape=True) for phrase in words.phrases),
    ]
    if scope.conversation_ids is not None:
        conditions.append(nodes.c.conversation_id.in_(scope.conversation_ids))
    if query.senders:
        conditions.append(_is_from(scope))
    if query.tools:
        conditions.append(or_(*(nodes.c.body.icontains(f'"tool":"{one}"', autoescape=True) for one in query.tools)))
    return (
        select(
            nodes.c.conversation_id,
            conversations.c.title,
            conversations.c.archived,
            nodes.c.id,
            nodes.c.role,
            nodes.c.created_at,
            nodes.c.number,
            nodes.c.parent_id,
            nodes.c.body,
        )
        .join_from(nodes, conversations, conversations.c.id == nodes.c.conversation_id)
        .where(and_(*conditions))
        .order_by(nodes.c.number.desc())
        .limit(limit)
    )


def _is_from(scope: SearchScope) -> ColumnElement[bool]:
    roles = nodes.c.role.in_([_ROLES[role] for role in scope.roles])
    own = nodes.c.role == "user", nodes.c.body.contains('"author":"engine"', autoescape=True)
    return or_(
        and_(roles, not_(and_(*own))),
        *(nodes.c.body.contains(f'"author":"{one}"', autoescape=True) for one in scope.author_ids),
    )


def _around(body: str, phrases: Sequence[str]) -> str:
    if not phrases:
        return ""
    start = body.lower().find(phrases[0].lower())
    end = start + len(phrases[0])
    return f"…{body[max(0, start - 60) : start]}{MARK}{body[start:end]}{UNMARK}{body[end : end + 60]}…"
