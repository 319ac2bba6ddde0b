"""Agents and their heads."""

from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.agents import AgentListParams, AgentListResult, AgentSetHeadParams, AgentSetHeadResult
from app.protocol.wire import AGENT_LIST, AGENT_SET_HEAD


async def list_agents(services: Services, session: Session, params: AgentListParams) -> AgentListResult:
    return AgentListResult(agents=await services.database.agents.list(params.conversation_id))


async def set_head(services: Services, session: Session, params: AgentSetHeadParams) -> AgentSetHeadResult:
    return AgentSetHeadResult(agent=await services.roster.set_head(params))


HANDLERS = (Route(AGENT_LIST, list_agents), Route(AGENT_SET_HEAD, set_head))
