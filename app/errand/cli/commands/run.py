"""`errand run`: starts one task and follows it; also options shared with other commands."""

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from errand.cli.arguments import (
    FOLLOW_JSON_HELP,
    FollowOptions,
    TargetOptions,
    TaskOptions,
    UsageError,
    attachment_path,
    read_prompt,
    start_params,
    workspace_path,
)
from errand.cli.command import Command
from errand.cli.commands.servers import mcp_prompt
from errand.cli.exit_codes import EXIT_CODES_TEXT
from errand.cli.follow.follower import TaskFollower
from errand.cli.follow.memory_offer import offer_embedding_model
from errand.cli.lookup import find_conversation
from errand.cli.options import Argument, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.text import short_path
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.safe_text import escape_hidden
from errand.protocol.agents import AGENT_LIST, PERSONALITY_LIST, Agent, AgentListParams, Personality
from errand.protocol.base import EmptyParams, JsonObject
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    ConversationChangeParams,
    ConversationGetParams,
    ConversationListParams,
)
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.system.regular_file import read_regular
from errand.text.translation import tr

_MAX_SCHEMA_BYTES = 1_000_000
_NOBODY_TO_ASK = tr(
    "errand: nobody could be asked, so calls that need approval were denied. --approve "
    "edits allows file changes in the workspace, --approve auto also commands that the "
    "sandbox holds, --approve all allows everything, errand grants allow COMMAND allows "
    "one command."
)


class RunOptions(FollowOptions, frozen=True, kw_only=True):
    prompt: Annotated[str, Argument("PROMPT", "what to do; - reads standard input; optional with --prompt")] = ""
    server_prompt: Annotated[
        str,
        Option("--prompt", "start with a prompt of an MCP server (errand mcp show lists them)", "SERVER/NAME"),
    ] = ""
    prompt_arguments: Annotated[
        tuple[str, ...],
        Option("--argument", "with --prompt: a value for it; can be repeated", "NAME=VALUE"),
    ] = ()
    events: Annotated[
        Literal["agent", "react"] | None,
        Option(
            "--events",
            ("which JSON lines to print: agents, heads and chats, or thoughts, tool calls and the final response"),
        ),
    ] = None
    target: TargetOptions = TargetOptions()
    answer_schema: Annotated[
        str | None,
        Option("--answer-schema", "a file with a JSON Schema; only an answer that matches it is printed", "FILE"),
    ] = None
    attach: Annotated[tuple[str, ...], Option("--attach", "attach a picture or a file; can be repeated", "FILE")] = ()
    task: TaskOptions = TaskOptions()


async def run(options: RunOptions, paths: Paths, output: CommandOutput) -> int:
    """Start the task, show it, settle its asks; the exit code reports its outcome."""
    attended = output.interactive and options.events is None
    if options.prompt_arguments and not options.server_prompt:
        raise UsageError(tr("--argument needs --prompt."))
    # A server's prompt is read once there is an engine.
    written = read_prompt(options.prompt) if options.prompt or not options.server_prompt else ""
    params = msgspec.structs.replace(
        start_params(written, options.target, options.task, attended=attended),
        attachments=tuple(map(attachment_path, options.attach)),
        answer_schema=_schema(options.answer_schema),
    )
    async with await connect(paths, "errand run") as connection:
        if options.server_prompt:
            params = msgspec.structs.replace(params, prompt=await _with_server_prompt(connection, options, written))
        start = await resolve_target(connection, params, options.target, options.task.workspace)
        if attended:
            await confirm_workspace(connection, start, output)

        async def begin() -> Task:
            return (await connection.call(TASK_START, start)).task

        advice = _NOBODY_TO_ASK if options.task.approve in (None, "ask", "edits", "auto") and not attended else ""
        exit_code = await _follower(connection, output, options, advice).run_to_end(begin, is_new=True)
        if attended:
            await offer_embedding_model(connection, output)
        return exit_code


RUN = Command(RunOptions, run, epilog=EXIT_CODES_TEXT, json_help=FOLLOW_JSON_HELP)


async def _with_server_prompt(connection: Connection, options: RunOptions, written: str) -> str:
    """Return the text of the server's prompt, and below it what the person wrote."""
    workspace = workspace_path(options.task.workspace)
    text = await mcp_prompt(connection, options.server_prompt, options.prompt_arguments, workspace)
    if not text.strip():
        raise UsageError(
            tr("The prompt {server_prompt} is empty with these arguments.").format(server_prompt=options.server_prompt)
        )
    return "\n\n".join(filter(None, (text, written)))


def _schema(file: str | None) -> JsonObject | None:
    if file is None:
        return None
    try:
        return msgspec.json.decode(read_regular(Path(os.path.expanduser(file)), _MAX_SCHEMA_BYTES), type=JsonObject)
    except OSError as error:
        raise UsageError(
            tr("The schema {file!r} cannot be read ({strerror}).").format(file=file, strerror=error.strerror)
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(
            tr("The schema {file!r} is not a JSON object: {error}.").format(file=file, error=error)
        ) from error


async def confirm_workspace(connection: Connection, start: TaskStartParams, output: CommandOutput) -> None:
    """Ask for confirmation of the folder named in an imported conversation's file; `CommandError` if it is declined.

    Without a person the engine refuses the task, with advice.
    """
    if start.conversation_id is None or start.workspace is not None:
        return
    params = ConversationGetParams(conversation_id=start.conversation_id)
    folder = (await connection.call(CONVERSATION_GET, params)).conversation.proposed_workspace
    if not folder:
        return
    output.line(tr("This conversation was imported. Its folder is {folder}").format(folder=escape_hidden(folder)))
    unchanged = tr("Nothing was started. Set the folder to work in with --workspace DIR.")
    await output.confirm(tr("Work there?"), yes=False, unchanged=unchanged)
    change = ConversationChangeParams(conversation_id=start.conversation_id, workspace=folder)
    await connection.call(CONVERSATION_CHANGE, change)


def _follower(connection: Connection, output: CommandOutput, options: RunOptions, if_refused: str) -> TaskFollower:
    """Return the follower; with a schema only the answer goes to standard output, the rest to standard error."""
    if options.answer_schema is None or output.as_json or options.events is not None:
        return TaskFollower(
            connection,
            output.terminal,
            as_json=output.as_json,
            events=options.events,
            if_refused=if_refused,
            thinking=not options.no_thinking,
        )
    progress = output.terminal.on_standard_error()
    return TaskFollower(
        connection,
        progress,
        as_json=False,
        answer_to=output.terminal,
        if_refused=if_refused,
        thinking=not options.no_thinking,
    )


async def resolve_target(
    connection: Connection, params: TaskStartParams, target: TargetOptions, folder: str | None
) -> TaskStartParams:
    """Find the conversation, the agent and the personality; raises `UsageError`.

    `--continue` means the newest conversation of the folder, None for the current one.
    """
    if target.conversation:
        conversation = await find_conversation(connection, target.conversation)
        params = msgspec.structs.replace(params, conversation_id=conversation.id)
    if target.is_continued:
        params = msgspec.structs.replace(params, conversation_id=await _newest(connection, workspace_path(folder)))
    if target.personality is not None:
        personality = await find_personality(connection, target.personality)
        params = msgspec.structs.replace(params, personality_id=personality.id)
    if target.agent is None:
        return params
    if params.conversation_id is None:
        raise UsageError(tr("--agent needs --conversation or --continue."))
    agents = (await connection.call(AGENT_LIST, AgentListParams(conversation_id=params.conversation_id))).agents
    return msgspec.structs.replace(params, agent_id=find_agent(agents, target.agent).id)


async def _newest(connection: Connection, folder: str) -> str:
    """Return the id of the conversation of this folder that changed last."""
    cursor, is_first = None, True
    while is_first or cursor is not None:
        params = ConversationListParams(workspace=folder, limit=1, cursor=cursor)
        page = await connection.call(CONVERSATION_LIST, params)
        if page.conversations:
            return page.conversations[0].id
        cursor, is_first = page.next_cursor, False
    raise UsageError(
        tr("No conversation in {folder} yet. Leave out --continue to start one.").format(folder=short_path(folder))
    )


def find_agent(agents: tuple[Agent, ...], name: str) -> Agent:
    """Return the agent with this name, also after an @, or id; raises `UsageError`, which lists the names."""
    for agent in agents:
        if name == agent.id or name.removeprefix("@").casefold() == agent.name.casefold():
            return agent
    names = ", ".join(agent.name for agent in agents)
    raise UsageError(
        tr("There is no agent {name!r} in this conversation. There are: {names}.").format(
            name=name, names=names or "none"
        )
    )


async def find_personality(connection: Connection, name: str) -> Personality:
    """Return the personality with this id, or name ignoring case; raises `UsageError`."""
    personalities = (await connection.call(PERSONALITY_LIST, EmptyParams())).personalities
    for personality in personalities:
        if name == personality.id or name.casefold() == personality.name.casefold():
            return personality
    names = ", ".join(personality.name for personality in personalities)
    raise UsageError(tr("There is no personality {name!r}. There are: {names}.").format(name=name, names=names))
