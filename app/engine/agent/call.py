"""One tool call: look up, validate, ask the hooks, execute. Whatever goes wrong becomes an error result."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

from app.engine.agent.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from app.engine.agent.hooks import FinishedCall, PendingCall
from app.engine.agent.run import Run
from app.engine.messages import AssistantMessage, Text, ToolCall
from app.engine.tools.base import ToolError, ToolResult
from app.engine.tools.schema import check_arguments

ABORTED = "Operation aborted"
BLOCKED = "Tool execution was blocked"

T = TypeVar("T")

_MOST_UPDATES = 1000


def error_result(text: str) -> ToolResult:
    return ToolResult((Text(text),), summary=text.partition("\n")[0][:120], is_error=True)


async def start(run: Run, call: ToolCall) -> None:
    await run.emit(ToolExecutionStart(call.id, call.name, call.arguments))


async def end(run: Run, call: ToolCall, result: ToolResult) -> None:
    await run.emit(ToolExecutionEnd(call.id, call.name, result))


async def prepare(run: Run, message: AssistantMessage, call: ToolCall) -> PendingCall | ToolResult:
    """All that comes before execution; a result means that the call must not run."""
    return await _settle(_prepare(run, message, call))


async def execute(run: Run, pending: PendingCall) -> ToolResult:
    """Run a prepared call to its end, delivering its updates, and let the after-hook change the result."""
    if run.cancel.is_set:
        return error_result(ABORTED)
    updates = _Updates(run, pending.call)
    try:
        result = await _settle(pending.tool.execute(pending.call.id, pending.arguments, run.cancel, updates.put))
        await updates.finish()
    finally:
        await updates.drop()
    if run.config.hooks.after_tool_call is None:
        return result
    return await _settle(_change(run, FinishedCall(pending, result)))


async def _prepare(run: Run, message: AssistantMessage, call: ToolCall) -> PendingCall | ToolResult:
    tool = run.tools.get(call.name)
    if tool is None:
        return error_result(f"Tool {call.name} not found")
    if call.invalid is not None:
        raise ToolError(_not_json(call.name, call.invalid))
    arguments = check_arguments(call.name, tool.parameters, tool.prepare_arguments(call.arguments))
    pending = PendingCall(message, call, tool, arguments)
    before = run.config.hooks.before_tool_call
    block = await before(pending, run.cancel) if before is not None and not run.cancel.is_set else None
    if run.cancel.is_set:
        return error_result(ABORTED)
    if block is not None:
        return replace(error_result(block.reason or BLOCKED), terminate=block.terminate)
    return pending


async def _change(run: Run, finished: FinishedCall) -> ToolResult:
    after = run.config.hooks.after_tool_call
    change = await after(finished, run.cancel) if after is not None else None
    result = finished.result
    if change is None:
        return result
    return ToolResult(
        result.content if change.content is None else change.content,
        result.details if change.details is None else change.details,
        result.summary if change.summary is None else change.summary,
        result.is_error if change.is_error is None else change.is_error,
        result.terminate if change.terminate is None else change.terminate,
    )


async def _settle(step: Awaitable[T]) -> T | ToolResult:
    """The one place where whatever a tool or a hook around it raises becomes a result that the model can read."""
    try:
        return await step
    except ToolError as error:
        return replace(error_result(str(error)), summary=error.summary, details=error.details)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return error_result(ABORTED)  # something inside the tool was cancelled, not the run
    except Exception as error:  # noqa: BLE001 - tools are anyone's code
        return error_result(str(error) or type(error).__name__)


class _Updates:
    """Partial results of one call on their way to the listeners. A task delivers them, and only while there are any.

    A tool that is faster than the listeners loses its oldest updates: they are for showing only.
    """

    def __init__(self, run: Run, call: ToolCall) -> None:
        self._run = run
        self._call = call
        self._waiting: deque[ToolResult] = deque(maxlen=_MOST_UPDATES)
        self._open = True
        self._delivery: asyncio.Task[None] | None = None

    def put(self, result: ToolResult) -> None:
        if not self._open:
            return
        self._waiting.append(result)
        if self._delivery is None or (self._delivery.done() and self._delivery.exception() is None):
            self._delivery = asyncio.create_task(self._deliver())

    async def finish(self) -> None:
        """Take no more and wait until all are delivered; raises what a listener raised."""
        self._open = False
        if self._delivery is not None:
            await self._delivery

    async def drop(self) -> None:
        """End the delivery task, whatever happened; after `finish` there is nothing left to do."""
        self._open = False
        if self._delivery is not None and not self._delivery.done():
            self._delivery.cancel()
            await asyncio.wait([self._delivery])

    async def _deliver(self) -> None:
        call = self._call
        while self._waiting:
            update = self._waiting.popleft()
            await self._run.emit(ToolExecutionUpdate(call.id, call.name, call.arguments, update))


def _not_json(name: str, raw: str) -> str:
    return (
        f'Validation failed for tool "{name}":\n  - arguments: not a valid JSON object\n\n'
        f"Received arguments:\n{raw[:2000]}\n\nSend the call again with valid JSON."
    )
