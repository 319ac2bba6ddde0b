"""The tools of MCP servers as a feature of a task: asks about servers of its workspace, connects, follows changes."""

import asyncio
from functools import partial
from pathlib import Path

from errand.engine.agent.loop.features import Feature
from errand.engine.agent.run.pending_asks import ask_for_trust, can_be_asked
from errand.engine.agent.run.recorder import TaskRecorder
from errand.engine.agent.run.task_context import TaskContext, TaskTools
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.tools.base import AgentTool, GuardedTool
from errand.engine.tools.context import ToolContext
from errand.engine.tools.mcp.configuration import ServerSpec, bounds_text, started_text
from errand.engine.tools.mcp.definitions import SEPARATOR
from errand.engine.tools.mcp.pool import McpPool
from errand.engine.tools.mcp.server import McpServer
from errand.engine.tools.mcp.tool import McpResources, McpTool
from errand.engine.tools.registry import SERVER_PREFIX, SERVICES, uses_tool
from errand.protocol.asks import Approval
from errand.protocol.notices import Remark
from errand.text.visible_text import command_text

# Servers that start later than this join the task at its next turn.
_START_S = 20.0


class ServiceTools(Feature):
    """`chosen` are lists of tools, that of the task and that of its personality; an empty one stands for all."""

    def __init__(
        self,
        context: TaskContext,
        tools: TaskTools,
        pool: McpPool,
        chosen: tuple[tuple[str, ...], ...],
        tool_context: ToolContext,
        recorder: TaskRecorder,
    ) -> None:
        self._context = context
        self._state = context.state
        self._tools = tools
        self._pool = pool
        self._chosen = chosen
        self._tool_context = tool_context
        self._recorder = recorder
        self._servers: tuple[McpServer, ...] = ()
        self._bound: tuple[tuple[str, str], ...] = ()

    async def connect(self, cancel: CancelSignal) -> tuple[AgentTool, ...]:
        """Return all tools of the task, with those of the servers that are ready in time; remarks on the others."""
        workspace = Path(self._state.task.request.workspace)
        enabled = [
            server
            for server in await self._pool.servers(workspace)
            if server.spec.enabled and self._may_use(server.spec)
        ]
        self._servers = tuple([server for server in enabled if await self._is_trusted(server, cancel)])
        waiting = [server for server in self._servers if server.connection is None]
        if waiting and not cancel.is_set:
            names = ", ".join(server.spec.name for server in waiting)
            self._state.set_activity(f"starting {names}")
            await self._start(waiting, cancel)
            self._state.set_activity("")
        self._bind()
        return self._tools.all

    async def change_tools(self, cancel: CancelSignal) -> tuple[AgentTool, ...] | None:
        """Return the tools, if the list of a server has changed or a server became ready meanwhile."""
        for server in self._servers:
            await server.settled()
        return self._tools.all if self._servers and self._bind() else None

    def _may_use(self, spec: ServerSpec) -> bool:
        """Return True if each list has the server, or a tool of it."""
        own = f"{spec.name}{SEPARATOR}"
        return all(_has_all(names, spec) or any(name.startswith(own) for name in names) for names in self._chosen)

    def _may_call(self, name: str) -> bool:
        return all(uses_tool(names, name) for names in self._chosen)

    def _may_read(self, spec: ServerSpec) -> bool:
        """Resources belong to the server as a whole."""
        return all(_has_all(names, spec) for names in self._chosen)

    async def _is_trusted(self, server: McpServer, cancel: CancelSignal) -> bool:
        """Return True for a server that may start: a person entered it, or trusts exactly this one of the workspace."""
        spec, known_servers = server.spec, self._pool.known
        if spec.problem:
            self._recorder.remark(Remark(text=f"The MCP server {spec.name} is not used: {spec.problem}"))
            return False
        trust = known_servers.trust_of(spec)
        if trust != "unknown":
            return trust == "trusted"
        task = self._state.task
        if not can_be_asked(task) or cancel.is_set:
            text = (
                f"The MCP server {spec.name} of this workspace is not used, because nobody has trusted it yet. To look "
                f"at it and trust it: errand mcp trust {spec.name}"
            )
            self._recorder.remark(Remark(text=text))
            return False

        def decide(is_trusted: bool) -> None:
            known_servers.decide(spec, is_trusted=is_trusted)
            self._pool.changed(server)

        approval = _approval(spec, has_changed=known_servers.has_changed(spec))
        await ask_for_trust(
            self._context.asks, self._state, approval, partial(known_servers.trust_of, spec), decide, cancel
        )
        return known_servers.trust_of(spec) == "trusted"

    async def _start(self, servers: list[McpServer], cancel: CancelSignal) -> None:
        starts = [asyncio.create_task(_connected(server), name=f"wait for {server.spec.name}") for server in servers]
        cancelled = asyncio.create_task(cancel.wait(), name="cancel while servers start")
        until = asyncio.get_running_loop().time() + _START_S
        left: set[asyncio.Task[str]] = set(starts)
        try:
            while left and not cancel.is_set and (pause := until - asyncio.get_running_loop().time()) > 0:
                done, _ = await asyncio.wait((*left, cancelled), timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                left = {waiting_start for waiting_start in left if waiting_start not in done}
        finally:
            for task in (*left, cancelled):
                task.cancel()
            await asyncio.wait((*starts, cancelled))
        for server, start in zip(servers, starts, strict=True):
            if start.cancelled():
                if not cancel.is_set:
                    self._recorder.remark(Remark(text=f"The MCP server {server.spec.name} is still starting."))
            elif problem := start.result():
                self._recorder.remark(Remark(text=problem))

    def _bind(self) -> bool:
        """Make the servers' present tools those of the task; False if they are what they were.

        A server that has ended keeps its tools: the next call starts it again.
        """
        ready = [(server, connection) for server in self._servers if (connection := server.listed) is not None]
        tools: list[GuardedTool] = [
            McpTool(tool, server, self._pool.known, self._tool_context)
            for server, connection in ready
            for tool in connection.tools.tools
            if self._may_call(tool.name)
        ]
        resources = [
            server for server, connection in ready if connection.facts.has_resources and self._may_read(server.spec)
        ]
        if resources:
            tools.append(McpResources(resources, self._tool_context))
        bound = tuple(
            (tool.name, tool.fingerprint) for _, connection in ready for tool in connection.tools.tools
        ) + tuple((server.spec.id, SERVICES) for server in resources)
        if bound == self._bound:
            return False
        self._bound = bound
        self._tools.set_service_tools(tuple(tools))
        return True


def _has_all(names: tuple[str, ...], spec: ServerSpec) -> bool:
    return uses_tool(names, f"{SERVER_PREFIX}{spec.name}")


async def _connected(server: McpServer) -> str:
    """Why the server could not be connected; empty if it is."""
    try:
        await server.connected()
    except EngineError as error:
        return str(error)
    return ""


def _approval(spec: ServerSpec, *, has_changed: bool) -> Approval:
    """Return the approval of a server that a file of the workspace names, with everything that would be started."""
    began = "has changed the server" if has_changed else "names the server"
    text = (
        f"{spec.file} of this workspace {began} {spec.name}. Trust it? Allowing starts exactly this, now and in later "
        "tasks here, until it changes. Its tools are asked about one by one."
    )
    return Approval(
        tool=SERVICES,
        call_id="",
        text=text,
        rule="a file of the workspace starts a program",
        risk="high",
        command=command_text(spec.command) if spec.command else None,
        address=spec.url,
        working_dir=spec.workspace,
        preview=started_text(spec),
        sandbox=bounds_text(spec),
        basis=spec.fingerprint,
    )
