"""`errand agents`: the agents of a conversation, and their turn order."""

from collections import Counter
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError, wrong_arguments
from errand.cli.command import Command
from errand.cli.commands.run import find_agent, find_personality
from errand.cli.lookup import find_agent_anywhere, find_conversation
from errand.cli.options import Action, Argument, CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import one_line, short_id
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.agents import (
    AGENT_CREATE,
    AGENT_DELETE,
    AGENT_LIST,
    Agent,
    AgentCreateParams,
    AgentIdParams,
    AgentListParams,
    Color,
    Personality,
)
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    Conversation,
    ConversationChangeParams,
    TurnRule,
    TurnTaking,
)
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from errand.system.paths import Paths
from errand.text.translation import tr, trn

_MAX_TASKS = 500
_SHIPPED = "assistant"  # the personality of an agent that nobody chose
_ACTIONS = (
    Action("[CONVERSATION]", "list all agents, or those of a conversation", first="conversation"),
    Action("add [CONVERSATION]", "add an agent to a conversation, or to a new one", first="conversation"),
    Action("remove AGENT", "remove an agent from a conversation; its messages stay", first="agent"),
    Action("turns CONVERSATION --rule RULE", "set the order in which agents speak", first="conversation"),
)


class AgentsOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        tuple[str, ...],
        Argument("WORD", "a conversation, or: add [CONVERSATION], remove AGENT, turns CONVERSATION"),
    ] = ()
    name: Annotated[str | None, Option("--name", "with add: its name (default: the name of its personality)")] = None
    personality: Annotated[
        str | None, Option("--personality", "with add: its personality (default: assistant)", "NAME")
    ] = None
    model: Annotated[str, Option("--model", "with add: its model", "M")] = ""
    color: Annotated[
        str, Option("--color", "with add: blue, teal, green, amber, orange, red, pink, violet or gray")
    ] = ""
    node: Annotated[
        str | None, Option("--node", "with add: the message it starts from (default: where the first agent is)", "ID")
    ] = None
    rule: Annotated[TurnRule | None, Option("--rule", "with turns: how the next agent is chosen")] = None
    moderator: Annotated[
        str | None, Option("--moderator", "with turns: the agent that speaks first and after each other", "AGENT")
    ] = None
    most: Annotated[int | None, Option("--most", "with turns: the number of replies before it is your turn", "N")] = (
        None
    )


async def agents(options: AgentsOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand agents") as connection:
        match options.arguments:
            case ["add"]:
                await _add(connection, None, options, output)
            case ["add", part]:
                conversation = await find_conversation(connection, part)
                await _add(connection, conversation.id, options, output)
            case ["remove", agent]:
                await _remove(connection, agent, output)
            case ["turns", part]:
                await _turns(connection, await find_conversation(connection, part), options, output)
            case []:
                await _list_all(connection, output)
            case [part]:
                await _list(connection, await find_conversation(connection, part), output)
            case _:
                raise wrong_arguments("agents", _ACTIONS, options.arguments)
    return 0


AGENTS = Command(AgentsOptions, agents, actions=_ACTIONS, takes_others=True)


async def _list(connection: Connection, conversation: Conversation, output: CommandOutput) -> None:
    agents = (await connection.call(AGENT_LIST, AgentListParams(conversation_id=conversation.id))).agents
    empty = tr("No agents yet. Add one: errand agents add {id}").format(id=short_id(conversation.id))
    output.each(agents, lambda agent: [_row(agent, output.style)], empty=empty)


async def _list_all(connection: Connection, output: CommandOutput) -> None:
    """Print the agents that a person made or that are at work; the others, one for each conversation, are counted."""
    agents = (await connection.call(AGENT_LIST, AgentListParams())).agents
    if output.as_json:
        output.each(agents, lambda _: [])
        return
    tasks = (await connection.call(TASK_LIST, TaskListParams(active=True, limit=_MAX_TASKS))).tasks
    at_work = {task.agent_id for task in tasks}
    sizes = Counter(agent.conversation_id for agent in agents if agent.beside is None and agent.called_by is None)
    usual = await find_personality(connection, _SHIPPED)
    listed = [agent for agent in agents if agent.id in at_work or _is_added(agent, usual, sizes[agent.conversation_id])]
    output.each(
        listed,
        lambda agent: [_row(agent, output.style, is_at_work=agent.id in at_work)],
        empty=tr("No running or added agents. Add one: errand agents add"),
    )
    if more := len(agents) - len(listed):
        output.note(
            tr("errand: {others} in their own conversations: errand agents CONVERSATION").format(
                others=trn("{n} other", "{n} others", more)
            )
        )


def _is_added(agent: Agent, usual: Personality, others: int) -> bool:
    """Return whether a person added it: it did not come with a conversation of its own, a comparison or a sub-agent."""
    if agent.beside is not None or agent.called_by is not None:
        return False
    is_usual = agent.personality_id == usual.id and agent.name == usual.name
    return others > 1 or agent.head_id is None or not is_usual


def _row(agent: Agent, style: Style, *, is_at_work: bool = False) -> str:
    head = (
        tr("at {head_id}").format(head_id=short_id(agent.head_id))
        if agent.head_id is not None
        else tr("no messages yet")
    )
    parallel = tr("answers in parallel") if agent.beside else ""
    state = tr("running") if is_at_work else ""
    rest = style.join(
        head, state, agent.model, parallel, tr("version {version}").format(version=agent.version), agent.conversation_id
    )
    return f"{style.bold(one_line(agent.name, 60))}  {agent.id}  {style.dim(rest)}"


async def _add(
    connection: Connection, conversation_id: str | None, options: AgentsOptions, output: CommandOutput
) -> None:
    name = options.personality
    personality = await find_personality(connection, name) if name is not None else None
    params = AgentCreateParams(
        conversation_id=conversation_id,
        node_id=options.node,
        personality_id=personality.id if personality is not None else None,
        name=options.name,
        model=options.model,
        color=_color(options.color),
    )
    agent = (await connection.call(AGENT_CREATE, params)).agent
    text = tr("Added {name}: {id} in {conversation_id}")
    output.result(agent, text.format(name=agent.name, id=agent.id, conversation_id=agent.conversation_id))


def _color(given: str) -> Color:
    try:
        return msgspec.convert(given, Color)
    except msgspec.ValidationError as error:
        raise UsageError(
            tr("{given!r} is not a colour. Use blue, teal, green, amber, orange, red, …").format(given=given)
        ) from error


async def _remove(connection: Connection, part: str, output: CommandOutput) -> None:
    agent = await find_agent_anywhere(connection, part)
    await connection.call(AGENT_DELETE, AgentIdParams(agent_id=agent.id))
    text = tr("Removed {name}. Its messages stay in {conversation_id}.")
    output.result(agent, text.format(name=agent.name, conversation_id=agent.conversation_id))


async def _turns(
    connection: Connection, conversation: Conversation, options: AgentsOptions, output: CommandOutput
) -> None:
    rule = conversation.turn_taking
    if options.moderator is not None:
        agents = (await connection.call(AGENT_LIST, AgentListParams(conversation_id=conversation.id))).agents
        moderator_id = find_agent(agents, options.moderator).id
        rule = TurnTaking(rule="moderator", limit=rule.limit, moderator_id=moderator_id)
    if options.rule is not None:
        rule = msgspec.structs.replace(rule, rule=options.rule)
    rule = msgspec.structs.replace(rule, limit=options.most or rule.limit)
    if rule != conversation.turn_taking:
        params = ConversationChangeParams(conversation_id=conversation.id, turn_taking=rule)
        await connection.call(CONVERSATION_CHANGE, params)
    text = tr("{rule}, at most {limit} replies in a row")
    output.result(rule, text.format(rule=rule.rule.replace("_", " "), limit=rule.limit))
