"""`errand list`, `archive`, `pin`, `rename`: the list of conversations, and their place in it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from errand.cli.arguments import CONVERSATION_HELP, UsageError, workspace_path
from errand.cli.command import Command
from errand.cli.commands.tasks import colored, status_text
from errand.cli.lookup import find_conversation
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import columns, cut_start, one_line, padded, short_id, short_path, time_ago
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.safe_text import escape_hidden_line
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    Conversation,
    ConversationChangeParams,
    ConversationGetParams,
    ConversationListParams,
)
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.translation import marked, tr

_PAGE = 500  # the engine's maximum
_MAX_FOLDER_WIDTH = 30
_NARROWEST_FOLDER = 12
_NARROWEST_TITLE = 16
_MIN_TITLE_LENGTH = 8  # on screens of less than 33 columns
_STATE = 13
_AT_WORK = ("running", "thinking", "tool_executing")
_EXAMPLES = tr(
    """examples:
  errand list                conversations of all folders, pinned ones first
  errand list parser --here  those in this folder with "parser" in their title
  errand list --active       those with a task that runs or waits for you
  errand show 3f2a           the one with this part in its id
"""
)


class ListOptions(CommandOptions, frozen=True, kw_only=True):
    title: Annotated[str, Argument("TITLE", "show conversations with this text in their title")] = ""
    active: Annotated[bool, Flag("--active", "show conversations with a running task")] = False
    here: Annotated[bool, Flag("--here", "show conversations of this folder", group="place")] = False
    folder: Annotated[str | None, Option("--folder", "show conversations of this folder", "DIR")] = None
    pinned: Annotated[bool, Flag("--pinned", "show pinned conversations")] = False
    archived: Annotated[bool, Flag("--archived", "show archived conversations")] = False
    limit: Annotated[int, Option("--limit", "show at most N (default: 20)", "N")] = 20


async def list_conversations(options: ListOptions, paths: Paths, output: CommandOutput) -> int:
    folder = workspace_path(options.folder) if options.here or options.folder is not None else None
    async with await connect(paths, "errand list") as connection:
        conversations, tasks = await _page(connection, options, folder)
        has_any = bool(conversations) or await _has_any(connection)
    output.each(
        conversations[: options.limit],
        lambda listed: [format_conversation(listed, tasks.get(listed.id), output.width, output.style)],
        empty=_nothing_text(options, folder, has_any=has_any),
    )
    if len(conversations) > options.limit:
        output.note(tr("errand: there are more; --limit {limit} shows more of them").format(limit=options.limit * 5))
    return 0


LIST = Command(ListOptions, list_conversations, epilog=_EXAMPLES)


async def _page(
    connection: Connection, options: ListOptions, folder: str | None
) -> tuple[list[Conversation], dict[str, Task]]:
    """Return the conversations, pinned ones first, and their tasks; one more than the limit if there are more."""
    if options.active:
        return await _active(connection, options, folder)
    conversations: list[Conversation] = []
    tasks: dict[str, Task] = {}
    for pinned in (True,) if options.pinned else (True, False):
        cursor, is_first = None, True
        while len(conversations) <= options.limit and (is_first or cursor is not None):
            params = ConversationListParams(
                archived=options.archived,
                pinned=pinned,
                title_part=options.title,
                workspace=folder,
                limit=min(options.limit + 1 - len(conversations), _PAGE),
                cursor=cursor,
                with_tasks=True,
            )
            page = await connection.call(CONVERSATION_LIST, params)
            conversations += page.conversations
            tasks |= {task.conversation_id: task for task in page.tasks}
            cursor, is_first = page.next_cursor, False
    return conversations, tasks


async def _active(
    connection: Connection, options: ListOptions, folder: str | None
) -> tuple[list[Conversation], dict[str, Task]]:
    page = await connection.call(TASK_LIST, TaskListParams(active=True, limit=_PAGE))
    tasks: dict[str, Task] = {}
    for task in page.tasks:
        if task.origin.parent_id is None:
            tasks.setdefault(task.conversation_id, task)
    conversations = [
        (await connection.call(CONVERSATION_GET, ConversationGetParams(conversation_id=name))).conversation
        for name in tasks
    ]
    matches = [
        conversation
        for conversation in conversations
        if conversation.archived == options.archived
        and (conversation.pinned or not options.pinned)
        and options.title.casefold() in conversation.title.casefold()
        and folder in (None, conversation.workspace)
    ]
    return sorted(matches, key=lambda conversation: not conversation.pinned), tasks


async def _has_any(connection: Connection) -> bool:
    params = ConversationListParams(archived=None, limit=1)
    return bool((await connection.call(CONVERSATION_LIST, params)).conversations)


def _nothing_text(options: ListOptions, folder: str | None, *, has_any: bool) -> str:
    if not has_any:
        return tr("No conversations yet. Start one: errand run 'what to do', or errand chat")
    kind = f"{'archived ' if options.archived else ''}{'pinned ' if options.pinned else ''}"
    limits = [tr("with {title!r} in its title").format(title=one_line(options.title, 40))] if options.title else []
    limits += (
        [tr("in the folder {folder}").format(folder=escape_hidden_line(short_path(folder)))]
        if folder is not None
        else []
    )
    limits += [tr("with a running task")] if options.active else []
    if not kind and not limits:
        return tr("All conversations are archived. List them: errand list --archived")
    return tr("There is no {kind}{names}. List all: errand list").format(
        kind=kind, names=" ".join(["conversation", *limits])
    )


def format_conversation(conversation: Conversation, task: Task | None, width: int, style: Style) -> str:
    """Return a line with id, state, age, title and folder; a narrow one has no folder and no age."""
    age = time_ago((datetime.now(UTC) - conversation.updated_at).total_seconds())
    state = f"{short_id(conversation.id)}  {padded(conversation_state(task), _STATE)}"
    head = f"{state} {age:>10}  "
    pin = tr("pinned") if conversation.pinned else ""
    room_of_folder = min(_MAX_FOLDER_WIDTH, max(_NARROWEST_FOLDER, (width - columns(head)) // 3))
    # The folder of its own, in the data directory, tells nothing.
    is_own = conversation.workspace.endswith(conversation.id)
    folder = "" if is_own else cut_start(escape_hidden_line(short_path(conversation.workspace)), room_of_folder)
    tail = style.join(*filter(None, (pin, folder)))
    if columns(head) + _NARROWEST_TITLE + 2 + columns(tail) > width:
        tail = pin
    if columns(head) + _NARROWEST_TITLE > width:
        head, tail = f"{state}  ", ""
    room = max(_MIN_TITLE_LENGTH, width - columns(head) - columns(tail) - 2)
    title = one_line(escape_hidden_line(conversation.title), room) or tr("(untitled)")
    gap = " " * max(1, width - columns(head) - columns(title) - columns(tail))
    painted = colored(task, head, style) if task is not None else head
    return f"{painted}{title}{gap}{style.dim(tail)}".rstrip()


def conversation_state(task: Task | None) -> str:
    """Return what its newest task does, or how it ended; empty without one."""
    if task is None:
        return ""
    if task.activity.status in _AT_WORK and task.activity.retry_at is None:
        return tr("running")
    return tr("waiting for you") if task.activity.status == "waiting_user" else status_text(task)


class ArchiveOptions(CommandOptions, frozen=True, kw_only=True):
    conversation_ids: Annotated[tuple[str, ...], Argument("ID", "conversations: a unique part of each id or title")]
    undo: Annotated[bool, Flag("--undo", "restore them from the archive")] = False


async def archive(options: ArchiveOptions, paths: Paths, output: CommandOutput) -> int:
    text = tr("was restored") if options.undo else tr("was archived")
    async with await connect(paths, "errand archive") as connection:
        for conversation in await _find_all(connection, options.conversation_ids):
            changed = await _change(connection, conversation, archived=not options.undo)
            output.result(changed, f"{short_id(changed.id)} {text}: {_name(changed)}")
    if not options.undo and not output.as_json:
        output.note(tr("errand: restore with errand archive --undo ID; list with errand list --archived"))
    return 0


ARCHIVE = Command(ArchiveOptions, archive, json_help=marked("print conversations as JSON lines"))


class PinOptions(CommandOptions, frozen=True, kw_only=True):
    conversation_ids: Annotated[tuple[str, ...], Argument("ID", "conversations: a unique part of each id or title")]
    undo: Annotated[bool, Flag("--undo", "unpin them")] = False


async def pin(options: PinOptions, paths: Paths, output: CommandOutput) -> int:
    text = tr("was unpinned") if options.undo else tr("was pinned")
    async with await connect(paths, "errand pin") as connection:
        for conversation in await _find_all(connection, options.conversation_ids):
            changed = await _change(connection, conversation, pinned=not options.undo)
            output.result(changed, f"{short_id(changed.id)} {text}: {_name(changed)}")
    return 0


PIN = Command(PinOptions, pin, json_help=marked("print conversations as JSON lines"))


class RenameOptions(CommandOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    title: Annotated[str, Argument("TITLE", "the new title")]


async def rename(options: RenameOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand rename") as connection:
        conversation = await find_conversation(connection, options.conversation)
        changed = await _change(connection, conversation, title=options.title)
    text = tr("was renamed to: {changed}").format(changed=_name(changed))
    output.result(changed, f"{short_id(changed.id)} {text}")
    return 0


RENAME = Command(RenameOptions, rename, json_help=marked("print the conversation as one JSON object"))


async def _find_all(connection: Connection, parts: Sequence[str]) -> list[Conversation]:
    """Find all of them before any is changed."""
    if not parts:
        raise UsageError(tr("Give one or more conversations; errand list shows their ids"))
    return [await find_conversation(connection, part) for part in parts]


async def _change(
    connection: Connection,
    conversation: Conversation,
    *,
    archived: bool | None = None,
    pinned: bool | None = None,
    title: str | None = None,
) -> Conversation:
    params = ConversationChangeParams(conversation_id=conversation.id, archived=archived, pinned=pinned, title=title)
    return (await connection.call(CONVERSATION_CHANGE, params)).conversation


def _name(conversation: Conversation) -> str:
    return one_line(escape_hidden_line(conversation.title), 60) or tr("(untitled)")
