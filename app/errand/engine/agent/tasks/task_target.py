"""Finds or creates the conversation, agent and workspace for a task."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.agent.history.participants import first_speaker, unused_name
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.core.errors import InvalidParams, NotFound, UnconfirmedWorkspace
from errand.engine.core.ids import new_id
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.storage.records.agents import ASSISTANT
from errand.engine.tools.plain_text import is_text
from errand.protocol.agents import Agent, Personality
from errand.protocol.conversations import Conversation
from errand.protocol.events import AgentUpdate, ConversationUpdate
from errand.protocol.notices import NoticeData
from errand.protocol.tasks.methods import TaskStartParams
from errand.system.paths import Paths

# Title of a conversation without messages.
NO_TITLE = "New conversation"
_TITLE_LENGTH = 60
# What is redacted of a line: a key that begins within the title ends before it, or is recognized by its beginning.
_MAX_READ = 4_000
# Number of newest tasks searched for the last speaker.
_LAST_TASKS = 20


def _unchanged(conversation: Conversation) -> Conversation:
    return conversation


@dataclass(frozen=True, slots=True)
class TaskTarget:
    """`author` wrote the task's message; `remark` follows that message. `caller` is the agent that gave the task.

    `choose` is what the start changes in a stored conversation; in `conversation` it is done. `is_new`: that one is not
    stored yet.
    """

    conversation: Conversation
    agent: Agent
    personality: Personality
    remark: NoticeData | None = None
    author: str = "user"
    caller: str = ""
    choose: Callable[[Conversation], Conversation] = _unchanged
    is_new: bool = False


async def find_target(params: TaskStartParams, database: Database, paths: Paths) -> TaskTarget:
    """Return the target named in `params`, or a new conversation with a new agent. Nothing is stored yet."""
    is_new, choose = params.conversation_id is None, _unchanged
    if params.conversation_id is None:
        conversation = await _new_conversation(params, paths, database.redact)
    else:
        stored = await _stored_conversation(params.conversation_id, params, database)
        choose = await _choice(params, database.redact)
        conversation = choose(stored)
    agent = await _agent(params, conversation, database)
    personality = await personality_of(params.personality_id, agent, database)
    if agent.version == 0:
        agent = msgspec.structs.replace(agent, color=personality.color)
    return TaskTarget(conversation, agent, personality, choose=choose, is_new=is_new)


async def with_personality(agent: Agent, personality: Personality, database: Database) -> Agent:
    """Return the agent with this personality, its name and colour if it changes.

    Stored with the agent's next update.
    """
    if agent.personality_id == personality.id:
        return agent
    others = [other.name for other in await database.agents.list(agent.conversation_id) if other.id != agent.id]
    name = unused_name(personality.name, others)
    return msgspec.structs.replace(agent, personality_id=personality.id, name=name, color=personality.color)


async def personality_of(asked_for: str | None, agent: Agent, database: Database) -> Personality:
    """Return the requested personality, or the agent's; falls back to the built-in assistant if that was deleted."""
    personality = await database.personalities.get(asked_for or agent.personality_id)
    if personality is None and asked_for is None:
        personality = await database.personalities.get(ASSISTANT.id)
    if personality is None:
        raise NotFound(f"There is no personality {asked_for or agent.personality_id!r}. Choose another.")
    return personality


async def make_workspace(conversation: Conversation) -> None:
    """Create the workspace folder if missing, as for a conversation without a given workspace."""
    folder = Path(conversation.workspace)
    await in_workspace(folder, lambda: folder.mkdir(parents=True, exist_ok=True))


async def publish_target(target: TaskTarget, log: EventLog, changes: ConversationChanges) -> None:
    """Store and announce a target; an existing conversation is touched and unarchived.

    Raises `NotFound` if it was deleted meanwhile. There is no wait after the first event.
    """

    def touch(conversation: Conversation) -> Conversation:
        return msgspec.structs.replace(target.choose(conversation), updated_at=datetime.now(UTC), archived=False)

    if target.is_new:
        log.publish(ConversationUpdate(conversation=touch(target.conversation)))
    else:
        await changes.change(target.conversation.id, touch)
    if target.agent.version == 0:
        log.publish(AgentUpdate(agent=target.agent))


async def _stored_conversation(conversation_id: str, params: TaskStartParams, database: Database) -> Conversation:
    conversation = await database.conversations.get(conversation_id)
    if conversation is None:
        raise NotFound(f"There is no conversation {conversation_id!r}.")
    if params.workspace is None:
        await _check_workspace(conversation)
    return conversation


async def _choice(params: TaskStartParams, redact: Callable[[str], str]) -> Callable[[Conversation], Conversation]:
    """Return the changes of a stored conversation that the person chose together with the task."""
    folder = None if params.workspace is None else await workspace_folder(params.workspace)

    def choose(conversation: Conversation) -> Conversation:
        title = _title(params, redact) if conversation.title == NO_TITLE else conversation.title
        network = params.network or conversation.network
        chosen = msgspec.structs.replace(conversation, title=title, network=network)
        return chosen if folder is None else with_workspace(chosen, folder)

    return choose


async def _new_conversation(params: TaskStartParams, paths: Paths, redact: Callable[[str], str]) -> Conversation:
    conversation = await new_conversation(_title(params, redact), params.workspace, paths)
    if params.network is not None:
        conversation = msgspec.structs.replace(conversation, network=params.network)
    if params.approve in (None, "never"):  # `never` holds for the task alone
        return conversation
    return msgspec.structs.replace(conversation, approve=params.approve)


async def workspace_folder(given: str) -> Path:
    """Return the real path of a workspace chosen by the user. Raises `InvalidParams` if it is not a folder."""
    return await in_workspace(Path(given), lambda: _real_folder(given))


def with_workspace(conversation: Conversation, folder: Path) -> Conversation:
    """Return the conversation with a folder chosen by the user, resolved by `workspace_folder`."""
    return msgspec.structs.replace(conversation, workspace=str(folder), proposed_workspace="")


async def new_conversation(title: str, workspace: str | None, paths: Paths) -> Conversation:
    """Return a conversation that is not stored yet. It uses `workspace`, or a new folder."""
    now = datetime.now(UTC)
    conversation_id = new_id("conv")
    folder = await workspace_folder(workspace) if workspace else paths.workspaces / conversation_id
    return Conversation(id=conversation_id, title=title, created_at=now, updated_at=now, workspace=str(folder))


async def _agent(params: TaskStartParams, conversation: Conversation, database: Database) -> Agent:
    if params.agent_id is not None:
        agent = await database.agents.get(params.agent_id)
        if agent is None or agent.conversation_id != conversation.id:
            raise NotFound(f"There is no agent {params.agent_id!r} in this conversation.")
        return agent
    agents = await database.agents.list(conversation.id) if params.conversation_id else ()
    if agents:
        return await _addressed_agent(params.prompt, conversation, agents, database)
    return Agent(
        id=new_id("agent"),
        conversation_id=conversation.id,
        personality_id=ASSISTANT.id,
        name=ASSISTANT.name,
        head_id=await database.nodes.newest(conversation.id) if params.conversation_id else None,
        version=0,
        created_at=datetime.now(UTC),
        owner=conversation.owner,
    )


async def _addressed_agent(
    prompt: str, conversation: Conversation, agents: tuple[Agent, ...], database: Database
) -> Agent:
    """Return the agent that a message addresses. Side-branch agents take no turns."""
    taking = tuple(agent for agent in agents if agent.beside is None) or agents
    if len(taking) == 1:
        return taking[0]
    tasks = await database.tasks.newest(_LAST_TASKS, conversation.id)
    ids = {agent.id for agent in taking}
    # In a round, an agent that was stopped or failed has not had its turn.
    is_round = conversation.turn_taking.rule == "round_robin"
    spoke = (
        task.agent_id
        for task in tasks
        if task.agent_id in ids and (task.activity.status == "completed" or not is_round)
    )
    spoke_last = next(spoke, None)
    return first_speaker(conversation.turn_taking, taking, prompt, spoke_last)


def _real_folder(given: str) -> Path:
    workspace = Path(os.path.expanduser(given))
    if not workspace.is_absolute():
        raise InvalidParams(f"The workspace {given!r} must be an absolute path.")
    if not os.path.isdir(workspace):  # False also on a disk error
        raise InvalidParams(f"The workspace {given!r} is not a folder. Make it first, or name another.")
    folder = workspace.resolve()
    if not is_text(str(folder)):
        raise InvalidParams(f"The workspace {given!r} leads to a folder whose name is not UTF-8. Rename that folder.")
    return folder


async def _check_workspace(conversation: Conversation) -> None:
    if conversation.proposed_workspace:
        raise UnconfirmedWorkspace(
            f"This conversation was imported, and its file names the folder {conversation.proposed_workspace!r} to "
            "work in. Nothing was started. Confirm that folder or name another one with --workspace DIR."
        )
    folder = Path(conversation.workspace)
    if not await in_workspace(folder, lambda: os.path.isdir(folder)):
        raise InvalidParams(
            f"The workspace of this conversation is gone: {conversation.workspace}. Make it again, or name another."
        )


def _title(params: TaskStartParams, redact: Callable[[str], str]) -> str:
    """Make a title from the prompt, or from the first attachment if the prompt is empty."""
    return title_of(params.prompt if params.prompt.strip() else Path(params.attachments[0]).name, redact)


def title_of(prompt: str, redact: Callable[[str], str]) -> str:
    """Return the first line of a prompt, shortened at a word, without keys: titles are shown in more places than
    texts.
    """
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), NO_TITLE)
    line = redact(line[:_MAX_READ])
    if len(line) <= _TITLE_LENGTH:
        return line
    return line[:_TITLE_LENGTH].rsplit(" ", 1)[0].rstrip(",;:.") + "…"
