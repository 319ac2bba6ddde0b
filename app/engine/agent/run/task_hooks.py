"""The hooks of one task around model calls and tool calls: pause, committed intent, permissions, tool records."""

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
from app.engine.models.base import ChatModel, ModelEvent, ModelRequest, ReplyEnd, Retry
from app.engine.models.failures import ABORTED
from app.engine.tools.base import Access, GuardedTool, ToolError, ToolResult

# What a call would touch is looked up on the disk, which may not answer.
_LOOK_S = 5.0
_NOT_LOOKED_UP = (
    f"What this call would touch could not be found out within {_LOOK_S:g} s: the disk does not answer, or the machine "
    "is very busy. It was not run. Try it once more, or do it in smaller steps."
)


class TaskHooks:
    """Wraps the model and the tools of one task."""

    def __init__(
        self,
        live: TaskState,
        branch: BranchWriter,
        gate: PauseGate,
        recorder: TaskRecorder,
        executions: ToolExecutionLog,
        approvals: Approvals,
        resumption: TurnReplay,
        model: ChatModel,
        window: ContextWindow,
        tools: tuple[GuardedTool, ...],
    ) -> None:
        self._live = live
        self._branch = branch
        self._gate = gate
        self._recorder = recorder
        self._executions = executions
        self._approvals = approvals
        self._resumption = resumption
        self._model = model
        self._window = window
        self._tools = {tool.name: tool for tool in tools}

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncGenerator[ModelEvent, None]:
        """One reply, which may be recorded already.

        The call waits for the pause gate, is fitted into the context window, and its intent is committed. It is made
        again, shorter, where the provider refuses it as too long, and as a whole once a rate limit has passed.
        """
        recorded = self._resumption.take_reply()
        if recorded is not None:
            yield ReplyEnd(recorded)
            return
        sent: ModelRequest | None = None
        while True:
            if sent is None:
                await self._gate.before_model_call(cancel)
                if not cancel.is_set:
                    sent = await self._window.fit(request, cancel)
            if sent is None or cancel.is_set:
                aborted = AssistantMessage(stop_reason="aborted", error=ABORTED, model=request.model)
                yield self._gate.limit.settle(ReplyEnd(aborted))
                return
            self._recorder.turn_started(sent)
            # If a power cut loses the intent, the call is made again as if it had never begun.
            await self._branch.save(durable=False)
            end: ReplyEnd | None = None
            async with aclosing(self._model.stream(sent, cancel)) as events:
                async for event in events:
                    if isinstance(event, ReplyEnd):
                        end = event
                    else:
                        yield event
            if end is None:
                return
            sent = await self._window.after_reply(request, sent, end, cancel)
            if sent is not None:
                continue
            settled = self._gate.limit.settle(end)
            if isinstance(settled, Retry):
                self._recorder.turn_postponed()
            yield settled
            if isinstance(settled, ReplyEnd):
                return

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
