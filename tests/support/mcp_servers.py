"""A pool of MCP servers on a temporary data directory, with the small server of these tests."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import McpServer as StoredServer
from errand.engine.core.settings import Settings
from errand.engine.permissions.network import judge_named
from errand.engine.tools.mcp.known import KnownServers
from errand.engine.tools.mcp.pool import McpPool
from errand.engine.tools.mcp.server import McpServer
from errand.engine.tools.mcp.tool import McpTool
from errand.engine.tools.results import OnUpdate, ToolResult
from errand.protocol.base import JsonObject
from tests.support.loop_parts import make_tool_context
from tests.support.processes import PYTHON

SCRIPT = Path(__file__).with_name("mcp_stdio_server.py")


def command(mode: str = "good", *more: str) -> tuple[str, ...]:
    """The command line of the small server."""
    return (PYTHON, "-I", "-S", str(SCRIPT), mode, *more)


def stored(name: str = "test", mode: str = "good", *more: str, timeout_s: float = 20.0) -> StoredServer:
    return StoredServer(name=name, command=command(mode, *more), timeout_s=timeout_s)


def no_sandbox(folder: Path, owner: str, environment: Mapping[str, str]) -> None:
    pass


def no_vault() -> None:
    """No keyring: keys are in a file of the test's folder."""


def judge_here(url: str, resolved: Sequence[str], server: str, of_server: Sequence[str]) -> str | None:
    """The rules for addresses that servers name, for an engine without a port of its own."""
    return judge_named(url, resolved, server, of_server, None)


@asynccontextmanager
async def pool_of(folder: Path, *servers: StoredServer, ca_file: str = "") -> AsyncGenerator[McpPool]:
    """A pool with these servers in its settings; ends them."""
    settings = Settings(folder / "settings.json")
    settings.set("ca_file", ca_file)
    settings.set_mcp_servers(servers)
    keys = KeyStore(folder / "keys", {}, no_vault)
    pool = McpPool(settings, keys, KnownServers(folder / "mcp.json"), no_sandbox, judge_here)
    try:
        yield pool
    finally:
        await pool.close()


@asynccontextmanager
async def server_of(folder: Path, mode: str = "good", *more: str, timeout_s: float = 20.0) -> AsyncGenerator[McpServer]:
    async with pool_of(folder, stored("test", mode, *more, timeout_s=timeout_s)) as pool:
        yield await pool.find("test")


async def tool_of_server(server: McpServer, folder: Path, name: str = "echo") -> McpTool:
    """A tool of a server as a task has it."""
    connection = await server.connected()
    known_servers = KnownServers(folder / "mcp.json")
    (tool,) = (candidate for candidate in connection.tools.tools if candidate.own_name == name)
    return McpTool(tool, server, known_servers, make_tool_context(folder))


def _nothing(result: ToolResult) -> None:
    pass


async def echo(
    tool: McpTool, text: str, cancel: CancelSignal | None = None, on_update: OnUpdate = _nothing
) -> ToolResult:
    arguments: JsonObject = {"text": text}
    return await tool.execute("call_1", arguments, cancel or CancelSignal(), on_update)
