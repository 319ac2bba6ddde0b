"""Resolves the names in search operators to conversations and agents."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, TextClause, bindparam, select

from errand.engine.storage.search.query import SearchQuery
from errand.engine.storage.search.titles import TitleSearch
from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.tables import agents, conversations
from errand.protocol.conversations import Conversation

# Newest conversations matched by title: each adds a term to the index query.
_MAX_CONVERSATIONS = 50
# An import creates an agent of the same name for each conversation. Above this limit, the name is checked per node.
_MAX_AGENTS = 2_000
_KNOWN = select(conversations.c.id).where(conversations.c.id == bindparam("id"))
_NAMED = select(agents.c.id).limit(_MAX_AGENTS + 1)


@dataclass(frozen=True, slots=True)
class SearchScope:
    """`conversation_ids`: None means all, empty none. `roles` are "user" and "agent".

    `named` is set for a name of very many agents: then `author_ids` has only some of them, and `roles` includes
    "agent".
    """

    conversation_ids: tuple[str, ...] | None = None
    roles: tuple[str, ...] = ()
    author_ids: tuple[str, ...] = ()
    named: str = ""
    is_empty: bool = False


class ScopeFinder:
    def __init__(
        self,
        reader: Reader,
        titles: TitleSearch,
        is_named: ColumnElement[bool] | TextClause,
        has_former: ColumnElement[bool] | TextClause,
    ) -> None:
        self._reader = reader
        self._named = _NAMED.where(is_named)
        self._with_former = select(conversations.c.body).where(has_former)
        self._titles = titles

    async def find(self, query: SearchQuery, conversation_id: str | None) -> SearchScope:
        conversation_ids = await self._conversation_ids(query, conversation_id)
        roles = tuple(sender.lower() for sender in query.senders if sender.lower() in ("user", "agent"))
        names = tuple(ascii_lower(sender) for sender in query.senders if sender.lower() not in ("user", "agent"))
        by_name = {name: await self._agents(name) for name in names}
        author_ids = tuple(agent_id for agent_ids in by_name.values() for agent_id in agent_ids)
        is_empty = conversation_ids == () or bool(query.senders and not roles and not author_ids)
        if len(names) == 1 and not roles and len(author_ids) > _MAX_AGENTS:
            return SearchScope(conversation_ids, ("agent",), author_ids, names[0], is_empty)
        return SearchScope(conversation_ids, roles, author_ids, "", is_empty)

    async def _conversation_ids(self, query: SearchQuery, conversation_id: str | None) -> tuple[str, ...] | None:
        if not query.conversations:
            return None if conversation_id is None else (conversation_id,)
        conversation_ids: list[str] = []
        for name in query.conversations:
            rows = await self._reader.rows(_KNOWN, {"id": name})
            titles = () if rows else await self._titles.find(name, _MAX_CONVERSATIONS)
            conversation_ids += [row.id for row in rows] + [conversation.id for conversation in titles]
        if conversation_id is not None:
            return (conversation_id,) if conversation_id in conversation_ids else ()
        return tuple(dict.fromkeys(conversation_ids))

    async def _agents(self, name: str) -> tuple[str, ...]:
        present = [row.id for row in await self._reader.rows(self._named, {"name": name})]
        left = await self._reader.structs(self._with_former, Conversation)
        former = [agent.id for conversation in left for agent in conversation.former if ascii_lower(agent.name) == name]
        return (*present, *former)


def ascii_lower(name: str) -> str:
    """Lower case as in SQLite's `lower`: ASCII letters only."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
