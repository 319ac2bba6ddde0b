"""Runs llama.cpp's server for one model, in a process of its own that ends with the engine."""

import asyncio
import os
import secrets
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from errand.engine.core.ids import new_id
from errand.engine.core.outgoing import UnusableRoute
from errand.engine.models.servers.local_servers import LocalModelFailed
from errand.engine.sandbox.launch import prepare_launch
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.termination import ProcessSweep, adopt_orphans
from errand.system.environment import without_secrets
from errand.text.printable import printable

if TYPE_CHECKING:
    from errand.engine.models.http_pool import HttpPool

_HOST = "127.0.0.1"
_START_LIMIT_S = 900.0
_LOOK_EVERY_S = 0.1
_LOOK_TIMEOUT_S = 5.0
_EXIT_S = 1.0
_MAX_LOG_BYTES = 16_384
_MAX_REASON_LENGTH = 300
_KEY_BYTES = 24
_OPTION_VARIABLES = "LLAMA_ARG_"
_SIGNALLED = 128  # plus the signal: the exit code of a shell whose command was ended
# An instruction of the processor that the virtual machine does not allow: AMX was seen to end with SIGSEGV.
_CRASHES = frozenset(code for number in (signal.SIGSEGV, signal.SIGILL) for code in (-number, _SIGNALLED + number))


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """`memory_limit_bytes` holds for what the process allocates, 0 for none. Of `gpu_layers`, -1 leaves the number to
    llama.cpp. `repacks`: weights are arranged for the processor's matrix instructions.
    """

    name: str
    model: Path
    context_tokens: int
    threads: int
    gpu_layers: int = -1
    memory_limit_bytes: int = 0
    repacks: bool = True


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers. `key` is sent with each request, so that no other user of the machine can ask it."""

    options: ServerOptions
    base_url: str
    key: str
    child: spawn.Child
    owner: str

    @property
    def has_ended(self) -> bool:
        return self.child.exit.done()

    async def end(self) -> None:
        """Kill it with all that it has started, and wait until its memory is free."""
        await _end(self.child, self.owner)


class _Crashed(LocalModelFailed):
    """The program was ended by its own use of the processor or of memory."""


async def start_server(program: Path, options: ServerOptions, pool: "HttpPool") -> RunningServer:
    """Start the server and wait until the model is loaded; cancelling this ends the process.

    A program that crashes is started once more without the processor's matrix instructions. Raises `LocalModelFailed`.
    """
    try:
        return await _start(program, options, pool)
    except _Crashed as crash:
        with suppress(LocalModelFailed):  # an old program does not know the option: the crash says more
            return await _start(program, replace(options, repacks=False), pool)
        raise crash from None


async def _start(program: Path, options: ServerOptions, pool: "HttpPool") -> RunningServer:
    adopt_orphans()
    port, key = _free_port(), secrets.token_urlsafe(_KEY_BYTES)
    environment = {**_environment(), "LLAMA_API_KEY": key}
    launch = await prepare_launch(_command(program, options, port), Path("/"), environment, None)
    owner = new_id("local_model")
    mark = marks.new_mark(owner)
    log = bytearray()

    def keep_end(data: bytes) -> None:
        log.extend(data)
        del log[:-_MAX_LOG_BYTES]

    try:
        child = spawn.start(launch, mark, keep_end, keep_end)
    except (OSError, ValueError) as error:
        marks.forget((mark,))
        raise LocalModelFailed(
            f"{program} cannot be started: {error}.", "Empty the setting llama_server, or name another program."
        ) from error
    finally:
        launch.close()
    try:
        _limit_memory(child.pid, options.memory_limit_bytes)
        base_url = f"http://{_HOST}:{port}"
        await _until_loaded(child, base_url, pool, log, options)
    except BaseException:
        await _end(child, owner)
        raise
    return RunningServer(options, f"{base_url}/v1", key, child, owner)


def _environment() -> dict[str, str]:
    """Return the engine's environment without secrets, and without options for servers that the person starts."""
    variables = without_secrets(os.environ)
    return {name: value for name, value in variables.items() if not name.startswith(_OPTION_VARIABLES)}


def _command(program: Path, options: ServerOptions, port: int) -> list[str]:
    """Return the command. It has one slot: requests wait for each other, and each has the whole context."""
    command = [str(program), "-m", str(options.model), "--alias", options.name, "--host", _HOST, "--port", str(port)]
    command += ["--jinja", "-np", "1", "-c", str(options.context_tokens), "-t", str(options.threads)]
    command += [] if options.repacks else ["--no-repack"]
    return command if options.gpu_layers < 0 else [*command, "-ngl", str(options.gpu_layers)]


async def _until_loaded(
    child: spawn.Child, base_url: str, pool: "HttpPool", log: bytearray, options: ServerOptions
) -> None:
    try:
        async with asyncio.timeout(_START_LIMIT_S):
            while True:
                is_loaded = await _is_loaded(base_url, pool)
                if child.exit.done():  # also if another program has taken its port and answers
                    raise _early_end(child.exit.result(), bytes(log), options)
                if is_loaded:
                    return
                await asyncio.wait((child.exit,), timeout=_LOOK_EVERY_S)
    except UnusableRoute as error:
        raise LocalModelFailed(str(error), "Then try again.") from error
    except TimeoutError as error:
        raise LocalModelFailed(
            f"{options.name} was not loaded within {_START_LIMIT_S / 60:g} minutes.",
            "Close other programs, or choose a smaller model.",
        ) from error


async def _is_loaded(base_url: str, pool: "HttpPool") -> bool:
    """Return True once the server answers; it answers 503 while it loads the model."""
    import aiohttp

    session = pool.session
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with (
            asyncio.timeout(_LOOK_TIMEOUT_S),
            session.get(f"{base_url}/health", allow_redirects=False) as response,
        ):
            return response.status == 200
    return False


def _early_end(code: int, log: bytes, options: ServerOptions) -> LocalModelFailed:
    """Return why the server ended before the model was loaded, in its own last words."""
    lines = [line.strip() for line in log.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "failed" in line.lower()]
    reason = printable((errors or lines or [f"exit code {code}"])[-1])[:_MAX_REASON_LENGTH]
    if code in (-9, 137) or "alloc" in reason.lower():
        return LocalModelFailed(
            f"{options.name} did not fit into memory: {reason}",
            "Close other programs, lower the setting local_model_context, or choose a smaller model.",
        )
    failure = _Crashed if code in _CRASHES else LocalModelFailed
    return failure(
        f"llama.cpp's server could not load {options.name}: {reason}",
        "If the file is damaged, remove the model and download it again; if the program is too old for it, empty the "
        "setting llama_server and install the model again.",
    )


async def _end(child: spawn.Child, owner: str) -> None:
    await ProcessSweep(owner).end()
    for pipe in (child.stdout, child.stderr):
        pipe.discard()
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(child.exit), _EXIT_S)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind((_HOST, 0))
        return int(bound.getsockname()[1])


if sys.platform == "linux":
    import resource

    def _limit_memory(pid: int, limit_bytes: int) -> None:
        """Let the process allocate no more: it fails then, and not the machine. Mapped weights do not count."""
        if limit_bytes:
            with suppress(OSError, ValueError):
                resource.prlimit(pid, resource.RLIMIT_DATA, (limit_bytes, limit_bytes))

else:

    def _limit_memory(pid: int, limit_bytes: int) -> None:
        """Do nothing: the system has no limit for another process."""
