"""Servers on the web: one made with the SDK, and one that refuses."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.setting_values import McpServer
from errand.engine.tools.mcp.json_rpc import McpError
from tests.support.mcp_servers import pool_of
from tests.support.oauth_server import visit
from tests.support.processes import until

_REPOSITORY = Path(__file__).parents[4]


@asynccontextmanager
async def _sdk_server(module: str = "mcp_web_server") -> AsyncGenerator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"tests.support.{module}"),
        cwd=_REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"
    finally:
        process.kill()
        await process.wait()


async def test_a_server_made_with_the_sdk_is_called_with_progress(tmp_path: Path) -> None:
    steps: list[str] = []
    async with _sdk_server() as url, pool_of(tmp_path, McpServer(name="web", url=url)) as pool:
        connection = await (await pool.find("web")).connected()
        assert [tool.name for tool in connection.tools.tools] == ["web__add", "web__slow"]
        cancel = CancelSignal()
        added = await connection.call("add", {"a": 1, "b": 2}, 10, cancel, lambda done, total, text: None)
        assert added["structuredContent"] == {"result": 3}
        await connection.call("slow", {}, 10, cancel, lambda done, total, text: steps.append(text))
    assert steps == ["step 1", "step 2", "step 3"]


async def test_a_person_signs_in_at_a_server_made_with_the_sdk(tmp_path: Path) -> None:
    async with _sdk_server("mcp_login_server") as url, pool_of(tmp_path, McpServer(name="web", url=url)) as pool:
        server = await pool.find("web")
        with pytest.raises(McpError, match="errand mcp login web"):
            await server.connected()
        status, page = await visit(await pool.begin_login(server))
        assert status == 200, page
        await until(lambda: server.state == "ready")
        for number in range(10):
            connection = await server.connected()
            answer = await connection.call(
                "echo", {"text": str(number)}, 10, CancelSignal(), lambda done, total, text: None
            )
            assert answer["structuredContent"] == {"result": str(number)}
        assert await pool.logins.forget(server.spec)


@pytest.mark.parametrize(("status", "state"), [(401, "needs_login"), (500, "failed"), (302, "failed")])
async def test_a_server_that_refuses_is_not_followed_and_says_why(tmp_path: Path, status: int, state: str) -> None:
    seen: list[str] = []

    async def refuse(request: web.Request) -> web.Response:
        seen.append(request.headers.get("X-Mine", ""))
        return web.Response(status=status, headers={"Location": "http://127.0.0.1:1/"}, text="no")

    app = web.Application()
    app.router.add_post("/mcp", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        address = runner.addresses[0]
        server = McpServer(name="web", url=f"http://127.0.0.1:{address[1]}/mcp", headers={"X-Mine": "yes"})
        async with pool_of(tmp_path, server) as pool:
            connection = await pool.find("web")
            with pytest.raises(McpError, match=str(status)):
                await connection.connected()
            assert connection.state == state and seen == ["yes"]
    finally:
        await runner.cleanup()
