"""Where a task takes place: finds or makes its conversation and its agent."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from app.engine.broadcast import EventLog
from app.engine.errors import InvalidParams, NotFound
from app.engine.ids import new_id
from app.engine.storage.database import Database
from app.engine.storage.personalities import ASSISTANT
from app.paths import Paths
from app.protocol.agents import Agent, Personality
from app.protocol.conversations import Conversation
from app.protocol.events import AgentUpdate, ConversationUpdate
from app.protocol.tasks import TaskStartParams

_TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Place:
    conversation: Conversation
    agent: Agent
    personality: Personality


async def find_place(params: TaskStartParams, database: Database, paths: Paths) -> Place:
    """Where `params` point, or a new conversation with a new agent. Nothing is stored yet."""
    conversation = await _conversation(params, database, paths)
    agent = await _agent(params, conversation, database)
    personality = await personality_of(params.personality_id, agent, database)
    return Place(conversation, with_personality(agent, personality), personality)


def with_personality(agent: Agent, personality: Personality) -> Agent:
    """The agent as this personality. It is stored with the agent's next move."""
    return msgspec.structs.replace(agent, personality_id=personality.id, name=personality.name)


async def personality_of(asked_for: str | None, agent: Agent, database: Database) -> Personality:
    """The one asked for, or the agent's own; where that was deleted, the one that is always there."""
    personality = await database.personalities.get(asked_for or agent.personality_id)
    if personality is None and asked_for is None:
        personality = await database.personalities.get(ASSISTANT.id)
    if personality is None:
        raise NotFound(f"There is no personality {asked_for or agent.personality_id!r}. Choose another.")
    return personality


def publish_place(place: Place, log: EventLog) -> None:
    """Store and announce a place, with the folder it works in; what is there is touched, and no longer archived."""
    Path(place.conversation.workspace).mkdir(parents=True, exist_ok=True)
    touched = msgspec.structs.replace(place.conversation, updated_at=datetime.now(UTC), archived=False)
    log.publish(ConversationUpdate(conversation=touched))
    if place.agent.version == 0:
        log.publish(AgentUpdate(agent=place.agent))


async def _conversation(params: TaskStartParams, database: Database, paths: Paths) -> Conversation:
    if params.conversation_id is not None:
        found = await database.conversations.get(params.conversation_id)
        if found is None:
            raise NotFound(f"There is no conversation {params.conversation_id!r}.")
        if params.workspace is None:
            _check_still_there(found)
            return found
        return msgspec.structs.replace(found, workspace=str(_workspace(params.workspace)))
    now = datetime.now(UTC)
    conversation_id = new_id("conv")
    workspace = _workspace(params.workspace) if params.workspace else paths.workspaces / conversation_id
    return Conversation(
        id=conversation_id, title=_title(params), created_at=now, updated_at=now, workspace=str(workspace)
    )


async def _agent(params: TaskStartParams, conversation: Conversation, database: Database) -> Agent:
    if params.agent_id is not None:
        agent = await database.agents.get(params.agent_id)
        if agent is None or agent.conversation_id != conversation.id:
            raise NotFound(f"There is no agent {params.agent_id!r} in this conversation.")
        return agent
    agents = await database.agents.list(conversation.id) if params.conversation_id else ()
    if agents:
        return agents[-1]
    return Agent(
        id=new_id("agent"),
        conversation_id=conversation.id,
        personality_id=ASSISTANT.id,
        name=ASSISTANT.name,
        head_id=None,
        version=0,
        created_at=datetime.now(UTC),
    )


def _workspace(given: str) -> Path:
    workspace = Path(given).expanduser()
    if not workspace.is_absolute():
        raise InvalidParams(f"The workspace {given!r} must be an absolute path.")
    if not workspace.is_dir():
        raise InvalidParams(f"The workspace {given!r} is not a folder. Make it first, or name another.")
    return workspace.resolve()


def _check_still_there(conversation: Conversation) -> None:
    if not Path(conversation.workspace).is_dir():
        raise InvalidParams(
            f"The workspace of this conversation is gone: {conversation.workspace}. Make it again, or name another."
        )


def _title(params: TaskStartParams) -> str:
    """Of the prompt, or of what is attached where nothing is said."""
    return title_of(params.prompt if params.prompt.strip() else Path(params.attachments[0]).name)


def title_of(prompt: str) -> str:
    """The first line of a prompt, shortened at a word."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "New conversation")
    if len(line) <= _TITLE_LENGTH:
        return line
    return line[:_TITLE_LENGTH].rsplit(" ", 1)[0].rstrip(",;:.") + "…"
