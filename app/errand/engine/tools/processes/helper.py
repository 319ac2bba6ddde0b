"""Starts a helper: a process of our own code beside the engine, which uses a library that the engine never imports.

Its standard input is a socket with messages both ways. It has no sandbox, since it runs our code and the library alone;
it ends with that socket, by its marks, and by the watchdog.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from errand.engine.core.ids import new_id
from errand.engine.sandbox.launch import prepare_launch
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.termination import ProcessSweep, adopt_orphans
from errand.system.environment import without_secrets

_EXIT_S = 1.0
_NO_VARIABLES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class HelperProcess:
    """`connection` is our end of its socket; whoever uses it closes it."""

    connection: socket.socket
    child: spawn.Child
    owner: str

    @property
    def pid(self) -> int:
        return self.child.pid

    async def end(self) -> None:
        """Kill it with all that it has started, and wait until they are gone."""
        await ProcessSweep(self.owner).end()
        for pipe in (self.child.stdout, self.child.stderr):
            pipe.discard()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.child.exit), _EXIT_S)


def _ignore(data: bytes) -> None:
    pass


async def start_helper(
    kind: str,
    program: str,
    arguments: Sequence[str],
    *,
    subcommand: str = "",
    variables: Mapping[str, str] = _NO_VARIABLES,
    on_stderr: Callable[[bytes], None] = _ignore,
) -> HelperProcess:
    """Run the file `program` with this Python; an installed bundle runs itself with the `subcommand`, if there is one.

    Its environment is the engine's without secrets, with `variables`. Its standard output is discarded. Raises OSError
    or ValueError if the system refuses.
    """
    adopt_orphans()
    is_bundle = bool(subcommand) and getattr(sys, "frozen", False)
    command = [sys.executable, *([subcommand] if is_bundle else ["-I", program]), *arguments]
    launch = await prepare_launch(command, Path("/"), {**without_secrets(os.environ), **variables}, None)
    owner = new_id(kind)
    mark = marks.new_mark(owner)
    ours, theirs = socket.socketpair()
    try:
        child = spawn.start(launch, mark, _ignore, on_stderr, theirs.fileno())
    except (OSError, ValueError):
        ours.close()
        marks.forget((mark,))
        raise
    finally:
        theirs.close()
        launch.close()
    return HelperProcess(ours, child, owner)
