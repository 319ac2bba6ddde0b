"""The Python session of one conversation: its process, and one piece of code at a time in it."""

import asyncio
import logging
import os
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError, FolderNotAnswering
from errand.engine.core.ids import new_id
from errand.engine.sandbox.launch import CommandSandbox, prepare_launch
from errand.engine.sandbox.profile import DeniedFolders, SandboxProfile
from errand.engine.tools.cancellation import until_cancelled
from errand.engine.tools.context import ToolContext
from errand.engine.tools.output_capture import OutputCapture
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.marks import ProcessMark
from errand.engine.tools.processes.termination import (
    ProcessSweep,
    adopt_orphans,
    identities,
    running,
    without_sandbox,
)
from errand.engine.tools.python import session_child
from errand.engine.tools.results import ToolError
from errand.protocol.notices import EndedProcess

_logger = logging.getLogger(__name__)

_START_S = 20.0
# After an interruption: code that handles it may take a moment, a stop may not.
_TIMEOUT_GRACE_S = 2.0
_CANCEL_GRACE_S = 0.15
_EXIT_S = 1.0
IDLE_S = 30 * 60.0
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
# A module of the workspace may have the name of one that the session needs.
_BOOT = """import sys
sys.path[:] = [folder for folder in sys.path if folder]
exec(compile({text!r}, "<session>", "exec"))
"""
# A TimeoutError is an OSError.
_NO_ANSWER = (asyncio.IncompleteReadError, msgspec.DecodeError, OSError, ToolError)
_VENVS = (".venv", "venv")

End = Literal["done", "timeout", "cancelled", "died"]
_CLOSED = "The conversation was archived or deleted meanwhile, so Python was not started."
GONE = "the variables of before are gone"


class Picture(msgspec.Struct, frozen=True):
    name: str
    data: str


class Answer(msgspec.Struct, frozen=True):
    """A message of the process, of code that may have written anything there."""

    done: int = 0
    ready: str = ""
    value: str | None = None
    error: str = ""
    trace: str = ""
    pictures: tuple[Picture, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeOutcome:
    """The end of a piece of code. `answer` is None if it could not be interrupted, or the process died.

    `survived`: the session goes on with its variables.

    `news` says that the session is new, and why; `exit_code` is that of a process that died. `not_kept` are protected
    files of the workspace that it made, and that were moved away. `limit_remark` says which processes were too many.
    """

    end: End
    seconds: float
    answer: Answer | None = None
    news: str = ""
    exit_code: int | None = None
    not_kept: tuple[str, ...] = ()
    survived: bool = True
    limit_remark: str = ""


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """The surroundings of a session; a task with others gets a new session."""

    workspace: Path
    profile: SandboxProfile | None
    denied: DeniedFolders | None


@dataclass(slots=True)
class _Process:
    child: spawn.Child
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    mark: ProcessMark
    sandbox: CommandSandbox | None
    surroundings: _Surroundings
    version: str
    sweep: ProcessSweep

    def has_started_others(self) -> bool:
        """Return True if a process runs that its code started."""
        return len(without_sandbox(running((self.mark,)))) > 1


@dataclass(slots=True)
class CodeOutput:
    """The captured output of one piece of code; `on_output` is called when it grows."""

    stdout: OutputCapture
    stderr: OutputCapture
    on_output: Callable[[], None]

    def close(self) -> None:
        self.stdout.close()
        self.stderr.close()


@dataclass(slots=True)
class PythonSession:
    """A `ToolSession`: the process starts with the first code, and ends after `idle_s` without use."""

    idle_s: float = IDLE_S
    _process: _Process | None = None
    _output: CodeOutput | None = None
    _number: int = 0
    _lost: str = ""
    _is_busy: bool = False
    _is_closed: bool = False
    _ended: Mapping[tuple[int, float], EndedProcess] = field(default_factory=dict[tuple[int, float], EndedProcess])
    _idle: asyncio.Task[None] | None = field(default=None)
    # Those that used it and go on: what its code started ends with the last of them.
    _tasks: set[str] = field(default_factory=set[str])

    @property
    def is_empty(self) -> bool:
        return self._number == 0

    @property
    def pid(self) -> int | None:
        return self._process.child.pid if self._process is not None else None

    async def run(
        self, context: ToolContext, code: str, output: CodeOutput, timeout_s: float, cancel: CancelSignal
    ) -> CodeOutcome:
        """Run code until it ends, the time is over or it is cancelled. Raises ToolError if it cannot start."""
        self._check_idle()
        self._is_busy, self._ended = True, {}
        self._stop_idle()
        try:
            news = await self._ready(context, cancel)
            assert self._process is not None
            self._output = output
            limit = self._process.sweep.limit
            self._tasks.add(context.task_id)
            context.processes.at_end("python", partial(self._end_left, context.task_id))
            limit.max_processes = context.processes.limit.max_processes
            limit.start()
            outcome = await self._run(self._process, code, timeout_s, cancel)
            return replace(outcome, news=news, limit_remark=limit.take_remark())
        except BaseException:
            await self._end("it was interrupted")
            raise
        finally:
            self._output = None
            self._is_busy = False
            if cancel.is_set:
                context.processes.ended |= self._ended  # a stop says what it ended
            if self._process is not None:
                self._idle = asyncio.get_running_loop().create_task(self._end_when_idle())

    async def _end_left(self, task_id: str) -> tuple[EndedProcess, ...]:
        """End what code of a task has started, when the task ends; the session stays."""
        self._tasks.discard(task_id)
        if self._process is None or self._is_busy or self._tasks:
            return ()
        return await self._process.sweep.end_all_but(self._process.sweep.limit.spared)

    async def reset(self) -> None:
        """End the process and all that it started; the next code starts a new one. Raises ToolError if code runs."""
        self._check_idle()
        await self._end_now()

    async def close(self) -> None:
        self._is_closed = True
        await self._end_now()

    def _check_idle(self) -> None:
        if self._is_busy:
            raise ToolError("Python is busy with code of another agent of this conversation. Try again later.")

    async def _end_now(self) -> None:
        self._stop_idle()
        await self._end("")

    async def _ready(self, context: ToolContext, cancel: CancelSignal) -> str:
        """Start a process if none is there, or if this task's has to be another; the news about it."""
        surroundings = await asyncio.to_thread(_surroundings_of, context)
        process = self._process
        if process is not None and process.child.exit.done():
            await self._end(_how_it_ended(process.child.exit.result()))
        elif process is not None and process.surroundings != surroundings:
            await self._end("the workspace, the network or the sandbox of the conversation changed")
        if self._process is not None:
            return ""
        started = await until_cancelled(self._started(context, surroundings), cancel)
        if self._is_closed:
            await _end(started)
            raise ToolError(_CLOSED)
        self._process = started
        reason = f"because {self._lost}: {GONE}" if self._lost else "nothing is defined yet"
        self._lost = ""
        return f"a new session of Python {self._process.version} began, {reason}"

    async def _run(self, process: _Process, code: str, timeout_s: float, cancel: CancelSignal) -> CodeOutcome:
        self._number += 1
        number, began = self._number, time.monotonic()
        answer = asyncio.get_running_loop().create_task(_answer_to(process, number))
        try:
            await _send(process, {"run": number, "code": code})
            end = await _first(answer, timeout_s, cancel)
            if end in ("timeout", "cancelled"):
                await _send(process, {"interrupt": number})
                await asyncio.wait([answer], timeout=_TIMEOUT_GRACE_S if end == "timeout" else _CANCEL_GRACE_S)
        finally:
            if not answer.done():
                answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)
        for pipe in (process.child.stdout, process.child.stderr):
            pipe.read_available()
        exit_code: int | None = None
        received = None if answer.cancelled() else answer.result()
        if received is None:
            exit_code = await self._lose(process, end)
            end = "died" if end == "done" else end
        elif end == "cancelled" and await asyncio.to_thread(process.has_started_others):
            await self._end("it was stopped, and its code had left other processes")
        survived = self._process is not None
        if survived:
            await process.sweep.limit.look_now()
        not_kept = await _not_kept(process) if survived else ()
        seconds = time.monotonic() - began
        return CodeOutcome(end, seconds, received, exit_code=exit_code, not_kept=not_kept, survived=survived)

    async def _lose(self, process: _Process, end: End) -> int | None:
        """End a process that does not answer, or has ended; its exit code if it ended by itself."""
        if end == "done":
            await asyncio.wait([process.child.exit], timeout=_EXIT_S)
        code = process.child.exit.result() if process.child.exit.done() else None
        await self._end(_how_it_ended(code) if end == "done" else "it could not be interrupted")
        return code

    async def _started(self, context: ToolContext, surroundings: _Surroundings) -> _Process:
        adopt_orphans()
        interpreter = await asyncio.to_thread(find_interpreter, context.workspace, context.environment.get("PATH", ""))
        sandbox = context.sandbox.another() if context.sandbox is not None else None
        mark = marks.new_mark(new_id("session"))
        try:
            return await self._spawned(context, surroundings, interpreter, sandbox, mark)
        except BaseException as error:
            await ProcessSweep(mark.task_id).end()
            marks.forget((mark,))
            if sandbox is not None:
                with suppress(FolderNotAnswering):
                    await sandbox.after(has_background=False)
            if isinstance(error, ConfigurationError | FolderNotAnswering):
                raise ToolError(f"Python was not started: {error}") from error
            if isinstance(error, (ValueError, *_NO_ANSWER)):
                reason = f": {error}" if isinstance(error, OSError) and error.strerror else ""
                raise ToolError(f"{interpreter} did not start a session{reason}. Check it with the shell.") from error
            raise

    async def _spawned(
        self,
        context: ToolContext,
        surroundings: _Surroundings,
        interpreter: str,
        sandbox: CommandSandbox | None,
        mark: ProcessMark,
    ) -> _Process:
        if sandbox is not None:
            await sandbox.loopback.use(sandbox)
        environment = {**context.environment, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        launch = await prepare_launch(child_command(interpreter), context.workspace, environment, sandbox)
        ours, theirs = socket.socketpair()
        try:
            child = spawn.start(launch, mark, self._on_stdout, self._on_stderr, theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            launch.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            async with asyncio.timeout(_START_S):
                version = (await _read_answer(reader)).ready
        except BaseException:
            writer.close()
            for pipe in (child.stdout, child.stderr):
                pipe.discard()
            raise
        sweep = ProcessSweep(mark.task_id)
        sweep.limit.spared = await asyncio.to_thread(identities, (mark,))
        return _Process(child, reader, writer, mark, sandbox, surroundings, version, sweep)

    async def _end(self, why: str) -> None:
        process, self._process = self._process, None
        self._lost = why if process is not None or not why else self._lost
        if process is not None:
            self._ended = (await _end(process)).ended

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(self.idle_s)
        self._idle = None
        await self._end(f"it was not used for {self.idle_s / 60:.0f} minutes")

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _on_stdout(self, data: bytes) -> None:
        if self._output is not None:  # else it comes from a thread or process that is left
            self._output.stdout.add(data)
            self._output.on_output()

    def _on_stderr(self, data: bytes) -> None:
        if self._output is not None:
            self._output.stderr.add(data)
            self._output.on_output()


def find_interpreter(workspace: Path, path: str) -> str:
    """Return the Python of the workspace's virtual environment, else `python3` of the person, else the engine's own."""
    for name in _VENVS:
        own = workspace / name / "bin" / "python"
        if os.access(own, os.X_OK):
            return str(own)
    return shutil.which("python3", path=path or None) or os.path.realpath(sys.executable)


def child_command(interpreter: str) -> list[str]:
    """Return the command of the child.

    Its text goes along, since its file may be hidden inside; a bundle runs itself.
    """
    text = _child_text()
    if text is None or (getattr(sys, "frozen", False) and interpreter == os.path.realpath(sys.executable)):
        return [sys.executable, "python-session"]
    return [interpreter, "-c", text]


@cache
def _child_text() -> str | None:
    try:
        text = Path(session_child.__file__).read_text(encoding="utf-8")
    except OSError:
        return None
    return _BOOT.format(text=text)


def _surroundings_of(context: ToolContext) -> _Surroundings:
    if context.sandbox is None:
        return _Surroundings(context.workspace, None, None)
    profile = context.sandbox.profile
    fixed = replace(profile, output_dir=Path(), denied=DeniedFolders)  # those of each task
    return _Surroundings(context.workspace, fixed, profile.denied())


async def _first(answer: asyncio.Task[Answer | None], timeout_s: float, cancel: CancelSignal) -> End:
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stop() -> None:
        if not stopped.done():
            stopped.set_result(None)

    unsubscribe = cancel.subscribe(stop)
    try:
        await asyncio.wait([answer, stopped], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        unsubscribe()
    if answer.done():
        return "done"
    return "cancelled" if cancel.is_set else "timeout"


async def _answer_to(process: _Process, number: int) -> Answer | None:
    """Return the answer to this code; None if the process ended, or wrote something else."""
    try:
        while True:
            answer = await _read_answer(process.reader)
            if answer.done == number:
                return answer
    except _NO_ANSWER:
        return None


async def _read_answer(reader: asyncio.StreamReader) -> Answer:
    (size,) = struct.unpack(">I", await reader.readexactly(4))
    if size > _MAX_ANSWER_BYTES:
        raise ToolError("The session answered with too much.")
    return msgspec.json.decode(await reader.readexactly(size), type=Answer)


async def _send(process: _Process, request: dict[str, int | str]) -> None:
    data = msgspec.json.encode(request)
    with suppress(OSError):  # it ended: reading says so
        process.writer.write(struct.pack(">I", len(data)) + data)
        await process.writer.drain()


async def _end(process: _Process) -> ProcessSweep:
    """End the process; what it ended is in the sweep."""
    await process.sweep.end()
    process.writer.close()
    for pipe in (process.child.stdout, process.child.stderr):
        pipe.discard()
    await asyncio.wait([process.child.exit], timeout=_EXIT_S)
    await _not_kept(process, is_over=True)
    return process.sweep


async def _not_kept(process: _Process, *, is_over: bool = False) -> tuple[str, ...]:
    if process.sandbox is None:
        return ()
    try:
        return tuple(await process.sandbox.after(has_background=not is_over, of_latest=True))
    except FolderNotAnswering:
        return ()


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "its process broke off the connection"
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "its process was killed from outside, as the system does when memory runs out"
    if code == -signal.SIGSEGV or code == 128 + signal.SIGSEGV:
        return "its process crashed in native code"
    return f"its process ended with exit code {code}"
