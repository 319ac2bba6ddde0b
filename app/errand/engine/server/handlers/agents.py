"""Handlers of agents and personalities."""

import re

from errand.engine.agent.prompt.personalities import BUILTIN_PERSONALITIES, is_builtin
from errand.engine.core.errors import Conflict, InvalidParams, NotFound
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.tools.registry import LISTED_NAMES, is_tool_name
from errand.protocol.agents import (
    AGENT_CREATE,
    AGENT_DELETE,
    AGENT_GET,
    AGENT_LIST,
    AGENT_SET_HEAD,
    PERSONALITY_DELETE,
    PERSONALITY_LIST,
    PERSONALITY_SAVE,
    AgentCreateParams,
    AgentIdParams,
    AgentListParams,
    AgentListResult,
    AgentResult,
    AgentSetHeadParams,
    AgentSetHeadResult,
    Personality,
    PersonalityDeleteParams,
    PersonalityListResult,
    PersonalitySaveParams,
    PersonalitySaveResult,
)
from errand.protocol.base import EmptyParams, EmptyResult
from errand.protocol.conversations import AGENT_CHAT, AgentChatParams, AgentChatResult
from errand.protocol.events import PersonalityDeleted, PersonalityUpdate

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MAX_NAME_LENGTH = 100
_MAX_PROMPT_LENGTH = 100_000
_MAX_TEMPERATURE = 2


async def list_agents(services: Services, session: ClientSession, params: AgentListParams) -> AgentListResult:
    return AgentListResult(agents=await services.database.agents.list(params.conversation_id))


async def get(services: Services, session: ClientSession, params: AgentIdParams) -> AgentResult:
    return AgentResult(agent=await services.agents.get(params.agent_id))


async def create(services: Services, session: ClientSession, params: AgentCreateParams) -> AgentResult:
    return AgentResult(agent=await services.agents.create(params))


async def delete(services: Services, session: ClientSession, params: AgentIdParams) -> EmptyResult:
    await services.agents.delete(params.agent_id)
    return EmptyResult()


async def chat(services: Services, session: ClientSession, params: AgentChatParams) -> AgentChatResult:
    return await services.chats.chat(params)


async def set_head(services: Services, session: ClientSession, params: AgentSetHeadParams) -> AgentSetHeadResult:
    return AgentSetHeadResult(agent=await services.agents.set_head(params))


async def list_all(services: Services, session: ClientSession, params: EmptyParams) -> PersonalityListResult:
    return PersonalityListResult(
        personalities=await services.database.personalities.all(), shipped=BUILTIN_PERSONALITIES, tools=LISTED_NAMES
    )


async def save(services: Services, session: ClientSession, params: PersonalitySaveParams) -> PersonalitySaveResult:
    _check(params.personality)
    async with services.personality_lock:  # until it is stored: the next check reads it
        await _check_name(services, params.personality)
        services.log.publish(PersonalityUpdate(personality=params.personality))
        await services.log.flush()
    return PersonalitySaveResult(personality=params.personality)


async def delete_personality(
    services: Services, session: ClientSession, params: PersonalityDeleteParams
) -> EmptyResult:
    if is_builtin(params.personality_id):
        raise Conflict(f"{params.personality_id} comes with Errand and stays. Change it as you like.")
    async with services.personality_lock:
        if await services.database.personalities.get(params.personality_id) is None:
            raise NotFound(f"There is no personality {params.personality_id!r}.")
        services.log.publish(PersonalityDeleted(personality_id=params.personality_id))
        await services.log.flush()
    return EmptyResult()


def _check(personality: Personality) -> None:
    if not _ID.fullmatch(personality.id):
        raise InvalidParams("id: 1 to 100 letters, digits, `-` and `_`.")
    name = personality.name
    if not 1 <= len(name) <= _MAX_NAME_LENGTH or name != name.strip() or "@" in name or not name.isprintable():
        raise InvalidParams(
            f"name: 1 to {_MAX_NAME_LENGTH} characters in one line, without @."
        )  # agents get these names
    if len(personality.system_prompt) > _MAX_PROMPT_LENGTH:
        raise InvalidParams(
            f"systemPrompt: {len(personality.system_prompt):,} characters; at most {_MAX_PROMPT_LENGTH:,}."
        )
    if personality.model and "/" not in personality.model:
        raise InvalidParams(f"model: {personality.model!r} is not provider/model, such as openai/gpt-5.4.")
    if personality.temperature is not None and not 0 <= personality.temperature <= _MAX_TEMPERATURE:
        raise InvalidParams(f"temperature: a number from 0 to {_MAX_TEMPERATURE}, or null for the model's own.")
    unknown = [name for name in personality.tools if not is_tool_name(name)]
    if unknown:
        raise InvalidParams(f"tools: there is no tool {unknown[0]!r}; there are {', '.join(LISTED_NAMES)}.")


async def _check_name(services: Services, personality: Personality) -> None:
    for other in await services.database.personalities.all():
        if other.id != personality.id and other.name.casefold() == personality.name.casefold():
            raise Conflict(f"There is a personality named {other.name!r} already. Choose another name.")


HANDLERS = (
    Route(AGENT_LIST, list_agents),
    Route(AGENT_GET, get),
    Route(AGENT_CREATE, create),
    Route(AGENT_DELETE, delete),
    Route(AGENT_CHAT, chat),
    Route(AGENT_SET_HEAD, set_head),
    Route(PERSONALITY_LIST, list_all),
    Route(PERSONALITY_SAVE, save),
    Route(PERSONALITY_DELETE, delete_personality),
)
