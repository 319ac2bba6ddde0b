"""llama.cpp's server with one model, for the time of an evaluation."""

import asyncio
import os
import signal
import socket
from asyncio.subprocess import DEVNULL, STDOUT
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

# The context window: the requests of the longest tasks fit.
_CONTEXT_TOKENS = 16_384
_START_LIMIT_S = 300.0
_LOOK_EVERY_S = 0.2
_CRASHES = (-signal.SIGSEGV, -signal.SIGILL)


class ServerStartError(Exception):
    """A server that ended before it was ready, or is not ready in time."""


class _ServerCrash(ServerStartError):
    """A server that its own instructions ended."""


@asynccontextmanager
async def llama_server(program: Path, weights: Path, log: Path) -> AsyncGenerator[str]:
    """Start the server with one slot and all processors; gives its base URL when the model is loaded.

    `program` is an absolute path. The model has the name of its file, without the end.
    """
    port = _free_port()
    arguments = ("-m", weights, "--host", "127.0.0.1", "--port", port, "--jinja", "-np", 1, "-c", _CONTEXT_TOKENS)
    more = ("-t", os.cpu_count() or 2, "--alias", weights.stem)
    log.parent.mkdir(parents=True, exist_ok=True)
    process = await _start([str(part) for part in (program, *arguments, *more)], port, log)
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        await process.wait()


async def _start(command: list[str], port: int, log: Path) -> asyncio.subprocess.Process:
    """Start the server; once more without the processor's matrix instructions if it crashes on them."""
    try:
        return await _start_once(command, port, log)
    except _ServerCrash:
        return await _start_once([*command, "--no-repack"], port, log)


async def _start_once(command: list[str], port: int, log: Path) -> asyncio.subprocess.Process:
    libraries = os.environ | {"LD_LIBRARY_PATH": str(Path(command[0]).parent)}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=output, stderr=STDOUT, env=libraries
        )
    try:
        await _until_loaded(process, port, log)
    except BaseException:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        raise
    return process


async def _until_loaded(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    try:
        async with asyncio.timeout(_START_LIMIT_S), aiohttp.ClientSession() as session:
            while not await _is_loaded(session, port):
                if process.returncode is not None:
                    failure = _ServerCrash if process.returncode in _CRASHES else ServerStartError
                    raise failure(f"llama-server ended with {process.returncode}: see {log}")
                await asyncio.sleep(_LOOK_EVERY_S)  # another process: it can only be asked
    except TimeoutError as error:
        raise ServerStartError(f"llama-server is not ready after {_START_LIMIT_S:.0f} s: see {log}") from error


async def _is_loaded(session: aiohttp.ClientSession, port: int) -> bool:
    """Ask for the health of the server, which is 503 while it loads its model."""
    try:
        async with session.get(f"http://127.0.0.1:{port}/health") as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
