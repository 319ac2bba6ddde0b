"""What the model gets about background commands, and the effects of typing into them."""

import asyncio
import time
from dataclasses import replace

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import NotFound
from errand.engine.core.messages import Text
from errand.engine.tools.base import Access
from errand.engine.tools.output_capture import LIMIT
from errand.engine.tools.results import ToolError, ToolResult, text_result
from errand.engine.tools.shell.background import Background, BackgroundCommands, ended_line
from errand.engine.tools.shell.remarks import exit_remark
from errand.engine.tools.shell.terminal import HARMLESS
from errand.protocol.asks import TYPED
from errand.protocol.background import BackgroundCommand
from errand.protocol.base import JsonObject

# For the first output of a new command, and for the echo of what was typed.
_FIRST_S, TYPED_S = 0.3, 0.5
# Between looks whether a command in a terminal waits for input.
_LOOK_S = 0.1
# How often to look whether a command waits for input, and how long a call waits for a person who types.
_INPUT_LOOK_S, _PATIENCE_S = 0.5, 10.0
_TYPE_OR_STOP = "type with action input, or stop it"
_WAITED = "; it waited for input: start it with background to type"
_NO_TIMEOUT = "Read what is new with action output, end it with action stop."


def input_access(number: str, text: str, keys: tuple[str, ...], *, has_sandbox: bool) -> Access:
    """Return the effects of typing: a command for a shell may be typed, so it is judged as code. Keys that only
    interrupt are free."""
    name = f"background command {number}"
    if not text and all(key.lower() in HARMLESS for key in keys):
        return Access("free", f"Interrupt {name}", changes=True)
    code = text + "".join(f"<{key}>" for key in keys)
    operation = "code" if has_sandbox else ""
    return Access("run", f"Type into {name}", code=code, language=TYPED, operation=operation)


def found(background: BackgroundCommands, number: str) -> Background:
    try:
        return background.get(number)
    except NotFound as error:
        raise ToolError(str(error)) from error


async def started(background: BackgroundCommands, command: Background, cancel: CancelSignal) -> ToolResult:
    output = await background.new_output(command, _FIRST_S, cancel)
    record = command.record
    if not command.is_running:
        background.take_ended()
        return _result(background, command, output, ended_line(record))
    head = f"[background {record.id} runs in {record.working_dir}. {_NO_TIMEOUT}]"
    return replace(_result(background, command, output, head), summary=f"background {record.id}")


async def finished(
    background: BackgroundCommands, command: Background, timeout_s: float, cancel: CancelSignal
) -> ToolResult:
    """Wait for a command in a terminal that is not in the background.

    While it waits for input, people can type into it. If nobody does, it goes on in the background, where the agent
    can type too.
    """
    assert command.watched is not None
    until = time.monotonic() + timeout_s
    why = ""
    input_wait = _InputWait(background, command)
    unsubscribe = cancel.subscribe(command.output.grew.set)
    try:
        while command.is_running and not why:
            await asyncio.wait([command.watched], timeout=_LOOK_S)
            if cancel.is_set:
                why = "Operation aborted"
            elif time.monotonic() > until:
                why = f"Timed out after {timeout_s:g} s{_WAITED if background.waits_for_input(command) else ''}"
            elif input_wait.is_over():
                background.hand_over(command)
                output = await background.new_output(command, 0, cancel)
                head = f"[it waits for input, and goes on as background {command.record.id}: {_TYPE_OR_STOP}]"
                return replace(_result(background, command, output, head), summary="waits for input")
        if why:
            await background.stop(command, "the timeout")
        output = await background.new_output(command, 0, cancel)
    except asyncio.CancelledError:
        await background.stop(command, "the task")
        raise
    finally:
        unsubscribe()
        if not command.is_running:
            background.forget(command)
    if why:
        raise ToolError(f"{why}.\nOutput so far:\n{output.strip()}", why.partition(" after")[0])
    code = command.record.exit_code
    text = "\n".join(part for part in (output.strip() or "(no output)", exit_remark(code or 0)) if part)
    seconds = (command.record.ended_at - command.record.started_at).total_seconds() if command.record.ended_at else 0.0
    details: JsonObject = {"stdout": output, "exit_code": code, "duration_ms": round(seconds * 1000)}
    return ToolResult((Text(text),), details, f"exit {code}", is_error=code != 0)


class _InputWait:
    """Return how long a command has waited for input without printing anything; people see it from the beginning."""

    def __init__(self, background: BackgroundCommands, command: Background) -> None:
        self._background = background
        self._one = command
        self._size = -1
        self._since = self._next_look = time.monotonic()

    def is_over(self) -> bool:
        """True when nobody has typed for a while."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + _INPUT_LOOK_S
        size = self._one.output.size
        if size != self._size or not self._background.waits_for_input(self._one):
            self._size, self._since = size, now
            return False
        self._background.show(self._one)
        return now - self._since >= _PATIENCE_S


async def read(background: BackgroundCommands, command: Background, wait_s: float, cancel: CancelSignal) -> ToolResult:
    output = await background.new_output(command, wait_s, cancel)
    if cancel.is_set:
        raise ToolError("Operation aborted")
    if command.is_running:
        waits = ", and waits for input" if background.waits_for_input(command) else ""
        return _result(background, command, output, f"[background {command.record.id} is running{waits}]")
    background.take_ended()
    return _result(background, command, output, ended_line(command.record))


async def stopped(background: BackgroundCommands, command: Background, cancel: CancelSignal) -> ToolResult:
    was_running = command.is_running
    await background.stop(command, "the agent")
    background.take_ended()
    output = await background.new_output(command, 0, cancel)
    line = ended_line(command.record)
    return _result(background, command, output, line if was_running else f"{line} before")


def listed(background: BackgroundCommands) -> ToolResult:
    commands = background.commands()
    background.take_ended()
    lines = [_line(command) for command in commands]
    running = sum(command.ended_at is None for command in commands)
    return text_result("\n".join(lines) or "No background commands.", f"{running} running")


def _line(command: BackgroundCommand) -> str:
    if command.ended_at is not None:
        return ended_line(command)
    waits = ", waits for input" if command.waits_for_input else ""
    last = f": {command.last_lines.splitlines()[-1]}" if command.last_lines else ""
    line = " ".join(command.command.split())
    return f"[background {command.id} `{line}` is running in {command.working_dir}{waits}]{last}"


def _result(background: BackgroundCommands, command: Background, output: str, head: str) -> ToolResult:
    ended = [*(line for line in background.take_ended() if line != head), background.take_limit_remark()]
    excerpt = output.strip("\n")[: LIMIT * 2]
    text = "\n".join(part for part in (excerpt or "(no new output)", head, *ended) if part)
    state = (
        "running"
        if command.is_running
        else f"exit {command.record.exit_code}"
        if not command.record.stopped_by
        else "stopped"
    )
    return text_result(text, state, {"stdout": output, "background_file": str(command.output.path)})
