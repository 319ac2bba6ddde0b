"""`errand run`: starts one task. Following it to its end is `follow.py`'s."""

import os
import sys
from pathlib import Path

import msgspec

from app.cli.follow import Follower
from app.cli.options import Options
from app.cli.terminal import Terminal
from app.client.characters import exact
from app.client.connection import Connection
from app.client.launch import connect
from app.paths import Paths
from app.protocol.agents import Agent, AgentListParams, Personality, ThinkingLevel
from app.protocol.conversations import ConversationChangeParams, ConversationGetParams
from app.protocol.engine import EmptyParams
from app.protocol.json import JsonObject
from app.protocol.tasks import ApproveMode, Task, TaskMode, TaskStartParams
from app.protocol.wire import AGENT_LIST, CONVERSATION_CHANGE, CONVERSATION_GET, PERSONALITY_LIST, TASK_START
from app.regular_file import read_regular

_LONGEST_PROMPT = 1_000_000  # a message to the engine has 1 MiB
_LARGEST_SCHEMA = 1_000_000


class UsageError(Exception):
    """What was typed cannot be done; the text says what to type instead."""


async def run(options: Options, paths: Paths, terminal: Terminal) -> int:
    """Start the task, show it, settle what it asks; the exit code says how it ended."""
    someone = terminal.interactive and not options.json and options.events is None
    params = start_params(options, read_prompt(options.prompt), someone)
    if options.approve == "ask" and not someone:
        terminal.note("errand: nobody is there to ask, so what needs approval is refused (--approve all allows it)")
    connection = await connect(paths, "errand run")
    try:
        start = await addressed(connection, params, options)
        if someone:
            await confirm_workspace(connection, start, terminal)

        async def begin() -> Task:
            return (await connection.call(TASK_START, start)).task

        return await _follower(connection, terminal, options).to_its_end(begin, is_new=True)
    finally:
        await connection.close()


async def confirm_workspace(connection: Connection, start: TaskStartParams, terminal: Terminal) -> None:
    """Ask for the folder that the file of an imported conversation names; `UsageError` where it is not confirmed.

    Where nobody can be asked the engine refuses the task, and says what to do.
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


def _follower(connection: Connection, terminal: Terminal, options: Options) -> Follower:
    """With a schema the answer alone is the output: what happens meanwhile goes to standard error."""
    if options.answer_schema is None or options.json or options.events is not None:
        return Follower(connection, terminal, as_json=options.json, events=options.events)
    return Follower(connection, terminal.aside(), as_json=False, answer_to=terminal)


async def addressed(connection: Connection, params: TaskStartParams, options: Options) -> TaskStartParams:
    """For the agent and the personality that are named; raises `UsageError`."""
    if options.personality is not None:
        personality = await find_personality(connection, options.personality)
        params = msgspec.structs.replace(params, personality_id=personality.id)
    if options.agent is None:
        return params
    if params.conversation_id is None:
        raise UsageError("--agent names one of a conversation's agents: say which with --conversation.")
    found = (await connection.call(AGENT_LIST, AgentListParams(conversation_id=params.conversation_id))).agents
    return msgspec.structs.replace(params, agent_id=chosen(found, options.agent).id)


def chosen(agents: tuple[Agent, ...], wanted: str) -> Agent:
    """The one with this name or id; raises `UsageError`, which names them."""
    name = wanted.removeprefix("@").casefold()
    for agent in agents:
        if wanted == agent.id or name == agent.name.casefold():
            return agent
    names = ", ".join(agent.name for agent in agents)
    raise UsageError(f"There is no agent {wanted!r} in this conversation. There are: {names or 'none'}.")


async def find_personality(connection: Connection, name: str) -> Personality:
    """By its id or its name, in any case; raises `UsageError`."""
    known = (await connection.call(PERSONALITY_LIST, EmptyParams())).personalities
    for personality in known:
        if name == personality.id or name.casefold() == personality.name.casefold():
            return personality
    names = ", ".join(personality.name for personality in known)
    raise UsageError(f"There is no personality {name!r}. There are: {names}.")


def start_params(options: Options, prompt: str, someone: bool) -> TaskStartParams:
    """The options as the engine takes them; raises `UsageError`."""
    approve: ApproveMode = "ask" if someone else "never"
    if options.approve != "ask":
        approve = msgspec.convert(options.approve, ApproveMode)
    return TaskStartParams(
        prompt=prompt,
        conversation_id=options.conversation,
        model=options.model,
        api_base=options.api_base,
        api_key=key_of(options.api_key_env),
        workspace=None if options.conversation and not options.workspace else _workspace(options.workspace),
        mode=msgspec.convert(options.mode, TaskMode),
        approve=approve,
        attended=someone,
        thinking_level=msgspec.convert(options.thinking, ThinkingLevel | None),
        max_turns=options.max_turns,
        budget_usd=options.budget,
        attachments=tuple(_attachment(file) for file in options.attach or ()),
        answer_schema=_schema(options.answer_schema),
    )


def read_prompt(argument: str) -> str:
    """The prompt, from standard input for `-`; raises `UsageError` when there is none, or too much of it."""
    text = sys.stdin.buffer.read(_LONGEST_PROMPT + 1) if argument == "-" else argument.encode()
    if not text.strip():
        raise UsageError("The prompt is empty. Say what to do, for example: errand run 'list the largest files here'")
    if len(text) > _LONGEST_PROMPT:
        raise UsageError(
            f"The prompt is longer than {_LONGEST_PROMPT:,} bytes, and not more are taken. "
            "Put the text into a file in the workspace and name that file in the prompt."
        )
    return text.decode("utf-8", "replace")


def key_of(variable: str | None) -> str | None:
    """What the variable holds; raises `UsageError` where it is not set."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"The environment variable {variable} is not set, so there is no key to use.")
    return key


def _schema(file: str | None) -> JsonObject | None:
    if file is None:
        return None
    try:
        return msgspec.json.decode(read_regular(Path(os.path.expanduser(file)), _LARGEST_SCHEMA), type=JsonObject)
    except OSError as error:
        raise UsageError(f"The schema {file!r} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The schema {file!r} is not a JSON object: {error}.") from error


def _attachment(file: str) -> str:
    path = Path(os.path.expanduser(file))
    if not path.is_file():
        raise UsageError(f"There is no file {file!r} to attach. Check its name; a folder is named in the prompt.")
    return as_text(path.absolute())


def as_text(path: Path) -> str:
    """As the engine takes it, which takes UTF-8 alone; raises `UsageError`."""
    try:
        path.as_posix().encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", "replace")
        raise UsageError(f"The name {shown!r} is not UTF-8, which Errand cannot work with. Rename it first.") from error
    return str(path)


def _workspace(folder: str | None) -> str:
    path = Path(os.path.expanduser(folder or "."))
    try:
        whole = Path(os.path.realpath(path))  # fails where the folder we are in was removed
    except OSError:
        whole = path
    if not whole.is_absolute() or not whole.is_dir():
        raise UsageError(
            f"There is no folder {str(path)!r} to work in. Make it first, or name another with --workspace."
        )
    return as_text(whole)
