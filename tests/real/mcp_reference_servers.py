"""Runs the four reference servers of the Model Context Protocol: `python -m tests.real.mcp_reference_servers FOLDER`.

FOLDER is a temporary folder into which npm and pip install them. Needs node, npm, git and the network.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.setting_values import McpServer
from errand.engine.tools.mcp.pool import McpPool
from errand.protocol.base import JsonObject
from tests.support.mcp_servers import pool_of

_NPM = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
_PYPI = ("mcp-server-time", "mcp-server-git")


def _install(folder: Path) -> None:
    if not (folder / "node_modules").exists():
        subprocess.run(("npm", "install", "--silent", "--prefix", str(folder), *_NPM), check=True)
    if not (folder / "python").exists():
        subprocess.run((sys.executable, "-m", "venv", str(folder / "python")), check=True)
        subprocess.run((str(folder / "python" / "bin" / "pip"), "install", "-q", *_PYPI), check=True)


def _repository(folder: Path) -> Path:
    repository = folder / "repository"
    repository.mkdir(exist_ok=True)
    (repository / "a.txt").write_text("hello\n")
    as_anyone = ("git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run((*as_anyone, "init", "-q"), check=True)
    subprocess.run((*as_anyone, "add", "-A"), check=True)
    subprocess.run((*as_anyone, "commit", "-q", "--allow-empty", "-m", "the first commit"), check=True)
    return repository


def _servers(folder: Path, repository: Path) -> tuple[McpServer, ...]:
    scripts, programs = folder / "node_modules" / "@modelcontextprotocol", folder / "python" / "bin"
    everything = str(scripts / "server-everything" / "dist" / "index.js")
    files = str(scripts / "server-filesystem" / "dist" / "index.js")
    return (
        McpServer(name="everything", command=("node", everything)),
        McpServer(name="files", command=("node", files, str(repository))),
        McpServer(name="time", command=(str(programs / "mcp-server-time"),)),
        McpServer(name="git", command=(str(programs / "mcp-server-git"), "--repository", str(repository))),
    )


async def _call(pool: McpPool, server: str, tool: str, arguments: JsonObject, expected: str) -> None:
    connection = await (await pool.find(server)).connected()
    steps: list[str] = []
    answer = await connection.call(
        tool, arguments, 60, CancelSignal(), lambda done, total, text: steps.append(f"{done:g}")
    )
    is_right = expected in str(answer)
    progress = f", progress {', '.join(steps)}" if steps else ""
    sys.stdout.write(f"{'ok  ' if is_right else 'FAIL'} {server}/{tool}{progress}\n")
    assert is_right, answer


async def main(folder: Path) -> None:
    _install(folder)
    repository = _repository(folder)
    with tempfile.TemporaryDirectory() as home:
        async with pool_of(Path(home), *_servers(folder, repository)) as pool:
            for server in await pool.servers():
                connection = await server.connected()
                count = len(connection.tools.tools)
                sys.stdout.write(f"     {server.spec.name}: {connection.facts.title}, {count} tools\n")
            await _call(pool, "everything", "echo", {"message": "hello"}, "hello")
            await _call(pool, "everything", "get-tiny-image", {}, "image/png")
            long: JsonObject = {"duration": 1, "steps": 3}
            await _call(pool, "everything", "trigger-long-running-operation", long, "completed")
            await _call(pool, "files", "read_text_file", {"path": str(repository / "a.txt")}, "hello")
            await _call(pool, "time", "get_current_time", {"timezone": "Europe/Berlin"}, "Europe/Berlin")
            await _call(pool, "git", "git_log", {"repo_path": str(repository)}, "the first commit")
            resources = await (await (await pool.find("everything")).connected()).resources()
            sys.stdout.write(f"ok   everything: {len(resources)} resources\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).absolute()))
