"""One tool call: find the tool, validate, call the hooks, execute, and deliver partial results in order."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import TypeVar

from errand.engine.agent.loop.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from errand.engine.agent.loop.hooks import NOT_STARTED, FinishedCall, PendingCall
from errand.engine.agent.loop.run_state import LoopRun
from errand.engine.core.errors import StorageError
from errand.engine.core.messages import UNREADABLE_CALL, AssistantMessage, Text, ToolCall, ToolResultMessage
from errand.engine.tools.argument_check import check_in_time
from errand.engine.tools.results import ToolError, ToolResult, short_text
from errand.protocol.blocks import ResultMark

_MAX_WAITING_UPDATES = 1000
_MAX_NAME_LENGTH = 100

ABORTED = "Operation aborted"
BLOCKED = "Tool execution was blocked"

T = TypeVar("T")


class ToolUpdates:
    """The updates of one batch. Tools add them at any time, without waiting; an asyncio task delivers them.

    Call `flush` before emitting another event of the batch, so that the event does not overtake an update. If tools are
    faster than the listeners, the oldest updates are dropped: they are for display only.
    """

    def __init__(self, run: LoopRun) -> None:
        self._run = run
        self._waiting: deque[ToolExecutionUpdate] = deque(maxlen=_MAX_WAITING_UPDATES)
        self._delivery: asyncio.Task[None] | None = None
        self._delivery_lock = asyncio.Lock()

    def put(self, update: ToolExecutionUpdate) -> None:
        self._waiting.append(update)
        # After a listener has raised, nothing more is delivered: `settle` raises its error.
        if self._delivery is None or (self._delivery.done() and self._delivery.exception() is None):
            self._delivery = asyncio.create_task(self.flush())

    async def flush(self) -> None:
        """Return when all updates added so far have reached the listeners, even if another task delivers them."""
        async with self._delivery_lock:
            while self._waiting:
                await self._run.emit(self._waiting.popleft())

    async def wait_delivered(self) -> None:
        """Wait until all are delivered; re-raises a listener's error."""
        if self._delivery is not None:
            await asyncio.shield(self._delivery)

    async def close(self) -> None:
        """Stop the delivery, also after errors."""
        self._waiting.clear()
        if self._delivery is None:
            return
        self._delivery.cancel()
        await asyncio.gather(self._delivery, return_exceptions=True)  # `settle` has already raised its error


class ToolCallUpdates:
    """The updates of one call; dropped after `close`. `given`: whether there were any."""

    def __init__(self, call: ToolCall, updates: ToolUpdates) -> None:
        self._call = call
        self._updates = updates
        self._open = True
        self.has_updates = False

    def put(self, result: ToolResult) -> None:
        if self._open:
            self.has_updates = True
            self._updates.put(ToolExecutionUpdate(self._call.id, self._call.name, self._call.arguments, result))

    def close(self) -> None:
        self._open = False


class ToolCaller:
    """Runs the calls of one reply step by step; `updates` deliver what the tools report meanwhile."""

    def __init__(self, run: LoopRun, message: AssistantMessage, updates: ToolUpdates) -> None:
        self._run = run
        self._hooks = run.config.hooks
        self._message = message
        self._updates = updates

    async def begin(self, call: ToolCall) -> PendingCall | ToolResult:
        """Everything before execution. Returns a result, with its end event emitted, if the call must not run."""
        await self._start(call)
        # A storage failure is not the call's fault and would hit every further call: the run ends.
        pending = await _as_result(self._prepare(call), StorageError)
        if isinstance(pending, ToolResult):
            pending = self._mark_if_stopped(await self._completed(call, pending))
            await self._end(call, pending)
        return pending

    async def finish(self, pending: PendingCall) -> ToolResult:
        """Execute a call that `begin` returned as pending."""
        result = self._mark_if_stopped(await self._completed(pending.call, await self._execute(pending)))
        await self._end(pending.call, result)
        return result

    async def refuse(self, call: ToolCall, reason: str, summary: str, *marks: ResultMark) -> ToolResult:
        """Emit the events of a call that does not run: `reason` for the model, `summary` for people."""
        await self._start(call)
        result = self._mark_if_stopped(replace(_error(reason), summary=summary, marks=marks))
        await self._end(call, result)
        return result

    async def answer(self, call: ToolCall, result: ToolResult) -> ToolResultMessage:
        """Add the result to the transcript."""
        message = ToolResultMessage(
            call.id, call.name, result.content, result.is_error, result.details, marks=result.marks
        )
        await self._run.publish(message)
        return message

    async def _completed(self, call: ToolCall, result: ToolResult) -> ToolResult:
        complete = self._hooks.complete_result
        return result if complete is None else await _as_result(complete(call, result))

    def _mark_if_stopped(self, result: ToolResult) -> ToolResult:
        """Return the result marked as stopped if the call failed after a stop, whatever its tool says."""
        if not (self._run.cancel.is_set and result.is_error):
            return result
        summary = "stopped" if result.summary == ABORTED else result.summary
        return replace(result, summary=summary, marks=(*result.marks, "stopped"))

    async def _start(self, call: ToolCall) -> None:
        await self._updates.flush()
        await self._run.emit(ToolExecutionStart(call.id, call.name, call.arguments))

    async def _end(self, call: ToolCall, result: ToolResult) -> None:
        await self._updates.flush()
        await self._run.emit(ToolExecutionEnd(call.id, call.name, result))

    async def _prepare(self, call: ToolCall) -> PendingCall | ToolResult:
        tool = self._run.tools.get(call.name)
        if tool is None:
            return _unknown(call, self._run.tools)
        if call.invalid is not None:
            raise ToolError(_not_json(call.name, call.invalid), "its arguments could not be read")
        cancel = self._run.cancel
        arguments = await check_in_time(
            call.name, tool.parameters, tool.prepare_arguments(call.arguments), lambda: cancel.is_set
        )
        return await self._ask(PendingCall(self._message, call, tool, arguments))

    async def _ask(self, pending: PendingCall) -> PendingCall | ToolResult:
        cancel, before = self._run.cancel, self._hooks.before_tool_call
        block = await before(pending, cancel) if before is not None and not cancel.is_set else None
        if isinstance(block, ToolResult):
            return block
        if block is None and cancel.is_set:
            block = NOT_STARTED
        if block is not None:
            error = _error(ABORTED if cancel.is_set else block.reason or BLOCKED)
            return replace(error, terminate=block.terminate, summary=block.summary or error.summary)
        return pending

    async def _execute(self, pending: PendingCall) -> ToolResult:
        await self._updates.flush()
        cancel = self._run.cancel
        if cancel.is_set:
            return _error(ABORTED)
        updates = ToolCallUpdates(pending.call, self._updates)
        try:
            result = await _as_result(pending.tool.execute(pending.call.id, pending.arguments, cancel, updates.put))
        finally:
            updates.close()
        if updates.has_updates:
            await self._updates.wait_delivered()
        return await _as_result(self._change(FinishedCall(pending, result)))

    async def _change(self, finished: FinishedCall) -> ToolResult:
        after = self._hooks.after_tool_call
        change = await after(finished, self._run.cancel) if after is not None else None
        result = finished.result
        if change is None:
            return result
        return ToolResult(
            result.content if change.content is None else change.content,
            result.details if change.details is None else change.details,
            result.summary if change.summary is None else change.summary,
            result.is_error if change.is_error is None else change.is_error,
            result.terminate if change.terminate is None else change.terminate,
            result.marks if change.marks is None else change.marks,
        )


async def _as_result(step: Awaitable[T], *passed_on: type[Exception]) -> T | ToolResult:
    """Return the result of a step, and nothing else turns an exception of a tool or its hooks into one for the
    model.
    """
    try:
        return await step
    except passed_on:
        raise
    except ToolError as error:
        return replace(_error(str(error)), summary=error.summary, details=error.details)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _error(ABORTED)  # something inside the tool was cancelled, not the run
    except Exception as error:  # noqa: BLE001 - tools are foreign code
        return _error(str(error) or type(error).__name__)


def _error(text: str) -> ToolResult:
    return ToolResult((Text(text),), summary=short_text(text), is_error=True)


def _unknown(call: ToolCall, tools: Iterable[str]) -> ToolResult:
    if call.name == UNREADABLE_CALL:
        return _error("it could not be read")
    name = call.name[:_MAX_NAME_LENGTH]
    near = get_close_matches(name, [tool for tool in tools if _server(tool) == _server(name)])
    result = _error(f"Tool {call.name} not found{f'. Did you mean {_or(near)}?' if near else ''}")
    return replace(result, summary="there is no such tool")


def _server(tool: str) -> str:
    """Return the server of a tool, whose namesake on another one does something else; empty for tools of our own."""
    server, separator, _ = tool.partition("__")
    return server if separator else ""


def _or(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _not_json(name: str, raw: str) -> str:
    return (
        f'Validation failed for tool "{name}":\n  - arguments: not a valid JSON object\n\n'
        f"Received arguments:\n{raw[:2000]}\n\nSend the call again with valid JSON."
    )
