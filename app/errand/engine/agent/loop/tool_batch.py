"""The tool calls of one reply, in sequence or in parallel; every call gets a result."""

import asyncio
from dataclasses import dataclass

from errand.engine.agent.loop.hooks import PendingCall
from errand.engine.agent.loop.run_state import LoopRun
from errand.engine.agent.loop.tool_call import ABORTED, ToolCaller, ToolUpdates
from errand.engine.core.messages import AssistantMessage, Message, ToolCall, ToolResultMessage
from errand.engine.tools.arguments import text_argument
from errand.engine.tools.base import AgentTool, ParallelWhere
from errand.engine.tools.results import ToolResult
from errand.protocol.blocks import ResultMark

_MAX_NAME_LENGTH = 100
_SKIPPED = "Skipped due to queued user message."
CUT = (
    'Tool call "{}" was not executed: the response hit the output token limit, so its arguments may be truncated. '
    "Re-issue the tool call with complete arguments."
)
# The app ended the reply because it exceeded a limit.
CUT_BY_APP = (
    'Tool call "{}" was not executed: the app cut the reply because it {}. Make fewer and smaller calls in one reply; '
    "write a large file in several parts."
)


@dataclass(frozen=True, slots=True)
class ToolBatch:
    """`must_continue`: the model has to see the results. `steering`: messages taken from the steering queue."""

    results: tuple[ToolResultMessage, ...] = ()
    must_continue: bool = False
    steering: tuple[Message, ...] = ()


async def run_batch(run: LoopRun, message: AssistantMessage) -> ToolBatch:
    calls = message.tool_calls
    if not calls:
        return ToolBatch()
    updates = ToolUpdates(run)
    caller = ToolCaller(run, message, updates)
    try:
        if message.stop_reason == "length":
            return await _refuse_cut(caller, calls, message.cut)
        if _in_sequence(run, calls):
            return await _sequential(run, caller, calls)
        return await _parallel(run, caller, calls)
    finally:
        await updates.close()


def _in_sequence(run: LoopRun, calls: tuple[ToolCall, ...]) -> bool:
    if run.config.tool_execution == "sequential":
        return True
    return any(_needs_order(run.tools.get(call.name), call) for call in calls)


def _needs_order(tool: AgentTool | None, call: ToolCall) -> bool:
    """Arguments are taken as the model sent them: a value that is no text, or is missing, is none of the listed."""
    if tool is None:
        return False
    mode = tool.execution_mode
    if isinstance(mode, ParallelWhere):
        return text_argument(call.arguments, mode.name) not in mode.values
    return mode == "sequential"


async def _refuse_cut(caller: ToolCaller, calls: tuple[ToolCall, ...], cut: str) -> ToolBatch:
    results: list[ToolResultMessage] = []
    for call in calls:
        name = call.name[:_MAX_NAME_LENGTH]
        reason = CUT_BY_APP.format(name, cut) if cut else CUT.format(name)
        results.append(await caller.answer(call, await caller.refuse(call, reason, "not run: the reply was cut short")))
    return ToolBatch(tuple(results), must_continue=True)


async def _sequential(run: LoopRun, caller: ToolCaller, calls: tuple[ToolCall, ...]) -> ToolBatch:
    watch = _StartGuard(run)
    results: list[ToolResult] = []
    messages: list[ToolResultMessage] = []
    for call in calls:
        if watch.refusal is None:
            pending = await caller.begin(call)
            result = await caller.finish(pending) if isinstance(pending, PendingCall) else pending
        else:
            result = await caller.refuse(call, watch.refusal, watch.summary, *watch.marks)
        results.append(result)
        messages.append(await caller.answer(call, result))
        watch.check()
    return ToolBatch(tuple(messages), _must_continue(results), watch.steering)


async def _parallel(run: LoopRun, caller: ToolCaller, calls: tuple[ToolCall, ...]) -> ToolBatch:
    """Begin in order, then run parallel-safe calls concurrently; results are published in the order of the calls."""
    watch = _StartGuard(run)
    entries: list[PendingCall | ToolResult] = []
    for call in calls:
        if entries:
            watch.check()
        if watch.refusal is None:
            entries.append(await caller.begin(call))
        else:
            entries.append(await caller.refuse(call, watch.refusal, watch.summary, *watch.marks))
    results = await _finish_all(caller, entries)
    messages = [await caller.answer(call, result) for call, result in zip(calls, results, strict=True)]
    return ToolBatch(tuple(messages), _must_continue(results), watch.steering)


class _StartGuard:
    """Decides whether remaining calls may start: not after an abort, nor while a steering message is waiting."""

    def __init__(self, run: LoopRun) -> None:
        self._run = run
        self.refusal: str | None = None
        self.steering: tuple[Message, ...] = ()

    @property
    def marks(self) -> tuple[ResultMark, ...]:
        """The marks of the results of refused calls."""
        return ("skipped",) if self.steering else ()

    @property
    def summary(self) -> str:
        """Why they were refused, for people."""
        return "skipped for your message" if self.steering else "stopped before it began"

    def check(self) -> None:
        if self.refusal is not None:
            return
        if self._run.cancel.is_set:
            self.refusal = ABORTED
        elif self._run.config.steering == "skip_remaining":
            self.steering = self._run.steering.take()
            self.refusal = _SKIPPED if self.steering else None


async def _finish_all(caller: ToolCaller, entries: list[PendingCall | ToolResult]) -> list[ToolResult]:
    """Results in the order of `entries`. All tasks have ended on return."""
    waiting = {index: entry for index, entry in enumerate(entries) if isinstance(entry, PendingCall)}
    if len(waiting) <= 1:
        return [await caller.finish(entry) if isinstance(entry, PendingCall) else entry for entry in entries]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {index: group.create_task(caller.finish(pending)) for index, pending in waiting.items()}
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures  # raised by a listener: tools do not raise here
    return [entry if isinstance(entry, ToolResult) else tasks[index].result() for index, entry in enumerate(entries)]


def _must_continue(results: list[ToolResult]) -> bool:
    return not all(result.terminate for result in results)
