"""`errand show`: a branch of a conversation in order, whole."""

from typing import Annotated

import msgspec

from errand.cli.arguments import CONVERSATION_HELP
from errand.cli.command import Command
from errand.cli.commands.conversations.listing import conversation_state
from errand.cli.lookup import find_conversation, find_node
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.rendering.transcript import TranscriptRenderer, history
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import one_line, short_id, short_path
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.number_format import moment_text
from errand.client.safe_text import escape_hidden_line
from errand.protocol.agents import AGENT_LIST, AgentListParams
from errand.protocol.conversations import CONVERSATION_NODES, Conversation, ConversationNodesParams, Node
from errand.protocol.events import AgentUpdate
from errand.protocol.tasks import TASK_LIST, Task, TaskListParams
from errand.system.paths import Paths
from errand.text.translation import tr, trn

_PAGE = 500  # the engine's maximum
_MARKS = tr("The line above a message names its author and ends with its id, for errand edit,\nretry, fork and move.\n")


class ShowOptions(CommandOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    branch: Annotated[
        str | None,
        Option("--branch", "show the branch that ends in this message (default: the current one)", "MESSAGE"),
    ] = None
    last: Annotated[int | None, Option("--last", "show only the last N messages, replies and results", "N")] = None
    no_thinking: Annotated[bool, Flag("--no-thinking", "hide thinking")] = False
    json: Annotated[bool, Flag("--json", "print messages, replies and results as JSON lines")] = False


async def show(options: ShowOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand show") as connection:
        conversation = await find_conversation(connection, options.conversation)
        leaf = (await find_node(connection, conversation, options.branch)).id if options.branch is not None else None
        nodes, has_more = await _branch(connection, conversation.id, leaf, options.last)
        if options.json:
            for node in nodes:
                terminal.line(msgspec.json.encode(node).decode())
            return 0
        tasks = await _tasks(connection, conversation.id)
        transcript = TranscriptRenderer(terminal.style, terminal.width, thinking=not options.no_thinking, heads=True)
        for agent in (await connection.call(AGENT_LIST, AgentListParams(conversation_id=conversation.id))).agents:
            transcript.event(AgentUpdate(agent=agent))
    for line in _about(conversation, tasks, terminal):
        terminal.line(line)
    if has_more:
        terminal.line(terminal.style.dim(tr("… earlier messages are not shown")))
    for event in history(nodes, tasks):
        terminal.write(transcript.event(event))
    if not nodes:
        terminal.line(
            tr("No messages yet. Start: errand run --conversation {id} '…'").format(id=short_id(conversation.id))
        )
    for task in tasks:
        if task.ended_at is None and task.parent_id is None:
            _under_way(task, terminal)
    return 0


SHOW = Command(ShowOptions, show, epilog=_MARKS)


async def _branch(
    connection: Connection, conversation_id: str, leaf: str | None, last: int | None
) -> tuple[list[Node], bool]:
    """The nodes from the first, or the last ones; true if there are more above."""
    pages: list[tuple[Node, ...]] = []
    before, has_more = None, True
    while has_more and (last is None or sum(map(len, pages)) < last):
        limit = min(_PAGE, _PAGE if last is None else last - sum(map(len, pages)))
        params = ConversationNodesParams(conversation_id=conversation_id, leaf_id=leaf, before_id=before, limit=limit)
        page = await connection.call(CONVERSATION_NODES, params)
        pages.append(page.nodes)
        has_more = page.has_more
        before = page.nodes[0].id if page.nodes else None
    return [node for page in reversed(pages) for node in page], has_more


async def _tasks(connection: Connection, conversation_id: str) -> list[Task]:
    found: list[Task] = []
    cursor, is_first = None, True
    while is_first or cursor is not None:
        params = TaskListParams(conversation_id=conversation_id, limit=_PAGE, cursor=cursor)
        page = await connection.call(TASK_LIST, params)
        found += page.tasks
        cursor, is_first = page.next_cursor, False
    return found


def _about(conversation: Conversation, tasks: list[Task], terminal: Terminal) -> list[str]:
    style = terminal.style
    own = [task for task in tasks if task.parent_id is None]
    title = one_line(escape_hidden_line(conversation.title), terminal.width) or tr("(untitled)")
    facts = style.join(
        conversation.id,
        conversation_state(own[0] if own else None),
        escape_hidden_line(short_path(conversation.workspace)),
        tr("since {created_at}").format(created_at=moment_text(conversation.created_at)),
        trn("{n} task", "{n} tasks", len(own)) if own else "",
        "archived" if conversation.archived else "",
    )
    return [style.bold(title), style.dim(facts), ""]


def _under_way(task: Task, terminal: Terminal) -> None:
    name = short_id(task.id)
    terminal.line()
    match task.status:
        case "waiting_user":
            text = tr("Task {name} is waiting for you. Answer it: errand answer {name}").format(name=name)
        case "interrupted" | "paused":
            text = tr("Task {name} is {status}. Resume it: errand resume {name}").format(name=name, status=task.status)
        case _:
            text = tr("Task {name} is running. Follow it: errand attach {name}").format(name=name)
    terminal.line(terminal.style.amber(text))
