"""Sandboxes that stay for the next commands of a task: most of what a command in bubblewrap costs is its start.

A standing sandbox runs one command at a time, and the next one only when nothing is left of the one before: no process,
no socket, nothing in its own memory folders (`init_child.py` looks). It is given up as soon as a command would be shown
anything else by a new sandbox: then its `Bounds` differ.
"""

import asyncio
import os
import shutil
import socket
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from weakref import WeakSet

from errand.engine.sandbox import init_child
from errand.engine.sandbox.bubblewrap import View
from errand.engine.sandbox.inside_program import inside_program

# One holds 6 MB. Commands of further tasks start sandboxes of their own.
MAX_STANDING = 8
_IDLE_S = 30.0
# For the start of one, and for its end.
PATIENCE_S = 5.0
# After this many in a row that served fewer commands, these commands leave something behind, or come rarely.
_MAX_WASTED, _PAYS = 3, 2
_MAX_MESSAGE_BYTES = 64
_KILLED: Final = 128 + 9

_standing: "WeakSet[StandingSandbox]" = WeakSet()


def _ignore() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The view that a sandbox gives, and the files and mounts of this machine that it was made of.

    Commands with equal bounds may run in the same one. A file that is put in the place of another has another identity,
    as long as the mount holds the first one; when that ends, the mount does, which the sandbox sees itself.
    """

    options: tuple[str, ...]
    identities: tuple[tuple[int, ...], ...]
    mounts: bytes


@dataclass(frozen=True, slots=True)
class InnerCommand:
    """A command as it is inside: its words, its folder and its variables."""

    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]

    @property
    def program(self) -> str | None:
        """The path of its program, None if there is none."""
        return shutil.which(self.arguments[0], path=self.environment.get("PATH"))


class StandingSandbox:
    """One sandbox. `pid` and `started` are those of the process that holds it, known once it is ready.

    All methods are called in the event loop's thread.
    """

    def __init__(
        self,
        bounds: Bounds,
        connection: socket.socket,
        on_idle: "Callable[[StandingSandbox], None]",
        on_close: "Callable[[StandingSandbox], None]",
    ) -> None:
        self.bounds = bounds
        self.pid, self.started = 0, 0.0
        # True while nothing runs inside, False from the start of a command until its last process has ended.
        self.is_empty = False
        # Commands that it has run.
        self.count = 0
        self._loop = loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.is_ready = False
        self.ended: asyncio.Future[None] = loop.create_future()
        # Called when the last process of a command has ended, before the next one may come.
        self.on_empty: Callable[[], None] = _ignore
        self._on_idle, self._on_close = on_idle, on_close
        self._exit: asyncio.Future[int] | None = None
        self._connection = connection
        self._is_held = True
        self._timer: asyncio.TimerHandle | None = None
        connection.setblocking(False)
        loop.add_reader(connection, self._on_message)
        _standing.add(self)

    @property
    def is_open(self) -> bool:
        return self._connection.fileno() >= 0

    def holder_exited(self, exited: "asyncio.Future[int]") -> None:
        """Note that the process outside has ended; what runs inside may take a moment more to do so."""
        self._is_held = False
        if self._exit is None:
            self.close()
        if not self.ended.done():
            self.ended.set_result(None)

    def rest(self) -> None:
        """Wait for the next command, for some time."""
        self._timer = self._loop.call_later(_IDLE_S, self.close)

    def wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def run(self, command: InnerCommand, stamp: int, descriptors: Mapping[int, int]) -> "asyncio.Future[int] | None":
        """Start a command; its exit code follows. None if it cannot run here, for whatever reason.

        `descriptors` are those that it inherits, by their numbers in the command. `stamp` is its limit of message
        queues. Raises `ValueError` for a NUL in one of its words.
        """
        program = command.program
        if program is None or not self.is_open or max(descriptors) > init_child.MAX_DESCRIPTOR:
            return None
        variables = {**command.environment, "PWD": str(command.folder)}
        data = init_child.encoded(
            os.fsencode(program),
            os.fsencode(command.folder),
            stamp,
            [*descriptors],
            [os.fsencode(word) for word in command.arguments],
            [os.fsencode(f"{name}={value}") for name, value in variables.items()],
        )
        if len(data) > init_child.MAX_REQUEST_BYTES:
            return None
        try:
            socket.send_fds(self._connection, [data], [*descriptors.values()])
        except OSError:  # it has ended, or takes no message of this size
            self.close()
            return None
        self.is_empty = False
        self.count += 1
        self._exit = self._loop.create_future()
        return self._exit

    def close(self) -> None:
        """End it with all that runs inside."""
        self.wake()
        if not self.is_open:
            return
        self._loop.remove_reader(self._connection)
        self._connection.close()
        _standing.discard(self)
        if not self.ready.done():
            self.ready.set_result(None)
        self._on_close(self)
        self._settle(_KILLED)

    def _on_message(self) -> None:
        try:
            message = self._connection.recv(_MAX_MESSAGE_BYTES).decode("ascii", "replace")
        except BlockingIOError:
            return
        except OSError:
            message = ""
        match message.split():
            case ["ready"]:
                self.is_empty = self.is_ready = True
                self.ready.set_result(None)
            case ["exit", code, state] if code.isdecimal():
                self._settle(int(code))  # before it ends, if the command has left something
                self._note(state)
            case [init_child.EMPTY]:
                self._note(init_child.EMPTY)
            case _:
                self.close()

    def _note(self, state: str) -> None:
        """Note what a command has left. Without the process outside a stop is under way."""
        self.is_empty = state != init_child.OCCUPIED
        if state == init_child.USED or (self.is_empty and not self._is_held):
            self.close()
        elif self.is_empty:
            self.on_empty()
            self._on_idle(self)

    def _settle(self, code: int) -> None:
        running, self._exit = self._exit, None
        if running is not None and not running.done():
            running.set_result(code)


class StandingSandboxes:
    """The standing sandboxes of one task. Call its methods in the event loop's thread."""

    def __init__(self) -> None:
        self._idle: list[StandingSandbox] = []
        self._open: set[StandingSandbox] = set()
        self._wasted = 0

    def may_open(self, replacing: StandingSandbox | None) -> bool:
        """Return True if another one pays, and there is room for it."""
        has_room = replacing is not None or len(_standing) < MAX_STANDING
        return has_room and self._wasted < _MAX_WASTED

    def hold(self) -> StandingSandbox | None:
        """Take one that waits for a command: run one, give it back, or close it."""
        while self._idle:
            sandbox = self._idle.pop()
            sandbox.wake()
            if sandbox.is_open:
                return sandbox
        return None

    def add(self, bounds: Bounds, connection: socket.socket) -> StandingSandbox:
        """Return a new one, whose process is about to start."""
        sandbox = StandingSandbox(bounds, connection, self.give_back, self._on_close)
        self._open.add(sandbox)
        sandbox.ended.add_done_callback(lambda _: self._open.discard(sandbox))
        return sandbox

    def give_back(self, sandbox: StandingSandbox) -> None:
        """Keep it for the next command."""
        if sandbox.is_open and sandbox not in self._idle:
            self._idle.append(sandbox)
            sandbox.rest()

    async def close(self) -> None:
        """End them all, and wait until they are gone."""
        ending = [sandbox.ended for sandbox in self._open]
        for sandbox in tuple(self._open):
            sandbox.close()
        if ending:
            await asyncio.wait(ending, timeout=PATIENCE_S)

    def _on_close(self, sandbox: StandingSandbox) -> None:
        if not sandbox.is_ready:  # else its process may take a moment to end
            self._open.discard(sandbox)
        if sandbox in self._idle:
            self._idle.remove(sandbox)
        self._wasted = self._wasted + 1 if sandbox.count < _PAYS else 0


def init_program() -> tuple[str, ...]:
    """Return the command that stands in a sandbox, without its descriptor; see init_child.py."""
    return inside_program("sandbox-init", init_child.__file__)


def bounds_of(view: View, form: Sequence[str]) -> Bounds:
    """Return the bounds of a sandbox with this view, made by the program and with the options of `form`."""
    paths = dict.fromkeys(
        mount.source if mount.source is not None and mount.source.startswith("/") else str(mount.path)
        for mount in view.mounts
    )
    fixed = {str(mount.path) for mount in view.mounts if mount.pinned is not None and not mount.pinned.is_writable}
    options = (word for mount in view.mounts for word in mount.words)
    identities = tuple(_identity(path, is_fixed=path in fixed) for path in paths)
    return Bounds((*form, *options, *map(str, view.sealed)), identities, Path("/proc/self/mountinfo").read_bytes())


def _identity(path: str, *, is_fixed: bool) -> tuple[int, ...]:
    """Identify a file, also one that no command can change by the time of its last change."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    changed_at = (status.st_ctime_ns,) if is_fixed and not stat.S_ISDIR(status.st_mode) else ()
    return (status.st_dev, status.st_ino, *changed_at)
