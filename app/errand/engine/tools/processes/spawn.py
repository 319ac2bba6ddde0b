"""Starts a child process in a new session, with its output through non-blocking pipes."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from errand.engine.core import resources
from errand.engine.sandbox.launch import InsideLaunch, Launch
from errand.engine.sandbox.loopback import in_own_thread
from errand.engine.sandbox.standing import PATIENCE_S, InnerCommand, StandingSandbox
from errand.engine.tools.processes import watchdog
from errand.engine.tools.processes.marks import (
    ProcessMark,
    drop_process,
    engine_variables,
    note_process,
    note_session,
    release,
    stamped,
)
from errand.engine.tools.processes.process_table import OOM_SCORE, adopted_children, entry_of, has_proc

CHUNK = 256 * 1024
# Output of background processes after the end of their command is discarded at this interval.
_DISCARD_PAUSE_S = 0.05
_DISCARD_CHUNKS = 16

_watched: set[int] = set()
_OOM_SCORE_FILE = "/proc/self/oom_score_adj"


class Pipe:
    """Calls `on_data` until the last writer closes; then `ended` is done."""

    def __init__(self, descriptor: int, on_data: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._on_data = on_data
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._is_paused = False
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._on_readable)

    def pause(self) -> None:
        """Read no more until `resume`, so that the writer waits."""
        if not self._is_paused and not self.ended.done():
            self._is_paused = True
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        if self._is_paused and not self.ended.done():
            self._is_paused = False
            self._loop.add_reader(self._descriptor, self._on_readable)

    def read_available(self, chunks: int = 256) -> None:
        """Deliver the current content of the pipe without waiting for more."""
        for _ in range(chunks):
            if self.ended.done() or not self._read():
                return

    @property
    def descriptor(self) -> int | None:
        """The descriptor to write to, if it is a terminal; None once it has ended."""
        return None if self.ended.done() else self._descriptor

    def discard(self) -> None:
        """Discard further output, so that a background process neither blocks nor dies of it."""
        if self.ended.done():
            return
        self._on_data = _ignore
        self._loop.remove_reader(self._descriptor)
        self._loop.add_reader(self._descriptor, self._on_discardable)

    def _on_readable(self) -> None:
        self._read()

    def _on_discardable(self) -> None:
        self.read_available(_DISCARD_CHUNKS)
        if not self.ended.done():
            self._loop.remove_reader(self._descriptor)
            self._loop.call_later(_DISCARD_PAUSE_S, self._loop.add_reader, self._descriptor, self._on_discardable)

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # a terminal that nobody holds any more
            data = b""
        if data:
            self._on_data(data)
            return True
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.ended.set_result(None)
        return False


def _ignore(data: bytes) -> None:
    pass


def is_watched(pid: int) -> bool:
    """Return True for a child started here that has not been reaped."""
    return pid in _watched


def may_have_leftovers(child: "Child") -> bool:
    """Return False if an ended command certainly left nothing behind: a cheap check before the full scan.

    A standing sandbox knows. Otherwise remaining processes are in its process group or were adopted by the engine;
    always True without /proc.
    """
    if child.sandbox is not None:
        return not child.sandbox.is_empty
    try:
        os.killpg(child.pid, 0)
    except ProcessLookupError:
        return not has_proc() or any(map(_is_leftover, adopted_children()))
    except PermissionError:
        pass
    return True


def _is_leftover(child: int) -> bool:
    return child not in _watched and not watchdog.is_watchdog(child)


@dataclass(frozen=True, slots=True)
class Child:
    """A started command; `exit` resolves to its exit code, negative for a signal.

    In a standing `sandbox` the `pid` is that of the process which holds it.
    """

    pid: int
    stdout: Pipe
    stderr: Pipe
    exit: asyncio.Future[int]
    sandbox: StandingSandbox | None = None


class CannotRunInside(Exception):
    """The command does not fit into the standing sandbox, or that has just ended. Start it in one of its own."""


def start(
    launch: Launch,
    mark: ProcessMark,
    on_stdout: Callable[[bytes], None],
    on_stderr: Callable[[bytes], None],
    stdin: int = subprocess.DEVNULL,
) -> Child:
    """Start a command that reads from the descriptor `stdin`. Raises OSError or ValueError if the system refuses.

    Blocks until the program is loaded, about 0.5 ms: `Popen` uses vfork only if nothing must run between fork and
    exec, so the engine itself carries the marks for that moment.
    """
    out_read, out_write = os.pipe()
    try:
        err_read, err_write = os.pipe()
    except OSError:  # out of descriptors: close the first pipe too
        os.close(out_read)
        os.close(out_write)
        raise
    inside = launch.inside
    try:
        if inside is not None and inside.sandbox is not None:
            sandbox, pid = inside.sandbox, inside.sandbox.pid
            exit_code = _run_inside(sandbox, inside.command, launch.descriptors, mark, stdin, out_write, err_write)
        else:
            process = _started(launch, mark, stdin, out_write, err_write)
            sandbox, pid, exit_code = None, process.pid, _watch(process)
    except BaseException:
        os.close(out_read)
        os.close(err_read)
        raise
    finally:
        os.close(out_write)
        os.close(err_write)
    return Child(pid, Pipe(out_read, on_stdout), Pipe(err_read, on_stderr), exit_code, sandbox)


def _run_inside(
    sandbox: StandingSandbox,
    command: InnerCommand,
    descriptors: Sequence[int],
    mark: ProcessMark,
    stdin: int,
    stdout: int,
    stderr: int,
) -> asyncio.Future[int]:
    """Start a command in a standing sandbox, all of whose processes belong to the call until it is empty again."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if stdin == subprocess.DEVNULL else None
    try:
        numbers = {
            0: stdin if nothing is None else nothing,
            1: stdout,
            2: stderr,
            **{number: number for number in descriptors},
        }
        marked = replace(command, environment={**command.environment, **mark.variables})
        exit_code = sandbox.run(marked, mark.stamp, numbers)
    finally:
        if nothing is not None:
            os.close(nothing)
    if exit_code is None:
        raise CannotRunInside
    watchdog.watch_mark(mark)
    note_process(mark, sandbox.pid, sandbox.started)
    sandbox.on_empty = partial(release, mark, sandbox.pid, sandbox.started)
    return exit_code


async def open_standing(launch: Launch, inside: InsideLaunch, connection: socket.socket) -> StandingSandbox | None:
    """Start a standing sandbox, and wait until it takes commands; None if it cannot start. Closes the launch."""
    sandbox = inside.sandboxes.add(inside.bounds, connection)
    try:
        process = _holder(launch, connection)
        _watch(process).add_done_callback(sandbox.holder_exited)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.shield(sandbox.ready)
        entry = entry_of(process.pid) if sandbox.is_ready else None
    except BaseException:
        sandbox.close()
        raise
    if entry is None:
        sandbox.close()
        process.kill()
        return None
    sandbox.pid, sandbox.started = entry.pid, entry.started
    sandbox.ended.add_done_callback(lambda _: drop_process(entry.pid, entry.started))
    return sandbox


def _holder(launch: Launch, connection: socket.socket) -> "subprocess.Popen[bytes]":
    """Start the process that holds a standing sandbox. It belongs to no call, and has no mark."""
    with closing(launch), resources.lowered(connection.fileno()), _offered_to_the_oom_killer():
        process = subprocess.Popen(
            launch.arguments,
            cwd=Path("/"),
            env={**launch.environment, **engine_variables()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=launch.descriptors,
        )
    _watched.add(process.pid)
    return process


def start_merged(
    launch: Launch, mark: ProcessMark, on_output: Callable[[bytes], None], terminal: tuple[int, int] | None = None
) -> Child:
    """Start a command with both outputs in one pipe, in the order of writing. Raises as `start` does.

    `terminal` has the two ends of a pseudo terminal, which is input and output then; they belong to the child.
    """
    ours, theirs = terminal or os.pipe()
    try:
        process = _started(launch, mark, theirs if terminal else subprocess.DEVNULL, theirs, theirs)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    output = Pipe(ours, on_output)
    return Child(process.pid, output, output, _watch(process))


def _started(launch: Launch, mark: ProcessMark, stdin: int, stdout: int, stderr: int) -> "subprocess.Popen[bytes]":
    watchdog.watch_mark(mark)
    with stamped(mark), resources.lowered(stderr), _offered_to_the_oom_killer():
        process = _opened(launch, mark, stdin, stdout, stderr)
    _watched.add(process.pid)
    watchdog.watch_session(note_session(mark, process.pid, mark.began))
    return process


def _opened(launch: Launch, mark: ProcessMark, stdin: int, stdout: int, stderr: int) -> "subprocess.Popen[bytes]":
    def started() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            launch.arguments,
            cwd=launch.folder,
            env={**launch.environment, **mark.variables},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            pass_fds=launch.descriptors,
        )

    return started() if launch.enter is None else in_own_thread(launch.enter, started)


@contextmanager
def _offered_to_the_oom_killer() -> Generator[None]:
    """Raise the OOM score of children started inside above the engine and the person's other programs.

    Children inherit it, so it must be set before they start. Do not await inside, since it also applies to the
    engine.
    """
    try:
        file = os.open(_OOM_SCORE_FILE, os.O_RDWR | os.O_CLOEXEC) if sys.platform == "linux" else None
    except OSError:
        file = None
    if file is None:
        yield
        return
    try:
        before = os.read(file, 32).strip()
        with suppress(OSError):
            os.write(file, max(before, OOM_SCORE, key=int))
        try:
            yield
        finally:
            with suppress(OSError):
                os.write(file, before)
    finally:
        os.close(file)


def _watch(process: "subprocess.Popen[bytes]") -> asyncio.Future[int]:
    loop = asyncio.get_running_loop()
    exit_code: asyncio.Future[int] = loop.create_future()

    def collect() -> None:
        code = process.wait()
        _watched.discard(process.pid)
        if not exit_code.done():
            exit_code.set_result(code)

    if sys.platform == "linux":
        descriptor = os.pidfd_open(process.pid)

        def on_exit() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            collect()

        loop.add_reader(descriptor, on_exit)
    else:
        # No descriptor signals the end of a child here: a thread waits and passes the result to the loop.
        def wait() -> None:
            process.wait()
            loop.call_soon_threadsafe(collect)

        threading.Thread(target=wait, daemon=True, name=f"wait for {process.pid}").start()
    return exit_code
