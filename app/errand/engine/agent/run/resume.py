"""Resumes an interrupted turn.

Reuses stored replies and results; asks about calls with an unknown outcome (decision 7).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from errand.engine.agent.history.conversion import UNKNOWN_OUTCOME, recall_of, result_of
from errand.engine.agent.history.visible_history import summary_of
from errand.engine.agent.loop.features import Feature, RepeatRequest
from errand.engine.agent.loop.hooks import NOT_STARTED, PendingCall, ToolRefusal
from errand.engine.agent.run.recorder import ToolExecutionLog
from errand.engine.agent.run.task_context import TaskContext, TaskTools
from errand.engine.core.cancel import CancelSignal, stopped_by
from errand.engine.core.ids import new_id
from errand.engine.core.messages import AssistantMessage, ModelMessage, Text
from errand.engine.models.base import ModelRequest, ReplyEnd
from errand.engine.storage.records.executions import ExecutionEnd, ExecutionStart, StoredExecution
from errand.engine.tools.base import Access
from errand.engine.tools.control.task_messages import TaskComplete
from errand.engine.tools.memory.search import SearchMemory
from errand.engine.tools.results import ToolResult
from errand.protocol.asks import RUN_AGAIN, SKIP, STOP, Ask, UnknownCall
from errand.protocol.blocks import ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import Task, replace_fields

_TEXT = (
    "The engine was killed while this was under way. It may have taken effect in part, in whole, or not at all: "
    "look first, then choose."
)

_SKIPPED = ToolResult((Text(UNKNOWN_OUTCOME),), summary="skipped, outcome unknown", is_error=True)


def unknown_outcome_ask(started: ExecutionStart, access: Access, task: Task) -> Ask:
    """Return the ask about a call. It is identical no matter which engine raises it.

    `access` is that of the repeated call, and the only one shown: the record proves only that the call was started.
    """
    return Ask(
        id=new_id("ask"),
        task_id=task.id,
        conversation_id=task.conversation_id,
        owner=task.owner,
        kind="unknown",
        text=_TEXT,
        created_at=datetime.now(UTC),
        choices=(RUN_AGAIN, SKIP, STOP),
        call_id=started.call_id,
        unknown=UnknownCall(
            execution_id=started.execution_id,
            call_id=started.call_id,
            tool=started.tool,
            text=access.text,
            started_at=started.at,
            command=access.command,
        ),
    )


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call with its result. `execution_id` is empty for a call without an execution record.

    `runs_again`: it has no effects, and the end of the task depends on it, or its record has no result.
    """

    result: ToolResult
    execution_id: str = ""
    runs_again: bool = False


RecordedCalls: TypeAlias = RecordedCall | ExecutionStart


class InterruptedTurn:
    """`history` are the messages before the turn. `stored` counts the turn's messages that are stored as nodes."""

    def __init__(
        self, reply: AssistantMessage, history: tuple[ModelMessage, ...], past: Mapping[str, RecordedCalls], stored: int
    ) -> None:
        self.reply = reply
        self.history = history
        self.stored = stored
        # By call id: the call's result, or its start if the outcome is unknown.
        self.calls: Mapping[str, RecordedCalls] = past
        self._is_taken = False

    def take_reply(self) -> AssistantMessage | None:
        """Return the reply, on the first call; afterwards None, and the recorded calls are dropped."""
        if self._is_taken:
            self.calls = {}
            return None
        self._is_taken = True
        return self.reply


def last_reply(path: Sequence[Node], task_id: str) -> int | None:
    """Index of the reply the task was working on; None if a message, a summary or what was recalled follows it."""
    for index in range(len(path) - 1, -1, -1):
        node = path[index]
        if node.role == "user" or summary_of(node) is not None or recall_of(node) is not None:
            return None
        if node.role == "assistant":
            return index if node.status == "complete" and node.task_id == task_id else None
    return None


def recorded_calls(
    results: Sequence[Node], executions: Sequence[StoredExecution], turn: int
) -> dict[str, RecordedCalls]:
    """Return the recorded calls of a turn, from result nodes and execution records."""
    past: dict[str, RecordedCalls] = {}
    for execution in executions:
        started, finished = execution.started, execution.finished
        if started.turn == turn:
            past[started.call_id] = _from_record(started.tool, finished) if finished is not None else started
    for node in results:
        for block in node.blocks:
            if isinstance(block, ToolResultBlock):
                runs_again = block.tool == TaskComplete.name and not block.is_error
                past[block.call_id] = RecordedCall(result_of(block), block.execution_id, runs_again)
    return past


def _from_record(tool: str, finished: ExecutionEnd) -> RecordedCall:
    content = (Text(finished.text),)
    result = ToolResult(content, finished.details, finished.summary, finished.is_error, marks=finished.marks)
    runs_again = tool in (TaskComplete.name, SearchMemory.name) and not finished.is_error
    return RecordedCall(result, finished.execution_id, runs_again)


class TurnReplay(Feature):
    """Replays the open turn of one task. Does nothing for a new task, or one interrupted during a model call."""

    def __init__(
        self, context: TaskContext, tools: TaskTools, executions: ToolExecutionLog, turn: InterruptedTurn | None
    ) -> None:
        self._state = context.state
        self._asks = context.asks
        self._tools = tools
        self._executions = executions
        self._turn = turn
        self._has_old_asks = turn is not None
        calls = turn.calls.items() if turn is not None else ()
        executions.replays({call_id: past.execution_id for call_id, past in calls if isinstance(past, RecordedCall)})

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest | AssistantMessage:
        """Return the reply of the open turn, instead of the first model call. The next call ends that turn."""
        if self._turn is None:
            return request
        reply = self._turn.take_reply()
        if reply is None:
            self._turn = None
            self._executions.replays({})
            return request
        self._state.move("thinking", "resumed")
        return reply

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd | RepeatRequest:
        """Drop what the open turn asked, after the first real call: a limit allowed since then counts for that call."""
        if self._has_old_asks:
            self._has_old_asks = False
            self._asks.drop_task(self._state.task.id)
        return end

    async def before_tool_call(
        self, pending: PendingCall, cancel: CancelSignal
    ) -> PendingCall | ToolResult | ToolRefusal:
        """Return the recorded result of a call, or a refusal.

        All other calls run as usual, subject to the policy; repeating a read-only call needs no decision by the user.
        """
        call_id = pending.call.id
        past = self._turn.calls.get(call_id) if self._turn is not None else None
        if isinstance(past, RecordedCall):
            self._executions.known(call_id, past.execution_id)
            return pending if past.runs_again else past.result
        if past is None:
            return pending
        access = await self._tools.access_of(pending)
        if not access.has_effects:
            if past.tier == "free":
                self._executions.continued(past)
            return pending
        return await self._settle(past, access, cancel) or pending

    async def _settle(
        self, started: ExecutionStart, access: Access, cancel: CancelSignal
    ) -> ToolResult | ToolRefusal | None:
        """Return None if the user lets the call run again."""
        ask = unknown_outcome_ask(started, access, self._state.task)
        settled = await self._asks.raise_and_wait(ask, self._state, cancel)
        if settled.answer == RUN_AGAIN:
            return None
        if settled.answer is not None:
            self._executions.known(started.call_id, started.execution_id)  # its record stays open
        if settled.answer == STOP:
            self._state.set(replace_fields(self._state.task, stopping=True, detail="stopping"))
            cancel.set(stopped_by(settled.answered_by))
        return NOT_STARTED if cancel.is_set else _SKIPPED
