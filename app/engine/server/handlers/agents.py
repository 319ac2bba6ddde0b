"""Agents and their heads: the moves are the roster's, a chat is a task of its own."""

import msgspec

from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.agents import (
    AgentCreateParams,
    AgentIdParams,
    AgentListParams,
    AgentListResult,
    AgentResult,
    AgentSetHeadParams,
    AgentSetHeadResult,
)
from app.protocol.chats import AgentChatParams, AgentChatResult
from app.protocol.engine import EmptyResult
from app.protocol.wire import AGENT_CHAT, AGENT_CREATE, AGENT_DELETE, AGENT_GET, AGENT_LIST, AGENT_SET_HEAD


async def list_agents(services: Services, session: Session, params: AgentListParams) -> AgentListResult:
    return AgentListResult(agents=await services.database.agents.list(params.conversation_id))


async def get(services: Services, session: Session, params: AgentIdParams) -> AgentResult:
    return AgentResult(agent=await services.roster.get(params.agent_id))


async def create(services: Services, session: Session, params: AgentCreateParams) -> AgentResult:
    return AgentResult(agent=await services.roster.create(params))


async def delete(services: Services, session: Session, params: AgentIdParams) -> EmptyResult:
    await services.roster.delete(params.agent_id)
    return EmptyResult()


async def chat(services: Services, session: Session, params: AgentChatParams) -> AgentChatResult:
    return await services.chats.chat(params)


async def set_head(services: Services, session: Session, params: AgentSetHeadParams) -> AgentSetHeadResult:
    return AgentSetHeadResult(agent=await services.roster.set_head(params))


def _named_create(params: AgentCreateParams, name: str) -> AgentCreateParams:
    return params if params.agent_id is not None else msgspec.structs.replace(params, agent_id=f"agent_{name}")


def _named_chat(params: AgentChatParams, name: str) -> AgentChatParams:
    return params if params.task_id is not None else msgspec.structs.replace(params, task_id=f"task_{name}")


HANDLERS = (
    Route(AGENT_LIST, list_agents),
    Route(AGENT_GET, get),
    Route(AGENT_CREATE, create, _named_create),
    Route(AGENT_DELETE, delete),
    Route(AGENT_CHAT, chat, _named_chat),
    Route(AGENT_SET_HEAD, set_head),
)
