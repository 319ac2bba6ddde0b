"""`errand run`: starts one task and follows it; also options shared with other commands."""

import msgspec

from app.cli.arguments import UsageError, read_prompt, start_params
from app.cli.follow.follower import TaskFollower
from app.cli.options import Options
from app.cli.terminal.terminal import Terminal
from app.client.connection import Connection
from app.client.launch import connect
from app.client.safe_text import exact
from app.paths import Paths
from app.protocol.agents import AGENT_LIST, PERSONALITY_LIST, Agent, AgentListParams, Personality
from app.protocol.base import EmptyParams
from app.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_GET,
    ConversationChangeParams,
    ConversationGetParams,
)
from app.protocol.tasks import TASK_START, Task, TaskStartParams


async def run(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Start the task, show it, settle its asks; the exit code reports its outcome."""
    someone = terminal.interactive and not options.json and options.events is None
    params = start_params(options, read_prompt(options.prompt), someone)
    if options.approve == "ask" and not someone:
        terminal.note("errand: nobody is there to ask, so what needs approval is refused (--approve all allows it)")
    connection = await connect(paths, "errand run")
    try:
        start = await resolve_agent(connection, params, options)
        if someone:
            await confirm_workspace(connection, start, terminal)

        async def begin() -> Task:
            return (await connection.call(TASK_START, start)).task

        return await _follower(connection, terminal, options).to_its_end(begin, is_new=True)
    finally:
        await connection.close()


async def confirm_workspace(connection: Connection, start: TaskStartParams, terminal: Terminal) -> None:
    """Ask for confirmation of the folder named in an imported conversation's file; `UsageError` if it is declined.

    Without a person the engine refuses the task, with advice.
    """
    if start.conversation_id is None or start.workspace is not None:
        return
    params = ConversationGetParams(conversation_id=start.conversation_id)
    folder = (await connection.call(CONVERSATION_GET, params)).conversation.proposed_workspace
    if not folder:
        return
    terminal.line(f"This conversation was imported, and its file names the folder {exact(folder)}")
    try:
        reply = await terminal.ask("Work there? y for yes, Enter for no: ")
    except (EOFError, KeyboardInterrupt):
        reply = ""
    if reply.strip().casefold() not in ("y", "yes"):
        raise UsageError("Nothing was started. Name the folder to work in with --workspace DIR.")
    change = ConversationChangeParams(conversation_id=start.conversation_id, workspace=folder)
    await connection.call(CONVERSATION_CHANGE, change)


def _follower(connection: Connection, terminal: Terminal, options: Options) -> TaskFollower:
    """With a schema only the answer goes to standard output, everything else to standard error."""
    if options.answer_schema is None or options.json or options.events is not None:
        return TaskFollower(connection, terminal, as_json=options.json, events=options.events)
    return TaskFollower(connection, terminal.aside(), as_json=False, answer_to=terminal)


async def resolve_agent(connection: Connection, params: TaskStartParams, options: Options) -> TaskStartParams:
    """Resolve the named agent and personality; raises `UsageError`."""
    if options.personality is not None:
        personality = await find_personality(connection, options.personality)
        params = msgspec.structs.replace(params, personality_id=personality.id)
    if options.agent is None:
        return params
    if params.conversation_id is None:
        raise UsageError("--agent names one of a conversation's agents: say which with --conversation.")
    found = (await connection.call(AGENT_LIST, AgentListParams(conversation_id=params.conversation_id))).agents
    return msgspec.structs.replace(params, agent_id=find_agent(found, options.agent).id)


def find_agent(agents: tuple[Agent, ...], wanted: str) -> Agent:
    """The agent with this name or id; raises `UsageError`, which lists the names."""
    name = wanted.removeprefix("@").casefold()
    for agent in agents:
        if wanted == agent.id or name == agent.name.casefold():
            return agent
    names = ", ".join(agent.name for agent in agents)
    raise UsageError(f"There is no agent {wanted!r} in this conversation. There are: {names or 'none'}.")


async def find_personality(connection: Connection, name: str) -> Personality:
    """The personality with this id, or name ignoring case; raises `UsageError`."""
    known = (await connection.call(PERSONALITY_LIST, EmptyParams())).personalities
    for personality in known:
        if name == personality.id or name.casefold() == personality.name.casefold():
            return personality
    names = ", ".join(personality.name for personality in known)
    raise UsageError(f"There is no personality {name!r}. There are: {names}.")
