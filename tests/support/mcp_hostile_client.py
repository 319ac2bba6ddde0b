"""Calls a hostile MCP server in a process of its own, whose memory is limited, and prints what became of it as JSON.

Arguments: a folder, the transport (stdio, json, sse), the kind of the server.
"""

import asyncio
import json
import resource
import subprocess
import sys
from pathlib import Path

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import EngineError
from errand.engine.core.setting_values import McpServer
from errand.engine.tools.mcp.pool import McpPool
from errand.engine.tools.mcp.results import ContentReader, result_of
from tests.support.loop_parts import text_of
from tests.support.mcp_servers import pool_of
from tests.support.processes import PYTHON

SERVER = Path(__file__).with_name("mcp_hostile_server.py")
_ADDRESS_SPACE = 2 * 1024 * 1024 * 1024


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def called(pool: McpPool, folder: Path, name: str) -> str:
    """Return the text of a call, or of its error."""
    try:
        connection = await (await pool.find("s")).connected()
        answer = await connection.call(name, {}, 60, CancelSignal(), lambda done, total, text: None)
        return text_of(await asyncio.to_thread(result_of, answer, ContentReader(folder, "call_1")))[:200]
    except EngineError as error:
        return f"error: {error}"[:300]


async def outcome(folder: Path, server: McpServer) -> dict[str, object]:
    async with pool_of(folder, server) as pool:
        before = peak_mb()
        hostile = await called(pool, folder, "hostile")
        after = await called(pool, folder, "echo")
        return {"hostile": hostile, "after": after, "growth_mb": peak_mb() - before}


def main() -> None:
    folder, transport, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    command = (PYTHON, "-I", "-S", str(SERVER), transport, kind)
    if transport == "stdio":
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
        sys.stdout.write(json.dumps(asyncio.run(outcome(folder, McpServer(name="s", command=command)))))
        return
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
            resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
            sys.stdout.write(json.dumps(asyncio.run(outcome(folder, McpServer(name="s", url=url)))))
        finally:
            process.kill()


if __name__ == "__main__":
    main()
