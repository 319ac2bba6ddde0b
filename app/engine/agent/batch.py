"""The tool calls of one reply, run one after the other or side by side, with every call answered by a result."""

import asyncio
from dataclasses import dataclass

from app.engine.agent import call as tool_call
from app.engine.agent.hooks import PendingCall
from app.engine.agent.run import Run
from app.engine.messages import AssistantMessage, Message, ToolCall, ToolResultMessage
from app.engine.tools.base import ToolResult

SKIPPED = "Skipped due to queued user message."
CUT = (
    'Tool call "{}" was not executed: the response hit the output token limit, so its arguments may be truncated. '
    "Re-issue the tool call with complete arguments."
)


@dataclass(frozen=True, slots=True)
class Batch:
    """What came of it. `goes_on` if the model has to see the results; `steering` is what was taken from the queue."""

    results: tuple[ToolResultMessage, ...] = ()
    goes_on: bool = False
    steering: tuple[Message, ...] = ()


async def run_batch(run: Run, message: AssistantMessage) -> Batch:
    calls = message.tool_calls
    if not calls:
        return Batch()
    if message.stop_reason == "length":
        return await _refuse_cut(run, calls)
    if _in_sequence(run, calls):
        return await _sequential(run, message, calls)
    return await _parallel(run, message, calls)


def _in_sequence(run: Run, calls: tuple[ToolCall, ...]) -> bool:
    if run.config.tool_execution == "sequential":
        return True
    tools = (run.tools.get(call.name) for call in calls)
    return any(tool is not None and tool.execution_mode == "sequential" for tool in tools)


async def _refuse_cut(run: Run, calls: tuple[ToolCall, ...]) -> Batch:
    results = [await _answer(run, call, await _refuse(run, call, CUT.format(call.name))) for call in calls]
    return Batch(tuple(results), goes_on=True)


async def _sequential(run: Run, message: AssistantMessage, calls: tuple[ToolCall, ...]) -> Batch:
    watch = _Watch(run)
    results: list[ToolResult] = []
    messages: list[ToolResultMessage] = []
    for call in calls:
        if watch.refusal is None:
            await tool_call.start(run, call)
            pending = await tool_call.prepare(run, message, call)
            result = await tool_call.execute(run, pending) if isinstance(pending, PendingCall) else pending
            await tool_call.end(run, call, result)
        else:
            result = await _refuse(run, call, watch.refusal)
        results.append(result)
        messages.append(await _answer(run, call, result))
        watch.look()
    return Batch(tuple(messages), _goes_on(results), watch.steering)


async def _parallel(run: Run, message: AssistantMessage, calls: tuple[ToolCall, ...]) -> Batch:
    """Prepare in order, then execute what may run side by side; results are told in the order of the calls."""
    watch = _Watch(run)
    prepared: list[PendingCall | ToolResult] = []
    for call in calls:
        if watch.refusal is None:
            await tool_call.start(run, call)
            pending = await tool_call.prepare(run, message, call)
            if isinstance(pending, ToolResult):
                await tool_call.end(run, call, pending)
        else:
            pending = await _refuse(run, call, watch.refusal)
        prepared.append(pending)
        if len(prepared) < len(calls):
            watch.look()
    results = await _execute_all(run, prepared)
    messages = [await _answer(run, call, result) for call, result in zip(calls, results, strict=True)]
    return Batch(tuple(messages), _goes_on(results), watch.steering)


class _Watch:
    """Why the calls not yet started must not start: the run was aborted, or a message that steers is waiting."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.refusal: str | None = None
        self.steering: tuple[Message, ...] = ()

    def look(self) -> None:
        if self.refusal is not None:
            return
        if self._run.cancel.is_set:
            self.refusal = tool_call.ABORTED
        elif self._run.config.steering == "skip_remaining":
            self.steering = self._run.steering.take()
            self.refusal = SKIPPED if self.steering else None


async def _execute_all(run: Run, prepared: list[PendingCall | ToolResult]) -> list[ToolResult]:
    """Results in the order of `prepared`; a call is told as ended when it ends. No task outlives this."""
    results: list[ToolResult | None] = [entry if isinstance(entry, ToolResult) else None for entry in prepared]

    async def one(index: int, pending: PendingCall) -> None:
        result = await tool_call.execute(run, pending)
        await tool_call.end(run, pending.call, result)
        results[index] = result

    waiting = [(index, entry) for index, entry in enumerate(prepared) if isinstance(entry, PendingCall)]
    if len(waiting) == 1:
        await one(*waiting[0])
    else:
        try:
            async with asyncio.TaskGroup() as group:
                for index, pending in waiting:
                    group.create_task(one(index, pending))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
    return [result for result in results if result is not None]


async def _refuse(run: Run, call: ToolCall, reason: str) -> ToolResult:
    await tool_call.start(run, call)
    result = tool_call.error_result(reason)
    await tool_call.end(run, call, result)
    return result


async def _answer(run: Run, call: ToolCall, result: ToolResult) -> ToolResultMessage:
    message = ToolResultMessage(call.id, call.name, result.content, result.is_error, result.details)
    await run.publish(message)
    return message


def _goes_on(results: list[ToolResult]) -> bool:
    return not all(result.terminate for result in results)
