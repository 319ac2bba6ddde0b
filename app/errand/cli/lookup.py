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
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from errand.protocol.tasks.task import Task
from errand.text.translation import tr

RecordT = TypeVar("RecordT", Agent, Ask, Conversation, Fact, FoundNode, Grant, Task)

_MAX_MATCHES = 50
_MAX_LISTED = 8
_MAX_PART_LENGTH = 200
_MIN_TITLE_PART_LENGTH = 3


class UnusableMatch(UsageError):
    """There are several matches, which the text lists, or the only one has no tasks."""


async def find_conversation(connection: Connection, part: str, *, exactly: bool = False) -> Conversation:
    """Find a conversation, also an archived one, by a part of its id, of the id of one of its tasks, or of its title.

    Raises `UsageError` for none and for several. With `exactly`, which is for what cannot be undone, an id that ends
    with the part is not preferred to one that has it elsewhere.
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
        if match := await _find_by_title(connection, part.strip()):
            return match
    raise UsageError(
        tr("No conversation has the id or title {part!r}. List them: errand list").format(part=part[:_MAX_PART_LENGTH])
    )


async def find_task(connection: Connection, part: str) -> Task:
    """Find a task by a part of its id, running ones first, or the newest one of a conversation.

    Raises `UsageError` for none and for several.
    """
    if part.strip() and len(part) <= _MAX_PART_LENGTH:
        if tasks := await _tasks(connection, part):
            working = [task for task in tasks if task.outcome.ended_at is None]
            return only_match(part, working or tasks, "tasks", _request)
        try:
            return await _newest_task(connection, await find_conversation(connection, part))
        except UnusableMatch:
            raise
        except UsageError:
            pass
    raise UsageError(tr("No task has the id {part!r}. List them: errand tasks").format(part=part[:_MAX_PART_LENGTH]))


async def find_node(connection: Connection, conversation: Conversation, part: str) -> FoundNode:
    """Find a message or reply on any branch. Raises `UsageError` for none and for several."""
    if part.strip() and len(part) <= _MAX_PART_LENGTH:
        params = ConversationFindNodesParams(id_part=part, conversation_id=conversation.id, limit=_MAX_MATCHES)
        page = await connection.call(CONVERSATION_FIND_NODES, params)
        if nodes := [node for node in page.nodes if node.role in ("user", "assistant")]:
            return only_match(part, nodes, "messages", _node_text, has_more=page.has_more)
    raise UsageError(
        tr("No message in this conversation has the id {part!r}. List them: errand tree {id}").format(
            part=part[:_MAX_PART_LENGTH], id=short_id(conversation.id)
        )
    )


async def find_message(connection: Connection, part: str) -> FoundNode:
    """Find a message, reply or result of any conversation; an id that ends with the part is not preferred.

    Raises `UsageError` for none and for several.
    """
    if part.strip() and len(part) <= _MAX_PART_LENGTH:
        params = ConversationFindNodesParams(id_part=part, limit=_MAX_MATCHES)
        page = await connection.call(CONVERSATION_FIND_NODES, params)
        if page.nodes:
            return only_match(part, page.nodes, "messages", _node_text, has_more=page.has_more, exactly=True)
    raise UsageError(
        tr("No message has the id {part!r}. errand show and errand tree print ids.").format(
            part=part[:_MAX_PART_LENGTH]
        )
    )


async def find_agent_anywhere(connection: Connection, part: str) -> Agent:
    """Find an agent by its id, or by a name that no other agent has. Raises `UsageError` for none and for several."""
    agents = (await connection.call(AGENT_LIST, AgentListParams())).agents
    name = part.removeprefix("@").casefold()
    matches = [agent for agent in agents if part and part in agent.id]
    if matches := matches or [agent for agent in agents if agent.name.casefold() == name]:
        return only_match(part, matches, "agents", _name)
    raise UsageError(
        tr("No agent has the id or name {part!r}. List them: errand agents CONVERSATION").format(
            part=part[:_MAX_PART_LENGTH]
        )
    )


def only_match(
    part: str,
    matches: Sequence[RecordT],
    kind: str,
    text: Callable[[RecordT], str],
    *,
    has_more: bool = False,
    exactly: bool = False,
) -> RecordT:
    """Return the match whose id is the part, or else, unless `exactly`, ends with it, or else has it.

    Raises `UnusableMatch` if there are several.
    """
    for match in matches:
        if match.id == part:
            return match
    ending = [match for match in matches if match.id.endswith(part)] if not exactly else []
    best = ending or matches
    if len(best) == 1 and not has_more:
        return best[0]
    rows = [f"  {short_id(match.id)}  {one_line(text(match), 60)}" for match in best[:_MAX_LISTED]]
    rest = [tr("  and {best} more").format(best=len(best) - _MAX_LISTED)] if len(best) > _MAX_LISTED else []
    form = tr("{number} or more {kind} match {part!r}:") if has_more else tr("{number} {kind} match {part!r}:")
    head = form.format(number=len(best), kind=kind, part=part)
    raise UnusableMatch("\n".join((head, *rows, *rest, tr("Type more of the id."))))


async def _tasks(connection: Connection, part: str) -> tuple[Task, ...]:
    return (await connection.call(TASK_LIST, TaskListParams(id_part=part, limit=_MAX_MATCHES))).tasks


async def _find_by_title(connection: Connection, part: str) -> Conversation | None:
    """Find the conversation that has this title, or that alone has it in its title."""
    if len(part) < _MIN_TITLE_PART_LENGTH:
        return None
    params = ConversationListParams(title_part=part, archived=None, limit=_MAX_MATCHES)
    conversations = (await connection.call(CONVERSATION_LIST, params)).conversations
    same = [conversation for conversation in conversations if conversation.title.casefold() == part.casefold()]
    return only_match(part, same or conversations, "conversations", _title) if conversations else None


async def _newest_task(connection: Connection, conversation: Conversation) -> Task:
    """Find the newest running task, else the newest; that of a sub-agent only if there is no other."""
    tasks = (await connection.call(TASK_LIST, TaskListParams(conversation_id=conversation.id))).tasks
    own = [task for task in tasks if task.origin.parent_id is None] or tasks
    if not own:
        raise UnusableMatch(
            tr("No task has run in this conversation yet: {conversation}").format(conversation=_title(conversation))
        )
    return next((task for task in own if task.outcome.ended_at is None), own[0])


def _title(conversation: Conversation) -> str:
    return conversation.title or tr("untitled")


def _request(task: Task) -> str:
    return task.origin.title or task.request.prompt


def _node_text(node: FoundNode) -> str:
    return node.text or node.role.replace("_", " ")


def _name(agent: Agent) -> str:
    return agent.name
