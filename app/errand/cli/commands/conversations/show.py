"""`errand show`: a branch of a conversation in order, whole."""

from typing import Annotated

from errand.cli.arguments import CONVERSATION_HELP
from errand.cli.command import Command
from errand.cli.commands.conversations.listing import conversation_state
from errand.cli.lookup import find_conversation, find_node
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.rendering.transcript import TranscriptRenderer
from errand.cli.terminal.text import one_line, short_id, short_path
from errand.client.connection import Connection
from errand.client.conversation.history import history
from errand.client.launch import connect
from errand.client.number_format import moment_text
from errand.client.safe_text import escape_hidden_line
from errand.protocol.agents import AGENT_LIST, AgentListParams
from errand.protocol.conversations import CONVERSATION_NODES, Conversation, ConversationNodesParams, Node
from errand.protocol.events import AgentUpdate
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.translation import marked, tr, trn

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


async def show(options: ShowOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand show") as connection:
        conversation = await find_conversation(connection, options.conversation)
        leaf = (await find_node(connection, conversation, options.branch)).id if options.branch is not None else None
        nodes, has_more = await _branch(connection, conversation.id, leaf, options.last)
        if output.as_json:
            output.each(nodes, lambda _: [])
            return 0
        tasks = await _tasks(connection, conversation.id)
        transcript = TranscriptRenderer(output.style, output.width, thinking=not options.no_thinking, heads=True)
        for agent in (await connection.call(AGENT_LIST, AgentListParams(conversation_id=conversation.id))).agents:
            transcript.event(AgentUpdate(agent=agent))
    for line in _about(conversation, tasks, output):
        output.line(line)
    if has_more:
        output.line(output.style.dim(tr("… earlier messages are not shown")))
    for event in history(nodes, tasks):
        output.terminal.write(transcript.event(event))
    if not nodes:
        output.line(
            tr("No messages yet. Start: errand run --conversation {id} '…'").format(id=short_id(conversation.id))
        )
    for task in tasks:
        if task.outcome.ended_at is None and task.origin.parent_id is None:
            _under_way(task, output)
    return 0


SHOW = Command(ShowOptions, show, epilog=_MARKS, json_help=marked("print messages, replies and results as JSON lines"))


async def _branch(
    connection: Connection, conversation_id: str, leaf: str | None, last: int | None
) -> tuple[list[Node], bool]:
    """Return all nodes, or the last ones, and whether there are more above."""
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
    tasks: list[Task] = []
    cursor, is_first = None, True
    while is_first or cursor is not None:
        params = TaskListParams(conversation_id=conversation_id, limit=_PAGE, cursor=cursor)
        page = await connection.call(TASK_LIST, params)
        tasks += page.tasks
        cursor, is_first = page.next_cursor, False
    return tasks


def _about(conversation: Conversation, tasks: list[Task], output: CommandOutput) -> list[str]:
    style = output.style
    own = [task for task in tasks if task.origin.parent_id is None]
    title = one_line(escape_hidden_line(conversation.title), output.width) or tr("(untitled)")
    facts = style.join(
        conversation.id,
        conversation_state(own[0] if own else None),
        escape_hidden_line(short_path(conversation.workspace)),
        tr("since {created_at}").format(created_at=moment_text(conversation.created_at)),
        trn("{n} task", "{n} tasks", len(own)) if own else "",
        "archived" if conversation.archived else "",
    )
    return [style.bold(title), style.dim(facts), ""]


def _under_way(task: Task, output: CommandOutput) -> None:
    name = short_id(task.id)
    output.line()
    match task.activity.status:
        case "waiting_user":
            text = tr("Task {name} is waiting for you. Answer it: errand answer {name}").format(name=name)
        case "interrupted" | "paused":
            text = tr("Task {name} is {status}. Resume it: errand resume {name}").format(
                name=name, status=task.activity.status
            )
        case _:
            text = tr("Task {name} is running. Follow it: errand attach {name}").format(name=name)
    output.line(output.style.amber(text))
