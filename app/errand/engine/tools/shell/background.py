"""Commands that run in the background of a conversation, with their output."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import ConfigurationError, FolderNotAnswering, NotFound
from errand.engine.sandbox.launch import CommandSandbox, Launch, prepare_launch
from errand.engine.tools.context import ToolContext
from errand.engine.tools.drawn_output import drawn
from errand.engine.tools.output_capture import FILE_LIMIT, LIMIT
from errand.engine.tools.plain_text import clean_output
from errand.engine.tools.processes import marks, spawn, termination
from errand.engine.tools.processes.termination import ProcessSweep, adopt_orphans
from errand.engine.tools.results import ToolError
from errand.engine.tools.shell import terminal
from errand.engine.tools.shell.command import shell
from errand.protocol.background import BackgroundCommand
from errand.protocol.notices import EndedProcess
from errand.text.notice_text import exit_text
from errand.text.redaction import RedactedBytes, Redactor, redact, short_line

MAX_RUNNING_COMMANDS = 16
# In the line that says how a command ended.
_MAX_COMMAND_LENGTH = 80
# Of one answer, to see what a terminal would show of it.
_MAX_DRAWN_BYTES = 4 * 1024 * 1024
_PIECE = 256 * 1024
_LAST_BYTES, _LAST_LINES = 2_000, 3
_DRAIN_S, _SETTLE_S = 0.2, 0.1
# While output comes, clients learn of it at most this often.
_CHANGED_S = 1.0


class _Output:
    """Writes what a command prints to a file, without the app's own keys; memory holds nothing of it."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, self.path = 1, path
        while True:
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                break
            except FileExistsError:
                number += 1
                self.path = path.with_stem(f"{path.stem}-{number}")
        self._redactor = redactor
        self._stream = RedactedBytes(redactor)
        self.size = 0
        self.grew = asyncio.Event()

    def add(self, data: bytes) -> None:
        self._write(self._stream.feed(data))

    def finish(self) -> None:
        self._write(self._stream.finish())
        self.grew.set()

    def close(self) -> None:
        os.close(self._file)

    def read(self, offset: int, most: int) -> bytes:
        return os.pread(self._file, most, offset)

    def text(self, data: bytes, *, has_more: bool) -> str:
        return self._redactor.hide(clean_output(data, has_more=has_more))

    def _write(self, data: bytes) -> None:
        data = data[: FILE_LIMIT - self.size]
        try:
            self.size += os.write(self._file, data) if data else 0
        except OSError:
            return  # the disk is full: the command goes on, its output is lost
        self.grew.set()


@dataclass(slots=True, eq=False)
class Background:
    """One command. `of_task` ends the task that started it; `read_to` is how far the agent has read its output.

    A call waits for one with `is_awaited`. People see it as soon as it waits for input, and can type into it.
    """

    record: BackgroundCommand
    mark: marks.ProcessMark
    child: spawn.Child
    output: _Output
    sandbox: CommandSandbox | None
    of_task: ProcessSweep
    read_to: int = 0
    is_awaited: bool = False
    is_listed: bool = True
    on_end: Callable[[], Awaitable[None]] | None = None
    unsubscribe: Callable[[], None] = field(default=lambda: None)
    watched: "asyncio.Task[None] | None" = None

    @property
    def is_running(self) -> bool:
        return self.record.ended_at is None


def _ignore(commands: tuple[BackgroundCommand, ...]) -> None:
    pass


class BackgroundCommands:
    """The background commands of one conversation: a session, which ends them all when it is closed.

    `on_change` gets all commands when one starts or ends, and from time to time while one prints.
    """

    def __init__(
        self, conversation_id: str, on_change: Callable[[tuple[BackgroundCommand, ...]], None] = _ignore
    ) -> None:
        self._conversation_id = conversation_id
        self._on_change = on_change
        self._sweep = ProcessSweep(f"shell-{conversation_id}")
        self._all: dict[str, Background] = {}
        self._count = 0
        self._ended: list[str] = []
        self._stops: set[asyncio.Task[tuple[EndedProcess, ...]]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def is_empty(self) -> bool:
        """True before the first command. Later ones are numbered on, and stay listed when they have ended."""
        return self._count == 0

    def get(self, number: str) -> Background:
        """Raises `NotFound`."""
        command = self._all.get(number)
        if command is None:
            numbers = ", ".join(self._all) or "none"
            raise NotFound(
                f"There is no background command {number[:40]!r} in this conversation; there are: {numbers}."
            )
        return command

    def commands(self) -> tuple[BackgroundCommand, ...]:
        return tuple(self.describe(command) for command in self._all.values() if command.is_listed)

    def describe(self, command: Background) -> BackgroundCommand:
        """Return the command as it is now."""
        size = command.output.size
        data = command.output.read(max(0, size - _LAST_BYTES), _LAST_BYTES)
        lines = [line for line in command.output.text(data, has_more=command.is_running).split("\n") if line.strip()]
        last = "\n".join(line[-500:] for line in lines[-_LAST_LINES:])
        return msgspec.structs.replace(
            command.record, size=size, last_lines=last, waits_for_input=self.waits_for_input(command)
        )

    def waits_for_input(self, command: Background) -> bool:
        descriptor = command.child.stdout.descriptor
        if not command.record.terminal or not command.is_running or descriptor is None:
            return False
        return terminal.is_read(descriptor, tuple(process.pid for process in termination.running((command.mark,))))

    def take_ended(self) -> list[str]:
        """Return what ended since the last call by itself, or by a person, one line each."""
        ended, self._ended = self._ended, []
        return ended

    def take_limit_remark(self) -> str:
        """Tell which of their processes were too many since the last call; empty if none were."""
        remark = self._sweep.limit.take_remark()
        return f"{remark[:-1]}. They were of background commands]" if remark else ""

    async def start(
        self,
        context: ToolContext,
        line: str,
        folder: Path,
        cancel: CancelSignal,
        *,
        pty: bool,
        network: bool,
        is_awaited: bool = False,
        on_end: Callable[[], Awaitable[None]] | None = None,
    ) -> Background:
        """Start it; a person who stops the task that started it stops it too, and waits for it. Raises `ToolError`.

        `on_end` is called when its processes have ended.
        """
        if sum(command.is_running for command in self._all.values()) >= MAX_RUNNING_COMMANDS:
            raise ToolError(f"{MAX_RUNNING_COMMANDS} background commands run in this conversation. Stop one first.")
        adopt_orphans()
        sandbox = await self._sandbox(context)
        self._count += 1
        number = str(self._count)
        environment = {**context.environment, **terminal.ENVIRONMENT} if pty else context.environment
        arguments = [*shell(), line]
        mark = marks.new_mark(f"shell-{self._conversation_id}")
        try:
            output = _Output(context.output_dir / f"background-{number}.txt", context.redactor)
            try:
                launch = await prepare_launch(
                    terminal.in_terminal(arguments) if pty else arguments, folder, environment, sandbox, network=network
                )
                if self._is_closed:
                    launch.abandon()
                    raise ToolError("The conversation was archived or deleted meanwhile.")
                child = self._spawned(launch, mark, output, pty=pty)
            except BaseException:
                output.close()
                raise
        except BaseException as error:
            marks.forget((mark,))
            if sandbox is not None:
                await sandbox.after(has_background=False)
            if isinstance(error, ConfigurationError | FolderNotAnswering | OSError | ValueError):
                raise ToolError(f"The command could not be started: {error}") from error
            raise
        record = BackgroundCommand(
            id=number,
            conversation_id=self._conversation_id,
            task_id=context.task_id,
            command=line,
            working_dir=str(folder),
            started_at=datetime.now(UTC),
            terminal=pty,
        )
        background = self._all[number] = Background(
            record,
            mark,
            child,
            output,
            sandbox,
            context.processes,
            is_awaited=is_awaited,
            is_listed=not is_awaited,
            on_end=on_end,
        )
        self._sweep.limit.max_processes = context.processes.limit.max_processes
        self._sweep.limit.start()
        background.watched = asyncio.create_task(self._watch(background), name=f"background command {number}")
        background.unsubscribe = cancel.subscribe(partial(self._on_cancel, background, cancel))
        self._changed()
        return background

    async def stop(self, command: Background, by: str) -> BackgroundCommand:
        """End it and all its processes, and wait for that."""
        await self._end(command, by)
        return self.describe(command)

    def type(self, command: Background, data: bytes) -> None:
        """Raises `ToolError`, also if it has no terminal or does not read."""
        descriptor = command.child.stdout.descriptor
        if not command.record.terminal:
            raise ToolError(f"Background command {command.record.id} has no terminal: start it with pty.")
        if not command.is_running or descriptor is None:
            raise ToolError(f"Background command {command.record.id} has ended.")
        try:
            written = os.write(descriptor, data)
        except OSError as error:
            raise ToolError(f"Background command {command.record.id} does not read its input.") from error
        if written < len(data):
            raise ToolError(f"Only {written:,} of {len(data):,} bytes were typed: the command does not read them.")

    async def new_output(self, command: Background, wait_s: float, cancel: CancelSignal) -> str:
        """Return what it printed since the last call, waiting for it, or for its end, for at most `wait_s` seconds."""
        if wait_s > 0 and command.is_running and command.watched is not None:
            if command.output.size == command.read_to:
                command.output.grew.clear()
                await _first(command.output.grew, wait_s, cancel)
            await asyncio.wait([command.watched], timeout=min(wait_s, _SETTLE_S))  # most write more than once
        start, end = command.read_to, command.output.size
        command.read_to = end
        # The limit is one of what a terminal would show, not of what was drawn over.
        size, read = end - start, command.output.read
        if size <= _MAX_DRAWN_BYTES:
            text = drawn(read(start, size))
            if len(text) <= LIMIT:
                return command.output.text(text, has_more=command.is_running)
            head, tail, size = text, text, len(text)
        else:
            half = _MAX_DRAWN_BYTES // 2
            head, tail = drawn(read(start, half)), drawn(read(end - half, half))
        head, tail = head[: LIMIT // 3], tail[-2 * LIMIT // 3 :]
        left_out = size - len(head) - len(tail)
        remark = f"[{left_out:,} bytes left out; the full output is in {command.output.path}]"
        return "\n".join(
            (command.output.text(head, has_more=True), remark, command.output.text(tail, has_more=command.is_running))
        )

    def piece(self, command: Background, offset: int) -> tuple[str, int, int]:
        """Return the text from a byte on, the size so far, and where to continue."""
        size = command.output.size
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        data = command.output.read(start, _PIECE)
        return command.output.text(data, has_more=command.is_running), size, start + len(data)

    def show(self, command: Background) -> None:
        """Let people see one for which a call waits."""
        if not command.is_listed:
            command.is_listed = True
            self._changed()

    def hand_over(self, command: Background) -> None:
        """No call waits for it any more: it goes on in the background."""
        command.is_awaited = False
        self.show(command)

    def forget(self, command: Background) -> None:
        """Drop one that has ended."""
        if self._all.pop(command.record.id, None) is not None:
            command.output.close()
            if command.is_listed:
                self._changed()

    async def close(self) -> None:
        self._is_closed = True
        for command in self._all.values():
            command.unsubscribe()
            if command.is_running and not command.record.stopped_by:
                command.record = msgspec.structs.replace(command.record, stopped_by="the end of the conversation")
        await self._sweep.end()
        await asyncio.gather(
            *self._stops, *(remaining.watched for remaining in self._all.values() if remaining.watched is not None)
        )
        if self._timer is not None:
            self._timer.cancel()
        for command in self._all.values():
            command.output.close()
        self._all.clear()

    async def _end(self, command: Background, by: str) -> tuple[EndedProcess, ...]:
        if command.is_running and not command.record.stopped_by:
            command.record = msgspec.structs.replace(command.record, stopped_by=by)
        ended = await self._sweep.end(command.mark)
        if command.watched is not None:
            await asyncio.shield(command.watched)
        return ended

    async def _sandbox(self, context: ToolContext) -> CommandSandbox | None:
        """Return a sandbox of its own: it lasts as long as the command, while that of the task ends with the task."""
        of_task = context.sandbox
        if of_task is None:
            return None
        sandbox = CommandSandbox(of_task.profile, of_task.proxy.judge, of_task.loopback)
        await sandbox.loopback.use(sandbox)
        return sandbox

    def _spawned(self, launch: Launch, mark: marks.ProcessMark, output: _Output, *, pty: bool) -> spawn.Child:
        def take(data: bytes) -> None:
            output.add(data)
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_CHANGED_S, self._changed)

        try:
            return spawn.start_merged(launch, mark, take, terminal.open_terminal() if pty else None)
        finally:
            launch.close()

    def _on_cancel(self, command: Background, cancel: CancelSignal) -> None:
        cause = cancel.cause
        if cause is not None and cause.kind == "user" and command.is_running:
            stop = asyncio.get_running_loop().create_task(self._end(command, cause.by or "a person"))
            self._stops.add(stop)
            stop.add_done_callback(self._stops.discard)
            command.of_task.join(stop)

    async def _watch(self, command: Background) -> None:
        code = await command.child.exit
        command.child.stdout.read_available()
        if not command.child.stdout.ended.done():
            await asyncio.wait([command.child.stdout.ended], timeout=_DRAIN_S)
        await self._sweep.end(command.mark)
        command.child.stdout.read_available()
        command.child.stdout.discard()
        marks.forget((command.mark,))
        if command.sandbox is not None:
            await command.sandbox.after(has_background=False)
        if command.on_end is not None:
            await command.on_end()
        exit_code = None if command.record.stopped_by else code
        command.record = msgspec.structs.replace(command.record, ended_at=datetime.now(UTC), exit_code=exit_code)
        command.output.finish()
        command.unsubscribe()
        if not command.is_awaited:
            self._ended.append(ended_line(command.record))
        self._drop_old()
        self._changed()

    def _drop_old(self) -> None:
        ended = [command for command in self._all.values() if not command.is_running and not command.is_awaited]
        for old in ended[:-MAX_RUNNING_COMMANDS]:
            del self._all[old.record.id]
            old.output.close()

    def _changed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._on_change(self.commands())


def ended_line(shown: BackgroundCommand) -> str:
    """Return for the model which one ended, and how."""
    code = shown.exit_code
    ended = f"was {exit_text(code)}" if code is not None and code < 0 else f"ended with exit code {code}"
    how = f"was stopped by {shown.stopped_by}" if shown.stopped_by else ended
    return f"[background {shown.id} `{short_line(shown.command, _MAX_COMMAND_LENGTH, redact)}` {how}]"


async def _first(grew: asyncio.Event, wait_s: float, cancel: CancelSignal) -> None:
    """Wait for output, the cancel signal, or the time."""
    unsubscribe = cancel.subscribe(grew.set)
    try:
        async with asyncio.timeout(wait_s):
            await grew.wait()
    except TimeoutError:
        pass
    finally:
        unsubscribe()
