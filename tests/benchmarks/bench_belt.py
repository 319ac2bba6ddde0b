"""The cost of tools while nothing happens: the memory of an engine that has used all of them, and Python sessions."""

import asyncio
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from errand.client.connection import Connection
from errand.protocol.base import EmptyParams, JsonValue
from errand.protocol.engine import ENGINE_STATUS
from tests.benchmarks.bench import engine, home, model, run_tasks, workspace_in
from tests.benchmarks.row import Row
from tests.support.loop_parts import make_tool_context, run, tool_of
from tests.support.mcp_servers import command
from tests.support.web_site import web_site

_IDLE_S = 2.0
_CALLS = 20
_SERVERS = 4


async def belt_memory() -> list[Row]:
    """Measure one engine: after a task of plain commands, then after one that used all tools and left them open."""
    servers = [{"name": f"server{number}", "command": command()} for number in range(_SERVERS)]
    with home() as folder:
        (folder / "settings.json").write_text(json.dumps({"mcp_servers": servers}))
        async with web_site({"/": "<title>Page</title><h1>Hello</h1>"}) as site, engine(folder) as connection:
            before = await _memory_after(connection, folder, [("shell", {"command": "echo step"})])
            after = await _memory_after(connection, folder, _all_tools(site.url()))
    return [Row("engine memory with all tools used and idle, over plain tasks", after - before, "MB", 15)]


async def python_calls() -> list[Row]:
    """A call in a session that runs, and the start of one."""
    with tempfile.TemporaryDirectory() as folder:
        context = make_tool_context(Path(folder))
        tool = tool_of(context, "python")
        taken: list[float] = []
        for _ in range(1 + _CALLS):
            started = time.perf_counter()
            await run(tool, {"code": "1 + 1"})
            taken.append(1000 * (time.perf_counter() - started))
        await context.sessions.all.close()
        await context.processes.end()
    return [
        Row("python: first call, with the start of its session", taken[0], "ms", 500),
        Row("python: a call in a session that runs", median(taken[1:]), "ms", 10),
    ]


def _all_tools(url: str) -> list[tuple[str, Mapping[str, JsonValue]]]:
    return [
        ("code", {"action": "write", "path": "a.txt", "content": "text\n"}),
        ("code", {"action": "search", "path": ".", "pattern": "text"}),
        ("shell", {"command": "sleep 600", "background": True}),
        ("browser", {"action": "navigate", "url": url}),
        ("browser", {"action": "screenshot"}),
        ("web_fetch", {"url": url}),
        ("python", {"code": "1 + 1"}),
        ("python_inference", {"action": "complete", "prompt": "Hello"}),
        ("search_memory", {"query": "text"}),
        ("propose_memory", {"text": "Use tabs.", "scope": "always"}),
        ("todo", {"items": [{"text": "One", "status": "done"}]}),
        *((f"server{number}__echo", {"text": "x"}) for number in range(_SERVERS)),
    ]


async def _memory_after(
    connection: Connection, folder: Path, calls: Sequence[tuple[str, Mapping[str, JsonValue]]]
) -> float:
    with model(1, calls=calls) as server:
        await run_tasks(connection, server.url, 1, workspace_in(folder))
    await asyncio.sleep(_IDLE_S)
    return (await connection.call(ENGINE_STATUS, EmptyParams())).memory_bytes / 1e6
