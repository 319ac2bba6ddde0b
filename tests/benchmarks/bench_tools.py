"""The overhead of tools: a call of a running MCP server, and the memory of idle servers."""

import json
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import psutil

from errand.engine.core.cancel import CancelSignal
from errand.engine.sandbox.launch import CommandSandbox
from errand.engine.sandbox.profile import SandboxProfile
from errand.engine.tools.context import ToolContext
from errand.engine.tools.shell.background import BackgroundCommands
from tests.benchmarks.row import Row
from tests.support.loop_parts import make_tool_context, run, tool_of
from tests.support.mcp_servers import command, pool_of, stored

_CALLS = 200
_SERVERS = 4
_STARTS = 30


async def mcp_calls() -> list[Row]:
    """A call through the pool, over the time that the same server takes for a bare line; and the pool's memory."""
    own = _own_time()
    before = _memory()
    with tempfile.TemporaryDirectory() as folder:
        servers = [stored(f"server{number}") for number in range(_SERVERS)]
        async with pool_of(Path(folder), *servers) as pool:
            for server in await pool.servers():
                await server.connected()
            connection = await (await pool.find("server0")).connected()
            taken: list[float] = []
            for _ in range(_CALLS):
                started = time.perf_counter()
                await connection.call("echo", {"text": "x"}, 10, CancelSignal(), _no_progress)
                taken.append(1000 * (time.perf_counter() - started))
            grown = _memory() - before
    return [
        Row("call of a warm MCP server, over its own time", max(0.0, median(taken) - own), "ms", 3),
        Row(f"memory of {_SERVERS} idle MCP servers in the engine", grown, "MB", 15),
    ]


async def shell_starts() -> list[Row]:
    """Measure what the sandbox adds to a plain command, also with a shared localhost, and a background start."""
    with tempfile.TemporaryDirectory() as folder:
        bare = make_tool_context(Path(folder))
        profile = SandboxProfile(bare.workspace, (), Path(folder, "data"), bare.output_dir, Path(folder, "cache"))
        context = replace(bare, sandbox=CommandSandbox(profile))
        assert context.sandbox is not None
        plain, sandboxed = await _command_time(bare), await _command_time(context)
        await context.sandbox.loopback.use(context)
        shared = await _command_time(context)
        background = BackgroundCommands("bench")
        taken: list[float] = []
        for _ in range(_STARTS):
            started = time.perf_counter()
            started_command = await background.start(
                context, "sleep 60", bare.workspace, CancelSignal(), pty=False, network=False
            )
            taken.append(1000 * (time.perf_counter() - started))
            await background.stop(started_command, "the bench")
        await background.close()
        await context.sandbox.loopback.close()
        await bare.processes.end()
    alone = _bubblewrap_time()
    return [
        Row("a plain command in the sandbox, over a bare one", sandboxed - plain, "ms", 6, alone),
        Row("the same with a shared localhost", shared - plain, "ms", 6, alone),
        Row("start of a background command", median(taken), "ms", 30),
    ]


def _bubblewrap_time() -> float | None:
    """Return what bubblewrap adds to `true` by itself, with namespaces and a root of three mounts."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        return None
    boxed = [bubblewrap, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
    return _shortest_run(boxed) - _shortest_run(["true"])


def _shortest_run(command: list[str]) -> float:
    taken: list[float] = []
    for _ in range(_STARTS):
        started = time.perf_counter()
        subprocess.run(command, check=False)
        taken.append(1000 * (time.perf_counter() - started))
    return min(taken)


async def _command_time(context: ToolContext) -> float:
    """The shortest time of a few, since the machine may be busy."""
    taken: list[float] = []
    for _ in range(_STARTS):
        started = time.perf_counter()
        await run(tool_of(context, "shell"), {"command": "true"})
        taken.append(1000 * (time.perf_counter() - started))
    return min(taken)


def _no_progress(done: float, total: float | None, text: str) -> None:
    pass


def _own_time() -> float:
    """The median time in milliseconds of a call by a client that does nothing else."""
    process = subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None and process.stdout is not None
    taken: list[float] = []
    for number in range(_CALLS):
        params = {"name": "echo", "arguments": {"text": "x"}}
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\n"
        started = time.perf_counter()
        process.stdin.write(line.encode())
        process.stdin.flush()
        process.stdout.readline()
        taken.append(1000 * (time.perf_counter() - started))
    process.stdin.close()
    process.wait()
    process.stdout.close()
    return median(taken)


def _memory() -> float:
    return psutil.Process().memory_info().rss / 1_048_576
