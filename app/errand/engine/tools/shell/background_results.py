"""What the model gets about background commands, and the effects of typing into them."""

import asyncio
import time
from dataclasses import replace

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import NotFound
from errand.engine.core.messages import Text
from errand.engine.tools.base import Access, ToolError, ToolResult, text_result
from errand.engine.tools.output_capture import LIMIT
from errand.engine.tools.shell.background import Background, BackgroundCommands, ended_line
from errand.engine.tools.shell.terminal import HARMLESS
from errand.protocol.asks import TYPED
from errand.protocol.background import BackgroundCommand
from errand.protocol.base import JsonObject

# For the first output of a new command, and for the echo of what was typed.
_FIRST_S, TYPED_S = 0.3, 0.5
# Between looks whether a command in a terminal waits for input.
_LOOK_S = 0.1
_WAITED = "; it waited for input: start it with background to type"
_NO_TIMEOUT = "Read what is new with action output, end it with action stop."


def input_access(number: str, text: str, keys: tuple[str, ...], *, has_sandbox: bool) -> Access:
    """What is typed may be a command for a shell: it is judged as code. Keys that only interrupt are free."""
    shown = f"background command {number}"
    if not text and all(key.lower() in HARMLESS for key in keys):
        return Access("free", f"Interrupt {shown}")
    code = text + "".join(f"<{key}>" for key in keys)
    operation = "code" if has_sandbox else ""
    return Access("run", f"Type into {shown}", code=code, language=TYPED, operation=operation)


def found(background: BackgroundCommands, number: str) -> Background:
    try:
        return background.get(number)
    except NotFound as error:
        raise ToolError(str(error)) from error


async def started(background: BackgroundCommands, one: Background, cancel: CancelSignal) -> ToolResult:
    output = await background.new_output(one, _FIRST_S, cancel)
    shown = one.shown
    if not one.is_running:
        background.take_ended()
        return _result(background, one, output, ended_line(shown))
    head = f"[background {shown.id} runs in {shown.working_dir}. {_NO_TIMEOUT}]"
    return replace(_result(background, one, output, head), summary=f"background {shown.id}")


async def finished(
    background: BackgroundCommands, one: Background, timeout_s: float, cancel: CancelSignal
) -> ToolResult:
    """Wait for a command in a terminal that is not in the background."""
    assert one.watched is not None
    until = time.monotonic() + timeout_s
    why = ""
    unsubscribe = cancel.subscribe(one.output.grew.set)
    try:
        while one.is_running and not why:
            await asyncio.wait([one.watched], timeout=_LOOK_S)
            if cancel.is_set:
                why = "Operation aborted"
            elif time.monotonic() > until:
                waits = (
                    "; it waited for input: start it with background to type" if background.waits_for_input(one) else ""
                )
                why = f"Timed out after {timeout_s:g} s{waits}"
        if why:
            await background.stop(one, "the timeout")
        output = await background.new_output(one, 0, cancel)
    except asyncio.CancelledError:
        await background.stop(one, "the task")
        raise
    finally:
        unsubscribe()
        if not one.is_running:
            await background.forget(one)
    if why:
        raise ToolError(f"{why}.\nOutput so far:\n{output.strip()}", why.partition(" after")[0])
    code = one.shown.exit_code
    text = "\n".join(part for part in (output.strip() or "(no output)", f"[exit code {code}]" if code else "") if part)
    seconds = (one.shown.ended_at - one.shown.started_at).total_seconds() if one.shown.ended_at else 0.0
    details: JsonObject = {"stdout": output, "exit_code": code, "duration_ms": round(seconds * 1000)}
    return ToolResult((Text(text),), details, f"exit {code}", is_error=code != 0)


async def read(background: BackgroundCommands, one: Background, wait_s: float, cancel: CancelSignal) -> ToolResult:
    output = await background.new_output(one, wait_s, cancel)
    if cancel.is_set:
        raise ToolError("Operation aborted")
    if one.is_running:
        waits = ", and waits for input" if background.waits_for_input(one) else ""
        return _result(background, one, output, f"[background {one.shown.id} is running{waits}]")
    background.take_ended()
    return _result(background, one, output, ended_line(one.shown))


async def stopped(background: BackgroundCommands, one: Background, cancel: CancelSignal) -> ToolResult:
    was_running = one.is_running
    await background.stop(one, "the agent")
    background.take_ended()
    output = await background.new_output(one, 0, cancel)
    line = ended_line(one.shown)
    return _result(background, one, output, line if was_running else f"{line} before")


def listed(background: BackgroundCommands) -> ToolResult:
    commands = background.commands()
    background.take_ended()
    lines = [_line(one) for one in commands]
    running = sum(one.ended_at is None for one in commands)
    return text_result("\n".join(lines) or "No background commands.", f"{running} running")


def _line(one: BackgroundCommand) -> str:
    if one.ended_at is not None:
        return ended_line(one)
    waits = ", waits for input" if one.waits_for_input else ""
    last = f": {one.last_lines.splitlines()[-1]}" if one.last_lines else ""
    return f"[background {one.id} `{' '.join(one.command.split())}` is running in {one.working_dir}{waits}]{last}"


def _result(background: BackgroundCommands, one: Background, output: str, head: str) -> ToolResult:
    ended = [line for line in background.take_ended() if line != head]
    shown = output.strip("\n")[: LIMIT * 2]
    text = "\n".join(part for part in (shown or "(no new output)", head, *ended) if part)
    state = "running" if one.is_running else f"exit {one.shown.exit_code}" if not one.shown.stopped_by else "stopped"
    return text_result(text, state, {"stdout": output, "background_file": str(one.output.path)})
