"""Handlers of tools and MCP servers."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from errand.engine.agent.prompt.personalities import BUILTIN_PERSONALITIES
from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.tools.reading_form import READING_NAMES, full_name, reading_name
from errand.engine.tools.registry import NAMES, SERVER_PREFIX, SERVICES, TOOLS, is_tool_name, only_reads, uses_tool
from errand.protocol.agents import Personality
from errand.protocol.base import EmptyResult
from errand.protocol.events import GrantUpdate, PersonalityUpdate
from errand.protocol.servers import (
    MCP_ACCEPT_TOOL,
    MCP_CANCEL_LOGIN,
    MCP_FINISH_LOGIN,
    MCP_LIST,
    MCP_LOG,
    MCP_LOGIN,
    MCP_LOGOUT,
    MCP_PROMPT,
    MCP_PROMPTS,
    MCP_REMOVE,
    MCP_RESTART,
    MCP_SAVE,
    MCP_SET_ENABLED,
    MCP_SET_KEY,
    MCP_SHOW,
    MCP_TRUST,
    TOOL_LIST,
    TOOL_SWITCH,
    McpAcceptParams,
    McpFinishLoginParams,
    McpKeyParams,
    McpKeyResult,
    McpListParams,
    McpListResult,
    McpLoginParams,
    McpLoginResult,
    McpLogResult,
    McpPromptListParams,
    McpPromptListResult,
    McpPromptParams,
    McpPromptResult,
    McpSaveParams,
    McpServer,
    McpServerParams,
    McpServerResult,
    McpSetEnabledParams,
    McpShowResult,
    McpTrustParams,
    ToolInfo,
    ToolListResult,
    ToolSwitchParams,
)

# The newest calls, in which the last use of tools is looked for.
_NEWEST = 1_000


async def list_servers(services: Services, session: ClientSession, params: McpListParams) -> McpListResult:
    return McpListResult(servers=await services.tools.mcp.list(params.workspace))


async def save(services: Services, session: ClientSession, params: McpSaveParams) -> McpServerResult:
    return McpServerResult(server=await services.tools.mcp.save(params))


async def remove(services: Services, session: ClientSession, params: McpServerParams) -> EmptyResult:
    await services.tools.mcp.remove(params.name)
    return EmptyResult()


async def set_enabled(services: Services, session: ClientSession, params: McpSetEnabledParams) -> McpServerResult:
    return McpServerResult(server=await services.tools.mcp.set_enabled(params.name, enabled=params.enabled))


async def trust(services: Services, session: ClientSession, params: McpTrustParams) -> McpServerResult:
    return McpServerResult(server=await services.tools.mcp.trust(params))


async def restart(services: Services, session: ClientSession, params: McpServerParams) -> McpServerResult:
    return McpServerResult(server=await services.tools.mcp.restart(params.name, params.workspace))


async def login(services: Services, session: ClientSession, params: McpLoginParams) -> McpLoginResult:
    return await services.tools.mcp.login(params.name, params.workspace, params.issuer)


async def finish_login(services: Services, session: ClientSession, params: McpFinishLoginParams) -> EmptyResult:
    await services.tools.mcp.finish_login(params)
    return EmptyResult()


async def cancel_login(services: Services, session: ClientSession, params: McpServerParams) -> EmptyResult:
    await services.tools.mcp.cancel_login(params.name, params.workspace)
    return EmptyResult()


async def logout(services: Services, session: ClientSession, params: McpServerParams) -> McpServerResult:
    return McpServerResult(server=await services.tools.mcp.logout(params.name, params.workspace))


async def show(services: Services, session: ClientSession, params: McpServerParams) -> McpShowResult:
    return await services.tools.mcp.show(params.name, params.workspace)


async def log(services: Services, session: ClientSession, params: McpServerParams) -> McpLogResult:
    return McpLogResult(text=(await services.tools.mcp.find(params.name, params.workspace)).log.text())


async def set_key(services: Services, session: ClientSession, params: McpKeyParams) -> McpKeyResult:
    return McpKeyResult(notice=await services.tools.mcp.set_key(params))


async def list_prompts(services: Services, session: ClientSession, params: McpPromptListParams) -> McpPromptListResult:
    return await services.tools.mcp.prompts(params)


async def prompt(services: Services, session: ClientSession, params: McpPromptParams) -> McpPromptResult:
    return McpPromptResult(text=await services.tools.mcp.prompt(params))


async def accept_tool(services: Services, session: ClientSession, params: McpAcceptParams) -> McpServerResult:
    """Grants that were given for the tool hold again."""
    accepted = await services.tools.mcp.accept_tool(params)
    for grant in services.grants.accepting(accepted.service, accepted.identity):
        services.grants.add(grant)
        services.log.publish(GrantUpdate(grant=grant))
    return McpServerResult(server=accepted.server)


async def list_tools(services: Services, session: ClientSession, params: McpListParams) -> ToolListResult:
    personalities = await services.database.personalities.all()
    used: dict[str, datetime] = {}
    for start in await services.database.executions.newest(_NEWEST):
        used.setdefault(start.tool, start.at)
    own = tuple(
        ToolInfo(
            name=tool.name,
            label=tool.label,
            description=tool.description,
            tier=tool.tier,
            personalities=_users(personalities, reading_name(tool.name)),
            readers=tuple(personality.id for personality in personalities if only_reads(personality.tools, tool.name)),
            last_used_at=used.get(tool.name),
        )
        for tool in TOOLS
    )
    of_servers = tuple(
        ToolInfo(
            name=tool.name,
            label=tool.own_name,
            description=tool.description,
            tier="run",
            origin=server.name,
            personalities=_users(personalities, tool.name),
            last_used_at=used.get(tool.name),
            changed=tool.changed,
        )
        for server in await services.tools.mcp.list(params.workspace)
        for tool in server.tools
    )
    return ToolListResult(tools=(*own, *of_servers))


def _users(personalities: Iterable[Personality], tool: str) -> tuple[str, ...]:
    return tuple(personality.id for personality in personalities if uses_tool(personality.tools, tool))


async def switch(services: Services, session: ClientSession, params: ToolSwitchParams) -> EmptyResult:
    """Write the list of a personality's tools so that it has this one, or has it not."""
    if not is_tool_name(params.tool):
        raise InvalidParams(f"tool: there is no tool {params.tool[:80]!r}.")
    servers = await services.tools.mcp.list(None)
    async with services.personality_lock:
        personality = await services.database.personalities.get(params.personality_id)
        if personality is None:
            raise NotFound(f"There is no personality {params.personality_id!r}.")
        services.log.publish(PersonalityUpdate(personality=_switched(personality, params, servers)))
        await services.log.flush()
    return EmptyResult()


def _switched(personality: Personality, params: ToolSwitchParams, servers: Sequence[McpServer]) -> Personality:
    every = (*(name for name in NAMES if name != SERVICES), *(f"{SERVER_PREFIX}{server.name}" for server in servers))
    tools = {tool.name: f"{SERVER_PREFIX}{server.name}" for server in servers for tool in server.tools}
    listed = [*(personality.tools or every)]
    if SERVICES in listed:  # stands for all servers
        listed = [name for name in listed if name != SERVICES] + [f"{SERVER_PREFIX}{server.name}" for server in servers]
    its_server = tools.get(params.tool)
    if not params.on and its_server in listed:  # all tools of its server but this one
        listed.remove(its_server)
        listed += [name for name, owner in tools.items() if owner == its_server]
    chosen = [name for name in listed if full_name(name) != full_name(params.tool)]
    chosen += [_form_for(personality, params.tool)] if params.on else []
    if not chosen:
        raise InvalidParams("A personality has at least one tool. Switch another one on first.")
    return msgspec.structs.replace(personality, tools=tuple(dict.fromkeys(chosen)))


def _form_for(personality: Personality, tool: str) -> str:
    """Return the form in which a personality is given a tool: one that only reads gets the reading form again."""
    if shipped := next((own.tools for own in BUILTIN_PERSONALITIES if own.id == personality.id), ()):
        return reading_name(tool) if only_reads(shipped, tool) else tool
    reads = any(name in READING_NAMES for name in personality.tools)
    changes = any(reading_name(name) != name for name in personality.tools)
    return reading_name(tool) if reads and not changes else tool


HANDLERS = (
    Route(TOOL_LIST, list_tools),
    Route(TOOL_SWITCH, switch),
    Route(MCP_LIST, list_servers),
    Route(MCP_SAVE, save),
    Route(MCP_REMOVE, remove),
    Route(MCP_SET_ENABLED, set_enabled),
    Route(MCP_TRUST, trust),
    Route(MCP_RESTART, restart),
    Route(MCP_LOGIN, login),
    Route(MCP_FINISH_LOGIN, finish_login),
    Route(MCP_CANCEL_LOGIN, cancel_login),
    Route(MCP_LOGOUT, logout),
    Route(MCP_SHOW, show),
    Route(MCP_LOG, log),
    Route(MCP_SET_KEY, set_key),
    Route(MCP_PROMPTS, list_prompts),
    Route(MCP_PROMPT, prompt),
    Route(MCP_ACCEPT_TOOL, accept_tool),
)
