"""Handlers of conversations, nodes and search."""

from datetime import UTC, datetime

import msgspec

from errand.engine.agent.tasks.task_target import with_workspace, workspace_folder
from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.server.route import Route, checked_limit, checked_part
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.storage.search.query import parse_query
from errand.engine.tools.call_display import with_displays
from errand.protocol.agents import first_agent
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_FIND_NODES,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    CONVERSATION_NODES,
    CONVERSATION_SEARCH,
    CONVERSATION_TREE,
    Conversation,
    ConversationChangeParams,
    ConversationChangeResult,
    ConversationFindNodesParams,
    ConversationFindNodesResult,
    ConversationGetParams,
    ConversationGetResult,
    ConversationListParams,
    ConversationListResult,
    ConversationNodesParams,
    ConversationNodesResult,
    ConversationSearchParams,
    ConversationSearchResult,
    ConversationTreeParams,
    ConversationTreeResult,
    TreeHead,
    TurnTaking,
)

_MAX_TITLE_LENGTH = 500
_MAX_KEPT_NODES = 100
_MAX_REPLIES = 100
# Longer than any search query: such a text was pasted by mistake.
_MAX_SEARCH_LENGTH = 5_000


async def list_conversations(
    services: Services, session: ClientSession, params: ConversationListParams
) -> ConversationListResult:
    page = await services.database.conversations.page(
        checked_limit(params.limit),
        params.cursor,
        params.archived,
        params.pinned,
        id_part=checked_part("idPart", params.id_part),
        title_part=checked_part("titlePart", params.title_part),
        workspace=params.workspace,
    )
    if not params.with_tasks:
        return page
    newest = [await services.database.tasks.newest(1, conversation.id) for conversation in page.conversations]
    return msgspec.structs.replace(page, tasks=tuple(task for tasks in newest for task in tasks))


async def get(services: Services, session: ClientSession, params: ConversationGetParams) -> ConversationGetResult:
    return ConversationGetResult(conversation=await _find(services, params.conversation_id))


async def nodes(services: Services, session: ClientSession, params: ConversationNodesParams) -> ConversationNodesResult:
    limit = checked_limit(params.limit)
    await _find(services, params.conversation_id)
    for node_id in (params.leaf_id, params.before_id):
        if node_id is not None:
            await _check_node(services, params.conversation_id, node_id)
    leaf_id = params.leaf_id or await _head(services, params)
    if leaf_id is None:
        return ConversationNodesResult(nodes=(), has_more=False)
    if params.to_leaf:
        leaf_id = await services.database.trees.newest_leaf(leaf_id)
    page, has_more = await services.database.nodes.branch(leaf_id, limit, params.before_id)
    forks = await services.database.trees.forks(page)
    current = (with_displays(services.log.deltas.with_text_so_far(node)) for node in page)
    return ConversationNodesResult(nodes=tuple(current), has_more=has_more, forks=forks)


async def tree(services: Services, session: ClientSession, params: ConversationTreeParams) -> ConversationTreeResult:
    conversation = await _find(services, params.conversation_id)
    tasks = await services.database.tasks.of_conversation(conversation.id)
    outline = await services.database.trees.outline(conversation.id, tasks)
    agents = await services.database.agents.list(conversation.id)
    heads = ((agent.id, agent.head_id) for agent in agents)
    return ConversationTreeResult(
        nodes=outline.nodes,
        agents=agents,
        tasks=tasks,
        heads=tuple(
            TreeHead(agent_id=agent_id, node_id=outline.nearest.get(head_id) if head_id is not None else None)
            for agent_id, head_id in heads
        ),
    )


async def find_nodes(
    services: Services, session: ClientSession, params: ConversationFindNodesParams
) -> ConversationFindNodesResult:
    part, limit = checked_part("idPart", params.id_part), checked_limit(params.limit)
    return await services.database.trees.find(part, params.conversation_id, limit)


async def search(
    services: Services, session: ClientSession, params: ConversationSearchParams
) -> ConversationSearchResult:
    limit, text = checked_limit(params.limit), params.text[:_MAX_SEARCH_LENGTH]
    query = parse_query(text)
    hits = await services.database.search.find(text, limit, params.conversation_id)
    has_titles = params.conversation_id is None and not query.has_operators
    titles = await services.database.titles.find(text, limit) if has_titles else ()
    return ConversationSearchResult(hits=hits, titles=titles, words=query.text, advice=query.advice)


async def change(
    services: Services, session: ClientSession, params: ConversationChangeParams
) -> ConversationChangeResult:
    folder = None if params.workspace is None else await workspace_folder(params.workspace)
    await _check_change(services, params)
    was_archived = False

    def apply(old: Conversation) -> Conversation:
        nonlocal was_archived
        was_archived = old.archived
        archived = old.archived if params.archived is None else params.archived
        return msgspec.structs.replace(
            old if folder is None else with_workspace(old, folder),
            title=old.title if params.title is None else services.keys.redactor(params.title.strip()),
            # Renaming or pinning keeps the position in the list; archiving restarts the count of days.
            updated_at=old.updated_at if archived == old.archived else datetime.now(UTC),
            archived=archived,
            pinned=old.pinned if params.pinned is None else params.pinned,
            turn_taking=old.turn_taking if params.turn_taking is None else params.turn_taking,
            kept=_kept(old.kept, params),
            network=params.network or old.network,
            remembers=old.remembers if params.remembers is None else params.remembers,
            recalls=old.recalls if params.recalls is None else params.recalls,
        )

    new = await services.runner.changes.change(params.conversation_id, apply)
    if new.archived and not was_archived:
        await services.tools.sessions.close_conversation(new.id)
    if params.approve is not None:
        new = await services.runner.modes.change(new.id, params.approve, session.client_name, attended=True)
    return ConversationChangeResult(conversation=new)


async def _check_change(services: Services, params: ConversationChangeParams) -> None:
    conversation = await _find(services, params.conversation_id)
    if params.title is not None and not 1 <= len(params.title.strip()) <= _MAX_TITLE_LENGTH:
        raise InvalidParams(f"title: a text of 1 to {_MAX_TITLE_LENGTH} characters.")
    for node_id in (params.keep_node_id, params.release_node_id):
        if node_id is not None:
            await _check_node(services, conversation.id, node_id)
    if params.turn_taking is not None:
        await _check_turns(services, conversation.id, params.turn_taking)


def _kept(old: tuple[str, ...], params: ConversationChangeParams) -> tuple[str, ...]:
    node_ids = tuple(node_id for node_id in old if node_id != params.release_node_id)
    if params.keep_node_id is None or params.keep_node_id in node_ids:
        return node_ids
    if len(node_ids) >= _MAX_KEPT_NODES:
        raise InvalidParams(f"keepNodeId: {_MAX_KEPT_NODES} messages of this conversation are kept; release one first.")
    return (*node_ids, params.keep_node_id)


async def _find(services: Services, conversation_id: str) -> Conversation:
    conversation = await services.database.conversations.get(conversation_id)
    if conversation is None:
        raise NotFound(f"There is no conversation {conversation_id!r}.")
    return conversation


async def _check_node(services: Services, conversation_id: str, node_id: str) -> None:
    node = await services.database.nodes.get(node_id)
    if node is None or node.conversation_id != conversation_id:
        raise NotFound(f"There is no node {node_id!r} in conversation {conversation_id!r}.")


async def _head(services: Services, params: ConversationNodesParams) -> str | None:
    """Return the head of the named agent, else of the first one; in a tree without agents the newest node."""
    agents = await services.database.agents.list(params.conversation_id)
    if params.agent_id is not None:
        named = next((agent for agent in agents if agent.id == params.agent_id), None)
        if named is None:
            raise NotFound(f"There is no agent {params.agent_id!r} in this conversation.")
        return named.head_id
    agent = first_agent(agents)
    return agent.head_id if agent is not None else await services.database.nodes.newest(params.conversation_id)


async def _check_turns(services: Services, conversation_id: str, rule: TurnTaking) -> None:
    if not 1 <= rule.limit <= _MAX_REPLIES:
        raise InvalidParams(f"limit: a number from 1 to {_MAX_REPLIES}.")
    agents = {agent.id for agent in await services.database.agents.list(conversation_id) if agent.beside is None}
    if rule.rule == "moderator" and rule.moderator_id not in agents:
        raise InvalidParams("moderatorId: with this rule one of the conversation's agents moderates. Name it.")


HANDLERS = (
    Route(CONVERSATION_LIST, list_conversations),
    Route(CONVERSATION_GET, get),
    Route(CONVERSATION_NODES, nodes),
    Route(CONVERSATION_TREE, tree),
    Route(CONVERSATION_FIND_NODES, find_nodes),
    Route(CONVERSATION_SEARCH, search),
    Route(CONVERSATION_CHANGE, change),
)
