"""The hooks around each step of a task: pause, model call with committed intent, permission, tool record."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path

from app.engine.agent.compaction.context_window import ContextWindow
from app.engine.agent.history.branch import BranchWriter
from app.engine.agent.loop.hooks import NOT_BEGUN, PendingCall, ToolRefusal
from app.engine.agent.run.approvals import Approvals
from app.engine.agent.run.pause_gate import PauseGate
from app.engine.agent.run.recorder import TaskRecorder, ToolExecutionLog
from app.engine.agent.run.resume import TurnReplay, has_effects
from app.engine.agent.run.task_state import TaskState
from app.engine.core.cancel import CancelSignal
from app.engine.core.errors import FolderNotAnswering
from app.engine.core.messages import AssistantMessage
from app.engine.core.workspace_threads import in_workspace
from app.engine.event_log import EventLog
from app.engine.models.base import ChatModel, ModelEvent, ModelRequest, ReplyEnd, Retry
from app.engine.models.failures import ABORTED as _failure_ABORTED
from app.engine.tools.base import Access, GuardedTool, ToolError, ToolResult

ABORTED = "Request was aborted"

# What a call would touch is looked up on the disk, which may not answer.
_LOOK_S = 5.0
_NOT_LOOKED_UP = (
    f"What this call would touch could not be found out within {_LOOK_S:g} s: the disk does not answer, or the machine "
    "is very busy. It was not run. Try it once more, or do it in smaller steps."
)


class ModelCalls:
    def __init__(self, branch: BranchWriter, recorder: TaskRecorder, model: ChatModel, room: ContextWindow) -> None:
        self._branch = branch
        self._recorder = recorder
        self._model = model
        self._room = room

    async def stream(self, whole: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        """One reply; a request that the provider refuses as too long is made once more, shorter."""
        request: ModelRequest | None = await self._room.fit(whole, cancel)
        while request is not None:
            if cancel.is_set:
                yield ReplyEnd(AssistantMessage(stop_reason="aborted", error=_failure_ABORTED, model=whole.model))
                return
            sent, request = request, None
            async with aclosing(self._call(sent, cancel)) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd):
                        request = await self._room.after_reply(whole, sent, event, cancel)
                    if request is None:
                        yield event

    async def _call(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        self._recorder.turn_started(request)
        # If a power cut takes it, the call is made again, as if it had not come this far.
        await self._branch.save(durable=False)
        async with aclosing(self._model.stream(request, cancel)) as events:
            async for event in events:
                yield event


class TaskHooks:
    """Wraps the model and the tools of one task."""

    def __init__(
        self,
        live: TaskState,
        branch: BranchWriter,
        log: EventLog,
        gate: PauseGate,
        recorder: TaskRecorder,
        executions: ToolExecutionLog,
        approvals: Approvals,
        resumption: TurnReplay,
        calls: ModelCalls,
        tools: tuple[GuardedTool, ...],
    ) -> None:
        self._live = live
        self._branch = branch
        self._log = log
        self._gate = gate
        self._recorder = recorder
        self._executions = executions
        self._approvals = approvals
        self._resumption = resumption
        self._calls = calls
        self._tools = {tool.name: tool for tool in tools}

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        """The model call as the loop sees it: made when it is due, and again after a limit of the provider."""
        reply = self._resumption.take_reply()
        if reply is not None:
            yield ReplyEnd(reply)
            return
        is_put_off = True
        while is_put_off:
            is_put_off = False
            async with aclosing(self._asked(request, cancel)) as events:
                async for event in events:
                    told = self._put_off(event) if isinstance(event, ReplyEnd) else event
                    is_put_off = isinstance(event, ReplyEnd) and isinstance(told, Retry)
                    yield told

    async def _asked(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        """One model call: paused, paced, its intent committed, then the model itself."""
        await self._gate.before_model_call(cancel)
        if cancel.is_set:
            yield ReplyEnd(AssistantMessage(stop_reason="aborted", error=ABORTED, model=request.model))
            return
        async with aclosing(self._calls.stream(request, cancel)) as events:
            async for event in events:
                yield event

    def _put_off(self, end: ReplyEnd) -> ReplyEnd | Retry:
        """The end of the reply, or that it is asked for again once a limit has passed."""
        told = self._gate.limit.settle(end)
        if isinstance(told, Retry):
            self._recorder.turn_postponed()
        return told

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> ToolRefusal | ToolResult | None:
        """Permission, then the committed intent; control tools touch nothing outside and have no record.

        What an earlier engine did is not done again.
        """
        call, tool = pending.call, self._tools[pending.call.name]

        async def look() -> Access:
            try:
                return await in_workspace(
                    Path(self._live.task.workspace), partial(tool.access, pending.arguments), _LOOK_S
                )
            except FolderNotAnswering as error:
                raise ToolError(_NOT_LOOKED_UP) from error

        past = await self._resumption.past_of(call.id, look, cancel)
        if past is not None:
            return past
        await self._gate.wait_open(cancel)
        if cancel.is_set:
            return NOT_BEGUN
        access = await self._approvals.check(call, look, cancel)
        if isinstance(access, ToolRefusal):
            if not cancel.is_set:
                self._live.tool_refused()
            return access
        tool.allow(call.id, access)
        self._live.tool_started(call.id, call.name, acts=has_effects(access))
        if access.tier != "free":
            self._executions.started(call, access, self._live.task.step_count, self._branch.position.node_id or "")
            # What changes something waits for the disk: after a power cut it must be known that it may have run.
            await self._branch.save(durable=access.tier != "read")
        return None
