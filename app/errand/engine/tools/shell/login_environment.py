"""The variables of the person's login shell, for clients that were started from a desktop.

A desktop starts programs without what start-up files of shells set, such as the PATH of nvm, pyenv or Homebrew. The
shell is asked once for each such client, in the background; its secrets are left out as those of any client.
"""

import asyncio
import logging
import os
import secrets
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TypeAlias

from errand.engine.sandbox.launch import prepare_launch
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.termination import ProcessSweep
from errand.system.environment import for_commands

if sys.platform != "win32":
    import pwd

_log = logging.getLogger(__name__)

_OWNER = "login-shell"
# For the shell as in a terminal, and then without what only terminals read.
_LIMITS_S = (10.0, 5.0)
# How long the first task of a client waits for the shell.
_WAIT_S = 2.0
_MAX_OUTPUT_BYTES = 1_000_000
_NO_SHELLS = frozenset(("nologin", "false", "true", "sync"))
# Start-up files can look for it, to leave out what is slow.
_RESOLVING = "ERRAND_RESOLVING_ENVIRONMENT"

_Start: TypeAlias = "Callable[[Coroutine[None, None, None], str], asyncio.Task[None]]"


class LoginEnvironment:
    """Return what the login shell set when it was last read; nothing while `is_wanted` says no.

    `start` runs a coroutine that ends with the engine.
    """

    def __init__(self, is_wanted: Callable[[], bool], start: _Start, limits_s: tuple[float, float] = _LIMITS_S) -> None:
        self._is_wanted = is_wanted
        self._start = start
        self._limits_s = limits_s
        self._found: dict[str, str] = {}
        self._reading: asyncio.Task[None] | None = None

    def read(self, environment: Mapping[str, str]) -> None:
        """Read it in the background, with the environment of a client; one reading at a time."""
        if self._is_wanted() and (self._reading is None or self._reading.done()):
            self._reading = self._start(self._read(dict(environment)), "environment of the login shell")

    async def added_to(self, environment: Mapping[str, str], *, wait: bool) -> Mapping[str, str]:
        """Return the environment with what the shell sets. `wait`: for the first reading, a moment at most."""
        if not self._is_wanted():
            return environment
        if wait and not self._found and self._reading is not None:
            await asyncio.wait((self._reading,), timeout=_WAIT_S)
        return {**environment, **self._found}

    async def _read(self, environment: dict[str, str]) -> None:
        shell = login_shell(environment)
        if shell is None:
            return
        for arguments, limit_s in zip(_commands(shell), self._limits_s, strict=True):
            printed = await _printed(arguments, environment, limit_s)
            if printed is not None:
                self._found = {
                    name: value
                    for name, value in for_commands(printed).items()
                    if environment.get(name) != value and not name.startswith("ERRAND_")
                }
                _log.info("the login shell %s sets %d variables", shell, len(self._found))
                return
        _log.warning("the login shell %s shows no environment; commands get that of the desktop", shell)


def login_shell(environment: Mapping[str, str]) -> str | None:
    """Return the shell of the person; None if there is none that could run."""
    if sys.platform == "win32":
        return None
    try:
        stored = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        stored = ""
    for shell in (environment.get("SHELL", ""), stored):
        if os.path.isabs(shell) and os.path.basename(shell) not in _NO_SHELLS and os.access(shell, os.X_OK):
            return shell
    return None


def _commands(shell: str) -> tuple[list[str], list[str]]:
    if os.path.basename(shell) in ("csh", "tcsh"):  # -l must be their only option
        return [shell, "-ic"], [shell, "-c"]
    return [shell, "-l", "-i", "-c"], [shell, "-l", "-c"]


async def _printed(arguments: list[str], environment: dict[str, str], limit_s: float) -> dict[str, str] | None:
    """Return the variables that the shell has at its end; None if it ends, hangs or prints without end before.

    What start-up files print is before the first of two marks. Programs that they left, such as an agent with keys, go
    on running if all went well; else everything is ended.
    """
    sign = secrets.token_hex(16).encode()
    line = f"echo {sign.decode()}; /usr/bin/env -0; echo {sign.decode()}"
    output, is_complete = bytearray(), asyncio.Event()

    def take(data: bytes) -> None:
        output.extend(data)
        if _between(output, sign) is not None or len(output) > _MAX_OUTPUT_BYTES:
            is_complete.set()

    mark, sweep = marks.new_mark(_OWNER), ProcessSweep(_OWNER)
    launch = await prepare_launch([*arguments, line], Path("/"), {**environment, _RESOLVING: "1"}, None)
    try:
        child = spawn.start(launch, mark, take, _ignore)
    except (OSError, ValueError) as error:
        marks.forget((mark,))
        _log.warning("the login shell was not started: %s", error)
        return None
    child.exit.add_done_callback(lambda _: asyncio.get_running_loop().call_soon(is_complete.set))
    printed = None
    try:
        async with asyncio.timeout(limit_s):
            await is_complete.wait()
            child.stdout.read_available()
            printed = _between(output, sign)
            if printed is not None:
                await child.exit
    except TimeoutError:
        pass
    finally:
        child.stdout.discard()
        child.stderr.discard()
        if printed is None or not child.exit.done():
            await sweep.end(mark)
        marks.forget((mark,))
    return None if printed is None else _variables(printed)


def _between(output: bytearray, sign: bytes) -> bytes | None:
    _, separator, rest = output.partition(sign + b"\n")
    variables, ended, _ = rest.partition(sign + b"\n")
    return bytes(variables) if separator and ended else None


def _variables(printed: bytes) -> dict[str, str]:
    pairs = (os.fsdecode(entry).partition("=") for entry in printed.split(b"\0"))
    return {name: value for name, equals, value in pairs if name and equals and name != _RESOLVING}


def _ignore(data: bytes) -> None:
    pass
