"""Finds conversations, tasks and messages by any part of their ids that no other has; conversations by title too."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from errand.cli.arguments import UsageError
from errand.cli.terminal.text import one_line, short_id
from errand.client.connection import Connection
from errand.protocol.agents import AGENT_LIST, Agent, AgentListParams
from errand.protocol.asks import Ask, Grant
from errand.protocol.conversations import (
    CONVERSATION_FIND_NODES,
    CONVERSATION_LIST,
    Conversation,
    ConversationFindNodesParams,
    ConversationListParams,
    FoundNode,
)
from errand.protocol.memory import Fact
from errand.protocol.tasks import TASK_LIST, Task, TaskListParams
from errand.text.translation import tr

Found = TypeVar("Found", Agent, Ask, Conversation, Fact, FoundNode, Grant, Task)

_MAX_MATCHES = 50
_SHOWN = 8
_MAX_PART_LENGTH = 200
_MIN_TITLE_PART_LENGTH = 3


class UnusableMatch(UsageError):
    """There are several matches, which the text lists, or the only one has no tasks."""


async def find_conversation(connection: Connection, part: str, *, exactly: bool = False) -> Conversation:
    """By its id, by that of one of its tasks, or by its title; archived ones too.

    Raises `UsageError` for none and for several. With `exactly`, for what cannot be undone, one whose id ends with the
    part is no better than one that has it elsewhere.
    """
    if part.strip() and len(part) <= _MAX_PART_LENGTH:
        params = ConversationListParams(id_part=part, archived=None, limit=_MAX_MATCHES)
        page = await connection.call(CONVERSATION_LIST, params)
        if page.conversations:
            has_more = page.next_cursor is not None
            return only_match(part, page.conversations, "conversations", _title, has_more=has_more, exactly=exactly)
        if tasks := await _tasks(connection, part):
            task = only_match(part, tasks, "tasks", _request, exactly=exactly)
            return await find_conversation(connection, task.conversation_id)
        if titled := await _titled(connection, part.strip()):
            return titled
    raise UsageError(
        tr("No conversation has the id or title {part!r}. List them: errand list").format(part=part[:_MAX_PART_LENGTH])
    )


async def find_task(connection: Connection, part: str) -> Task:
    """By its id, those under way first; or the newest one of a conversation, which is found by its id or title.

    Raises `UsageError` for none and for several.
    """
    if part.strip() and len(part) <= _MAX_PART_LENGTH:
        if found := await _tasks(connection, part):
            working = [task for task in found if task.ended_at is None]
            return only_match(part, working or found, "tasks", _request)
        try:
            return await _newest_task(connection, await find_conversation(connection, part))
        except UnusableMatch:
            raise
        except UsageError:
            pass
    raise UsageError(tr("No task has the id {part!r}. List them: errand tasks").format(part=part[:_MAX_PART_LENGTH]))


async def find_node(connection: Connection, conversation: Conversation, part: str) -> FoundNode:
    """A message or reply on any branch. Raises `UsageError` for none and for several."""
    if part.strip() and len(part) <= _MAX_PART_LENGTH:
        params = ConversationFindNodesParams(id_part=part, conversation_id=conversation.id, limit=_MAX_MATCHES)
        page = await connection.call(CONVERSATION_FIND_NODES, params)
        if found := [node for node in page.nodes if node.role in ("user", "assistant")]:
            return only_match(part, found, "messages", _found_text, has_more=page.has_more)
    raise UsageError(
        tr("No message in this conversation has the id {part!r}. List them: errand tree {id}").format(
            part=part[:_MAX_PART_LENGTH], id=short_id(conversation.id)
        )
    )


async def find_message(connection: Connection, part: str) -> FoundNode:
    """A message, reply or result of any conversation; one whose id ends with the part is no better than others.

    Raises `UsageError` for none and for several.
    """
    if part.strip() and len(part) <= _MAX_PART_LENGTH:
        params = ConversationFindNodesParams(id_part=part, limit=_MAX_MATCHES)
        page = await connection.call(CONVERSATION_FIND_NODES, params)
        if page.nodes:
            return only_match(part, page.nodes, "messages", _found_text, has_more=page.has_more, exactly=True)
    raise UsageError(
        tr("No message has the id {part!r}. errand show and errand tree print ids.").format(
            part=part[:_MAX_PART_LENGTH]
        )
    )


async def find_agent_anywhere(connection: Connection, part: str) -> Agent:
    """By its id, or by a name that no other agent has. Raises `UsageError` for none and for several."""
    every = (await connection.call(AGENT_LIST, AgentListParams())).agents
    name = part.removeprefix("@").casefold()
    found = [agent for agent in every if part and part in agent.id]
    if found := found or [agent for agent in every if agent.name.casefold() == name]:
        return only_match(part, found, "agents", _name)
    raise UsageError(
        tr("No agent has the id or name {part!r}. List them: errand agents CONVERSATION").format(
            part=part[:_MAX_PART_LENGTH]
        )
    )


def only_match(
    part: str,
    found: Sequence[Found],
    kind: str,
    text: Callable[[Found], str],
    *,
    has_more: bool = False,
    exactly: bool = False,
) -> Found:
    """The one whose id is the part, or else, unless `exactly`, ends with it, or else has it."""
    for one in found:
        if one.id == part:
            return one
    ending = [one for one in found if one.id.endswith(part)] if not exactly else []
    best = ending or found
    if len(best) == 1 and not has_more:
        return best[0]
    rows = [f"  {short_id(one.id)}  {one_line(text(one), 60)}" for one in best[:_SHOWN]]
    rest = [tr("  and {best} more").format(best=len(best) - _SHOWN)] if len(best) > _SHOWN else []
    form = tr("{number} or more {kind} match {part!r}:") if has_more else tr("{number} {kind} match {part!r}:")
    head = form.format(number=len(best), kind=kind, part=part)
    raise UnusableMatch("\n".join((head, *rows, *rest, tr("Type more of the id."))))


async def _tasks(connection: Connection, part: str) -> tuple[Task, ...]:
    return (await connection.call(TASK_LIST, TaskListParams(id_part=part, limit=_MAX_MATCHES))).tasks


async def _titled(connection: Connection, part: str) -> Conversation | None:
    """The conversation with this title, or this in its title."""
    if len(part) < _MIN_TITLE_PART_LENGTH:
        return None
    params = ConversationListParams(title_part=part, archived=None, limit=_MAX_MATCHES)
    found = (await connection.call(CONVERSATION_LIST, params)).conversations
    same = [one for one in found if one.title.casefold() == part.casefold()] or found
    return only_match(part, same, "conversations", _title) if same else None


async def _newest_task(connection: Connection, conversation: Conversation) -> Task:
    """The newest one under way, else the newest; one of a sub-agent only if there is no other."""
    found = (await connection.call(TASK_LIST, TaskListParams(conversation_id=conversation.id))).tasks
    own = [task for task in found if task.parent_id is None] or found
    if not own:
        raise UnusableMatch(
            tr("No task has run in this conversation yet: {conversation}").format(conversation=_title(conversation))
        )
    return next((task for task in own if task.ended_at is None), own[0])


def _title(conversation: Conversation) -> str:
    return conversation.title or tr("untitled")


def _request(task: Task) -> str:
    return task.title or task.prompt


def _found_text(node: FoundNode) -> str:
    return node.text or node.role.replace("_", " ")


def _name(agent: Agent) -> str:
    return agent.name
