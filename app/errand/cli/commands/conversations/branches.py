"""`errand tree`, `edit`, `retry`, `fork`, `move`: the branches of a conversation, and going on elsewhere in it."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec

from errand.cli.arguments import (
    CONVERSATION_HELP,
    FollowOptions,
    TargetOptions,
    TaskOptions,
    UsageError,
    read_prompt,
    start_params,
)
from errand.cli.command import Command
from errand.cli.commands.run import confirm_workspace, find_agent
from errand.cli.exit_codes import EXIT_CODES_TEXT
from errand.cli.follow.follower import TaskFollower
from errand.cli.lookup import find_conversation, find_node
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.rendering.tree import tree_lines
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import escape_hidden_line, one_line, short_id
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.agents import (
    AGENT_LIST,
    AGENT_SET_HEAD,
    Agent,
    AgentListParams,
    AgentSetHeadParams,
    first_agent,
)
from errand.protocol.blocks import FileBlock, ImageBlock, TextBlock
from errand.protocol.conversations import (
    CONVERSATION_NODES,
    CONVERSATION_TREE,
    Conversation,
    ConversationNodesParams,
    ConversationTreeParams,
    Node,
)
from errand.protocol.tasks import TASK_RETRY, TASK_START, Task, TaskRetryParams, TaskStartParams
from errand.system.paths import Paths
from errand.text.translation import marked, tr

_PAGE = 100
_MODEL_HELP = marked("model, such as openai/gpt-4.1 (default: the model of the agent)")


class TreeOptions(CommandOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    json: Annotated[bool, Flag("--json", "print messages, agents and tasks as one JSON object")] = False


async def tree(options: TreeOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand tree") as connection:
        conversation = await find_conversation(connection, options.conversation)
        found = await connection.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=conversation.id))
    if options.json:
        terminal.line(msgspec.json.encode(found).decode())
        return 0
    if not found.nodes:
        terminal.line(tr("No messages yet."))
    for line in tree_lines(found, terminal.style, terminal.width):
        terminal.line(line)
    return 0


TREE = Command(TreeOptions, tree)


class MoveOptions(CommandOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    message: Annotated[
        str, Argument("MESSAGE", "a message on the branch to switch to, by any part of its id (errand tree)")
    ]
    agent: Annotated[str | None, Option("--agent", "the agent that switches (default: the first)", "NAME")] = None
    json: Annotated[bool, Flag("--json", "print the agent as one JSON object")] = False


async def move(options: MoveOptions, paths: Paths, terminal: Terminal) -> int:
    """Move an agent to the end of the newest branch through a message."""
    async with await connect(paths, "errand move") as connection:
        conversation = await find_conversation(connection, options.conversation)
        node = await find_node(connection, conversation, options.message)
        agent = await _set_head(connection, conversation, node.id, options.agent, to_leaf=True)
    if options.json:
        terminal.line(msgspec.json.encode(agent).decode())
    else:
        end = short_id(agent.head_id or "")
        terminal.line(
            tr("{name} is now at {end}, the end of that branch.").format(
                name=one_line(escape_hidden_line(agent.name), 60), end=end
            )
        )
    return 0


MOVE = Command(MoveOptions, move)


class ForkOptions(FollowOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    at: Annotated[str, Option("--at", "the message to continue from, by any part of its id (errand tree)", "MESSAGE")]
    text: Annotated[str, Argument("TEXT", "what to do from there; without it, the next message starts the branch")] = ""
    agent: Annotated[str | None, Option("--agent", "the agent that answers", "NAME")] = None
    model: Annotated[str | None, Option("--model", _MODEL_HELP, "M")] = None
    task: TaskOptions = TaskOptions()


async def fork(options: ForkOptions, paths: Paths, terminal: Terminal) -> int:
    text = read_prompt(options.text) if options.text else ""
    async with await connect(paths, "errand fork") as connection:
        conversation = await find_conversation(connection, options.conversation)
        node = await find_node(connection, conversation, options.at)
        agent = await _set_head(connection, conversation, node.id, options.agent, to_leaf=False)
        if text:
            params = _start_params(options, conversation, text, terminal)
            return await _start(connection, terminal, options, msgspec.structs.replace(params, agent_id=agent.id))
    if options.json:
        terminal.line(msgspec.json.encode(agent).decode())
    else:
        name = short_id(conversation.id)
        terminal.line(
            tr("The next message continues after {id}: errand run --conversation {name} '…'").format(
                id=short_id(node.id), name=name
            )
        )
    return 0


FORK = Command(ForkOptions, fork, epilog=EXIT_CODES_TEXT)


class EditOptions(FollowOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    text: Annotated[str, Argument("TEXT", "the new text; - reads standard input; without it you are asked")] = ""
    at: Annotated[
        str | None,
        Option(
            "--at",
            "message to edit (default: your last one), a unique part of its id",
            "MESSAGE",
        ),
    ] = None
    model: Annotated[str | None, Option("--model", _MODEL_HELP, "M")] = None
    task: TaskOptions = TaskOptions()


async def edit(options: EditOptions, paths: Paths, terminal: Terminal) -> int:
    """Send a message of the person again with another text, on a branch beside the old one."""
    text = read_prompt(options.text) if options.text else ""
    async with await connect(paths, "errand edit") as connection:
        conversation = await find_conversation(connection, options.conversation)
        node = await _node(connection, conversation, options.at, lambda one: one.is_from_person)
        if node is None or not node.is_from_person:
            raise UsageError(tr("Only your own messages can be edited. errand show prints their ids."))
        text = text or await _edited(node, terminal)
        files = tuple(one.path for one in node.blocks if isinstance(one, FileBlock | ImageBlock) and one.path)
        params = _start_params(options, conversation, text, terminal)
        beside = msgspec.structs.replace(params, sibling_of=node.id, attachments=files)
        return await _start(connection, terminal, options, beside)


EDIT = Command(EditOptions, edit, epilog=EXIT_CODES_TEXT)


class RetryOptions(FollowOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    at: Annotated[
        str | None,
        Option(
            "--at",
            "reply to retry (default: the last one), a unique part of its id",
            "MESSAGE",
        ),
    ] = None
    model: Annotated[str | None, Option("--model", "use another model", "M")] = None


async def retry(options: RetryOptions, paths: Paths, terminal: Terminal) -> int:
    """Make a reply again, beside the old one."""
    async with await connect(paths, "errand retry") as connection:
        conversation = await find_conversation(connection, options.conversation)
        node = await _node(connection, conversation, options.at, lambda one: one.role == "assistant")
        if node is None:
            raise UsageError(tr("No agent has replied here yet."))
        if options.at is None:
            node = await _first_reply(connection, conversation, node)
        params = TaskRetryParams(node_id=node.id, model=options.model)

        async def begin() -> Task:
            return (await connection.call(TASK_RETRY, params)).task

        return await _follow(connection, terminal, options, begin)


RETRY = Command(RetryOptions, retry, epilog=EXIT_CODES_TEXT)


async def _node(
    connection: Connection, conversation: Conversation, at: str | None, is_wanted: Callable[[Node], bool]
) -> Node | None:
    """The message that `at` names, else the last one of the current branch that is wanted."""
    if at is not None:
        leaf = (await find_node(connection, conversation, at)).id
        params = ConversationNodesParams(conversation_id=conversation.id, leaf_id=leaf, limit=1)
        return (await connection.call(CONVERSATION_NODES, params)).nodes[-1]
    before, has_more = None, True
    while has_more:
        params = ConversationNodesParams(conversation_id=conversation.id, before_id=before, limit=_PAGE)
        page = await connection.call(CONVERSATION_NODES, params)
        if wanted := [node for node in page.nodes if is_wanted(node)]:
            return wanted[-1]
        before, has_more = (page.nodes[0].id if page.nodes else None), page.has_more
    return None


async def _first_reply(connection: Connection, conversation: Conversation, reply: Node) -> Node:
    """The first reply of the task to the same message: what is made again is the whole answer."""
    params = ConversationNodesParams(conversation_id=conversation.id, leaf_id=reply.id, limit=_PAGE)
    first = reply
    for node in reversed((await connection.call(CONVERSATION_NODES, params)).nodes):
        if node.is_from_person or node.task_id != reply.task_id:
            break
        first = node if node.role == "assistant" else first
    return first


async def _edited(node: Node, terminal: Terminal) -> str:
    """The text as the person changes it at the prompt; raises `UsageError` if they leave it."""
    old = "\n\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
    if not terminal.interactive:
        raise UsageError(tr("Give the new text: errand edit ID 'new text', or - for standard input"))
    try:
        return read_prompt(await terminal.ask("> ", old))
    except (KeyboardInterrupt, EOFError):
        raise UsageError(tr("Nothing was sent; the message is unchanged.")) from None


def _start_params(
    options: ForkOptions | EditOptions, conversation: Conversation, text: str, terminal: Terminal
) -> TaskStartParams:
    attended = terminal.interactive and not options.json
    target = TargetOptions(conversation=conversation.id, model=options.model)
    return start_params(text, target, options.task, attended=attended)


async def _start(
    connection: Connection, terminal: Terminal, options: ForkOptions | EditOptions, params: TaskStartParams
) -> int:
    """Start a task and follow it to its end."""
    if params.attended:
        await confirm_workspace(connection, params, terminal)

    async def begin() -> Task:
        return (await connection.call(TASK_START, params)).task

    return await _follow(connection, terminal, options, begin)


async def _follow(
    connection: Connection, terminal: Terminal, options: FollowOptions, begin: Callable[[], Awaitable[Task]]
) -> int:
    return await TaskFollower(connection, terminal, as_json=options.json, thinking=not options.no_thinking).run_to_end(
        begin, is_new=True
    )


async def _set_head(
    connection: Connection, conversation: Conversation, node_id: str, name: str | None, *, to_leaf: bool
) -> Agent:
    agents = (await connection.call(AGENT_LIST, AgentListParams(conversation_id=conversation.id))).agents
    agent = find_agent(agents, name) if name is not None else first_agent(agents)
    if agent is None:
        raise UsageError(tr("This conversation has no agent. Add one: errand agents add ") + short_id(conversation.id))
    params = AgentSetHeadParams(agent_id=agent.id, node_id=node_id, version=agent.version, to_leaf=to_leaf)
    return (await connection.call(AGENT_SET_HEAD, params)).agent
