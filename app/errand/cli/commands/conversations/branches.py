"""`errand tree`, `edit`, `retry`, `fork`, `move`: the branches of a conversation, and going on elsewhere in it."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec

from errand.cli.arguments import (
    CONVERSATION_HELP,
    FOLLOW_JSON_HELP,
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
from errand.cli.options import Argument, CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.rendering.tree import tree_lines
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
from errand.protocol.tasks.methods import TASK_RETRY, TASK_START, TaskRetryParams, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.translation import marked, tr

_PAGE = 100
_MODEL_HELP = marked("model, such as openai/gpt-4.1 (default: the model of the agent)")


class TreeOptions(CommandOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]


async def tree(options: TreeOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand tree") as connection:
        conversation = await find_conversation(connection, options.conversation)
        branches = await connection.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=conversation.id))
    lines = tree_lines(branches, output.style, output.width) if branches.nodes else [tr("No messages yet.")]
    output.result(branches, *lines)
    return 0


TREE = Command(TreeOptions, tree, json_help=marked("print messages, agents and tasks as one JSON object"))


class MoveOptions(CommandOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    message: Annotated[
        str, Argument("MESSAGE", "a message on the branch to switch to, by any part of its id (errand tree)")
    ]
    agent: Annotated[str | None, Option("--agent", "the agent that switches (default: the first)", "NAME")] = None


async def move(options: MoveOptions, paths: Paths, output: CommandOutput) -> int:
    """Move an agent to the end of the newest branch through a message."""
    async with await connect(paths, "errand move") as connection:
        conversation = await find_conversation(connection, options.conversation)
        node = await find_node(connection, conversation, options.message)
        agent = await _set_head(connection, conversation, node.id, options.agent, to_leaf=True)
    text = tr("{name} is now at {end}, the end of that branch.")
    name, end = one_line(escape_hidden_line(agent.name), 60), short_id(agent.head_id or "")
    output.result(agent, text.format(name=name, end=end))
    return 0


MOVE = Command(MoveOptions, move, json_help=marked("print the agent as one JSON object"))


class ForkOptions(FollowOptions, frozen=True, kw_only=True):
    conversation: Annotated[str, Argument("ID", CONVERSATION_HELP)]
    at: Annotated[str, Option("--at", "the message to continue from, by any part of its id (errand tree)", "MESSAGE")]
    text: Annotated[str, Argument("TEXT", "what to do from there; without it, the next message starts the branch")] = ""
    agent: Annotated[str | None, Option("--agent", "the agent that answers", "NAME")] = None
    model: Annotated[str | None, Option("--model", _MODEL_HELP, "M")] = None
    task: TaskOptions = TaskOptions()


async def fork(options: ForkOptions, paths: Paths, output: CommandOutput) -> int:
    text = read_prompt(options.text) if options.text else ""
    async with await connect(paths, "errand fork") as connection:
        conversation = await find_conversation(connection, options.conversation)
        node = await find_node(connection, conversation, options.at)
        agent = await _set_head(connection, conversation, node.id, options.agent, to_leaf=False)
        if text:
            params = _start_params(options, conversation, text, output)
            return await _start(connection, output, options, msgspec.structs.replace(params, agent_id=agent.id))
    text = tr("The next message continues after {id}: errand run --conversation {name} '…'")
    output.result(agent, text.format(id=short_id(node.id), name=short_id(conversation.id)))
    return 0


FORK = Command(ForkOptions, fork, epilog=EXIT_CODES_TEXT, json_help=FOLLOW_JSON_HELP)


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


async def edit(options: EditOptions, paths: Paths, output: CommandOutput) -> int:
    """Send a message of the person again with another text, on a branch beside the old one."""
    text = read_prompt(options.text) if options.text else ""
    async with await connect(paths, "errand edit") as connection:
        conversation = await find_conversation(connection, options.conversation)
        node = await _node(connection, conversation, options.at, lambda node: node.is_from_person)
        if node is None or not node.is_from_person:
            raise UsageError(tr("Only your own messages can be edited. errand show prints their ids."))
        text = text or await _edited(node, output)
        files = tuple(block.path for block in node.blocks if isinstance(block, FileBlock | ImageBlock) and block.path)
        params = _start_params(options, conversation, text, output)
        params = msgspec.structs.replace(params, sibling_of=node.id, attachments=files)
        return await _start(connection, output, options, params)


EDIT = Command(EditOptions, edit, epilog=EXIT_CODES_TEXT, json_help=FOLLOW_JSON_HELP)


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


async def retry(options: RetryOptions, paths: Paths, output: CommandOutput) -> int:
    """Make a reply again, beside the old one."""
    async with await connect(paths, "errand retry") as connection:
        conversation = await find_conversation(connection, options.conversation)
        node = await _node(connection, conversation, options.at, lambda node: node.role == "assistant")
        if node is None:
            raise UsageError(tr("No agent has replied here yet."))
        if options.at is None:
            node = await _first_reply(connection, conversation, node)
        params = TaskRetryParams(node_id=node.id, model=options.model)

        async def begin() -> Task:
            return (await connection.call(TASK_RETRY, params)).task

        return await _follow(connection, output, options, begin)


RETRY = Command(RetryOptions, retry, epilog=EXIT_CODES_TEXT, json_help=FOLLOW_JSON_HELP)


async def _node(
    connection: Connection, conversation: Conversation, at: str | None, is_match: Callable[[Node], bool]
) -> Node | None:
    """Return the message that `at` names, else the last one of the current branch for which `is_match` is true."""
    if at is not None:
        leaf = (await find_node(connection, conversation, at)).id
        params = ConversationNodesParams(conversation_id=conversation.id, leaf_id=leaf, limit=1)
        return (await connection.call(CONVERSATION_NODES, params)).nodes[-1]
    before, has_more = None, True
    while has_more:
        params = ConversationNodesParams(conversation_id=conversation.id, before_id=before, limit=_PAGE)
        page = await connection.call(CONVERSATION_NODES, params)
        if matches := [node for node in page.nodes if is_match(node)]:
            return matches[-1]
        before, has_more = (page.nodes[0].id if page.nodes else None), page.has_more
    return None


async def _first_reply(connection: Connection, conversation: Conversation, reply: Node) -> Node:
    """Return the first reply of the task to the same message: a retry makes the whole answer again."""
    params = ConversationNodesParams(conversation_id=conversation.id, leaf_id=reply.id, limit=_PAGE)
    first = reply
    for node in reversed((await connection.call(CONVERSATION_NODES, params)).nodes):
        if node.is_from_person or node.task_id != reply.task_id:
            break
        first = node if node.role == "assistant" else first
    return first


async def _edited(node: Node, output: CommandOutput) -> str:
    """Let the person change the text at the prompt; raises `UsageError` if they leave it."""
    old = "\n\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
    if not output.interactive:
        raise UsageError(tr("Give the new text: errand edit ID 'new text', or - for standard input"))
    try:
        return read_prompt(await output.terminal.ask("> ", old))
    except (KeyboardInterrupt, EOFError):
        raise UsageError(tr("Nothing was sent; the message is unchanged.")) from None


def _start_params(
    options: ForkOptions | EditOptions, conversation: Conversation, text: str, output: CommandOutput
) -> TaskStartParams:
    attended = output.interactive
    target = TargetOptions(conversation=conversation.id, model=options.model)
    return start_params(text, target, options.task, attended=attended)


async def _start(
    connection: Connection, output: CommandOutput, options: ForkOptions | EditOptions, params: TaskStartParams
) -> int:
    """Start a task and follow it to its end."""
    if params.attended:
        await confirm_workspace(connection, params, output)

    async def begin() -> Task:
        return (await connection.call(TASK_START, params)).task

    return await _follow(connection, output, options, begin)


async def _follow(
    connection: Connection, output: CommandOutput, options: FollowOptions, begin: Callable[[], Awaitable[Task]]
) -> int:
    return await TaskFollower(
        connection, output.terminal, as_json=output.as_json, thinking=not options.no_thinking
    ).run_to_end(begin, is_new=True)


async def _set_head(
    connection: Connection, conversation: Conversation, node_id: str, name: str | None, *, to_leaf: bool
) -> Agent:
    agents = (await connection.call(AGENT_LIST, AgentListParams(conversation_id=conversation.id))).agents
    agent = find_agent(agents, name) if name is not None else first_agent(agents)
    if agent is None:
        raise UsageError(tr("This conversation has no agent. Add one: errand agents add ") + short_id(conversation.id))
    params = AgentSetHeadParams(agent_id=agent.id, node_id=node_id, version=agent.version, to_leaf=to_leaf)
    return (await connection.call(AGENT_SET_HEAD, params)).agent
